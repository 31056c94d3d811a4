"""The pass keeps the cluster-wide configs of the target's brokers as the source's are."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from sinks.faults import Observed
from sinks.flow_settings import Limits
from sinks.kafka.ports.config_levels import DEFAULT_OF_ALL, ConfigEntity, Levels, ResourceType
from sinks.kinds.brokers.controller import REFUSED_REST
from sinks.kinds.polled_controller import REST
from sinks.ledger.audit import read_audit
from sinks.ledger.ledger import Entry
from sinks.model.changes import Kind
from tests.memory.memory_levels import MemoryLevels
from tests.sinks.builders import flow_settings
from tests.sinks.kinds.brokers.broker_builders import BrokerWorld, default_of, put

RETENTION, THREADS = "log.retention.ms", "num.io.threads"


@pytest.fixture
def world() -> BrokerWorld:
    """One config set on the source and brought over."""
    built = BrokerWorld()
    put(built.source, {RETENTION: "86400000"})
    built.run_pass()
    built.target.writes = 0
    return built


def test_what_is_set_cluster_wide_comes_over_and_is_remembered_as_lockstep_s(world: BrokerWorld) -> None:
    assert default_of(world.target) == {RETENTION: "86400000"}
    assert world.ledger().owned(Kind.BROKER_CONFIG) == {("", RETENTION)}
    events = read_audit(world.settings.internal.audit, world.topics)
    assert [(event.kind, event.key) for event in events] == [("broker-config", ("", RETENTION))]


def test_with_nothing_to_do_nothing_is_written(world: BrokerWorld) -> None:
    for _ in range(5):
        world.run_pass()
    assert world.target.writes == 0


def test_another_value_is_written_within_the_rest_and_not_before(world: BrokerWorld) -> None:
    put(world.source, {RETENTION: "3600000"})
    world.run_pass(after=REST / 2)
    assert default_of(world.target) == {RETENTION: "86400000"}
    world.run_pass(after=REST / 2)
    assert default_of(world.target) == {RETENTION: "3600000"}


def test_what_is_removed_on_the_source_is_removed_if_lockstep_set_it(world: BrokerWorld) -> None:
    put(world.target, {THREADS: "9"})
    put(world.source, {RETENTION: None})
    report = world.run_until_deleted()
    assert report.plan.errors == ()
    assert default_of(world.target) == {THREADS: "9"}
    assert world.ledger().owned(Kind.BROKER_CONFIG) == set()


def test_value_of_another_hand_is_updated_and_not_removed_later() -> None:
    world = BrokerWorld()
    put(world.target, {THREADS: "9"})
    put(world.source, {THREADS: "10"})
    world.run_pass()
    assert default_of(world.target) == {THREADS: "10"}
    put(world.source, {THREADS: None})
    world.run_until_deleted()
    assert default_of(world.target) == {THREADS: "10"}


class Forgetful(MemoryLevels):
    """May show an empty cluster-wide default, as a broker might that has not caught up."""

    forgets = False

    def describe(self, entities: Collection[ConfigEntity]) -> Observed[ConfigEntity, Levels]:
        seen = super().describe(entities)
        shown = {
            entity: {} if self.forgets and entity == DEFAULT_OF_ALL else seen.items[entity] for entity in seen.items
        }
        return Observed(shown, seen.errors)


def test_empty_source_whose_brokers_follow_something_removes_nothing() -> None:
    source = Forgetful("a")
    world = BrokerWorld(source=source)
    put(source, {RETENTION: "86400000"})
    world.run_pass()
    source.forgets = True
    report = world.run_until_deleted()
    assert default_of(world.target) == {RETENTION: "86400000"}
    assert [blind.reason for blind in report.plan.errors] == [
        "a did not list 1 of the kind broker-config that it still has. One of its brokers is behind, so nothing was "
        "deleted"
    ]


def test_levels_of_the_source_other_than_the_cluster_wide_one_are_not_copied(world: BrokerWorld) -> None:
    world.source.static[THREADS] = "3"
    world.source.alter({ConfigEntity(ResourceType.BROKER, "1"): {"background.threads": "12"}})
    world.run_pass()
    assert default_of(world.target) == {RETENTION: "86400000"}


def test_refused_value_is_set_aside_and_its_neighbours_are_written(world: BrokerWorld) -> None:
    world.target.static[THREADS] = "2"
    put(world.source, {THREADS: "9", "background.threads": "11"})
    report = world.run_pass()
    assert default_of(world.target) == {RETENTION: "86400000", "background.threads": "11"}
    assert {outcome.change.key[1]: outcome.result for outcome in report.outcomes} == {
        THREADS: "failed",
        "background.threads": "applied",
    }
    writes = world.target.writes
    report = world.run_pass()
    assert world.target.writes == writes
    assert [refusal.key for refusal in report.plan.refused] == [("", THREADS)]


def test_config_that_the_target_does_not_know_is_refused_and_looked_at_less_often() -> None:
    world = BrokerWorld(target=MemoryLevels("b", unknown={"log.cleaner.threads"}))
    put(world.source, {"log.cleaner.threads": "2", THREADS: "9"})
    report = world.run_pass()
    assert default_of(world.target) == {THREADS: "9"}
    assert "do not know log.cleaner.threads" in report.plan.refused[0].reason
    put(world.source, {THREADS: "10"})
    world.run_pass(after=REST)
    assert default_of(world.target) == {THREADS: "9"}
    world.run_pass(after=REFUSED_REST)
    assert default_of(world.target) == {THREADS: "10"}


def test_paused_kind_is_left_alone(world: BrokerWorld) -> None:
    world.ledger().put({(Entry.PAUSED, (Kind.BROKER_CONFIG.value,)): ""})
    world.run_pass(after=60.0)
    put(world.source, {RETENTION: "3600000"})
    world.run_pass()
    assert default_of(world.target) == {RETENTION: "86400000"}


def test_denied_look_stops_the_kind_and_says_which_right_is_missing(world: BrokerWorld) -> None:
    world.source.denied.add("describe")
    report = world.run_pass()
    assert report.outcomes == ()
    assert "reading broker configs needs DESCRIBE_CONFIGS on the CLUSTER" in report.plan.errors[0].reason


def test_more_deletions_than_the_limit_are_refused_as_a_whole() -> None:
    world = BrokerWorld(settings=flow_settings(enabled=[Kind.BROKER_CONFIG], limits=Limits(max_delete_minimum=2)))
    put(world.source, {RETENTION: "86400000", THREADS: "9"})
    world.run_pass()
    put(world.source, {RETENTION: None, THREADS: None})
    assert "deletes 2 of 2 of the kind broker-config" in world.run_until_deleted().trouble.faulted[Kind.BROKER_CONFIG]
    assert default_of(world.target) == {RETENTION: "86400000", THREADS: "9"}
