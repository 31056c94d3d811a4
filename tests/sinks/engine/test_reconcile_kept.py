"""What a pass keeps in mind for the next: pauses, refusals, what could not be seen, what is ours."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from sinks.engine.report import Report
from sinks.every_kind.absence import OBSERVATIONS
from sinks.faults import (
    ItemFault,
    Observed,
)
from sinks.flow_settings import Limits
from sinks.kafka.ports.cluster import TopicConfigs
from sinks.ledger.ledger import Entry
from sinks.model.changes import Kind
from tests.memory.memory_cluster import MemoryCluster
from tests.sinks.builders import World, flow_settings, overrides_of, put_topic, set_config, world_in_step

INTERVAL = 60.0


@pytest.fixture
def world() -> World:
    return world_in_step()


def test_paused_kind_is_not_planned_and_what_changed_meanwhile_arrives_after_it(world: World) -> None:
    world.ledger().put({(Entry.PAUSED, (Kind.TOPIC_CONFIG.value,)): ""})
    world.run_pass(after=INTERVAL)
    set_config(world.source, "x", "retention.ms", "2")
    put_topic(world.source, "z")
    world.run_pass()
    assert overrides_of(world.target, "a.x") == {"retention.ms": "1"}
    assert "a.z" in world.target.topics
    world.ledger().put({(Entry.PAUSED, (Kind.TOPIC_CONFIG.value,)): None})
    world.run_pass(after=INTERVAL)
    assert overrides_of(world.target, "a.x") == {"retention.ms": "2"}


def test_paused_topics_are_not_made() -> None:
    world = World()
    world.ledger().put({(Entry.PAUSED, (Kind.TOPIC.value,)): ""})
    put_topic(world.source, "z")
    world.run_pass()
    assert "a.z" not in world.target.topics
    assert world.reconcile.paused == {Kind.TOPIC}


def test_without_creating_topics_those_that_mm2_makes_are_configured_soon() -> None:
    world = World(flow_settings(enabled=[Kind.TOPIC_CONFIG]))
    put_topic(world.source, "x", retention_ms="1")
    world.settle()
    assert "a.x" not in world.target.topics
    put_topic(world.target, "a.x")
    world.run_pass()
    assert overrides_of(world.target, "a.x") == {"retention.ms": "1"}


def test_topic_that_another_hand_made_at_the_same_moment_is_configured_at_the_next_pass(world: World) -> None:
    class LateListing(MemoryCluster):
        def list_topics(self) -> dict[str, int]:
            return {name: count for name, count in super().list_topics().items() if name != "a.z"}

    put_topic(world.source, "z", retention_ms="7")
    put_topic(world.target, "a.z", retention_ms="8")
    world.target.__class__ = LateListing
    (outcome,) = world.run_pass().outcomes
    assert outcome.already
    world.target.__class__ = MemoryCluster
    world.run_pass()
    assert overrides_of(world.target, "a.z") == {"retention.ms": "7"}
    assert world.ledger().owned(Kind.TOPIC) == {("a.x",), ("a.y",)}


def test_refused_key_is_set_aside_and_its_neighbours_arrive() -> None:
    world = World()
    world.target.policy = lambda topic, name, value: "30 days at most" if name == "retention.ms" else None
    put_topic(world.source, "x", retention_ms="1", retention_bytes="2")
    world.run_pass()
    world.run_pass()
    assert overrides_of(world.target, "a.x") == {"retention.bytes": "2"}
    writes = world.target.writes
    for _ in range(25):
        (refusal,) = world.run_pass().plan.refused
        assert refusal.key == ("a.x", "retention.ms")
        assert "30 days at most" in refusal.reason
    assert world.target.writes == writes
    world.target.policy = lambda topic, name, value: None
    world.run_pass(after=30.0)
    assert overrides_of(world.target, "a.x") == {"retention.ms": "1", "retention.bytes": "2"}
    assert world.run_pass().plan.refused == ()


def test_refusal_of_a_topic_that_left_the_source_is_forgotten() -> None:
    world = World()
    world.target.policy = lambda topic, name, value: "no" if name == "retention.ms" else None
    put_topic(world.source, "x", retention_ms="1")
    for _ in range(3):
        report = world.run_pass()
    assert report.plan.refused != ()
    del world.source.topics["x"]
    assert world.run_pass().plan.refused == ()


def test_topic_with_a_name_too_long_is_refused_in_every_report(world: World) -> None:
    put_topic(world.source, "z" * 248)
    for _ in range(3):
        (refusal,) = world.run_pass().plan.refused
        assert refusal.key == ("a." + "z" * 248,)


def test_refusal_is_audited_once_however_often_it_is_reported(world: World) -> None:
    put_topic(world.source, "y" * 248)
    for _ in range(3):
        world.run_pass()
    assert [event.key for event in world.events() if event.result == "refused"] == [("a." + "y" * 248,)]


def test_change_that_failed_is_not_audited_as_refused_too() -> None:
    world = World(target=MemoryCluster("b", "id-of-b", policy=lambda topic, name, value: "no"))
    put_topic(world.source, "x", retention_ms="1")
    for _ in range(3):
        world.run_pass()
    assert {event.result for event in world.events() if event.kind == "topic-config"} == {"failed"}


def test_topic_that_may_not_be_described_stays_in_the_report_until_it_may(world: World) -> None:
    class Shy(MemoryCluster):
        def describe_topic_configs(self, topics: Collection[str]) -> Observed[str, TopicConfigs]:
            seen = super().describe_topic_configs([topic for topic in topics if topic != "a.x"])
            fault = ItemFault("TOPIC_AUTHORIZATION_FAILED", "no")
            return Observed(seen.items, {topic: fault for topic in topics if topic == "a.x"})

    world.target.__class__ = Shy
    set_config(world.source, "x", "retention.ms", "2")
    for value in ("1", "2", "3"):
        set_config(world.source, "y", "retention.ms", value)
        (error,) = world.run_pass().plan.errors
        assert overrides_of(world.target, "a.y") == {"retention.ms": value}
        assert error.reason == ("a.x on b: TOPIC_AUTHORIZATION_FAILED: DESCRIBE_CONFIGS on TOPIC a.x is missing")
    world.target.__class__ = MemoryCluster
    report = world.run_pass(after=INTERVAL)
    assert report.plan.errors == ()
    assert overrides_of(world.target, "a.x") == {"retention.ms": "2"}


def test_too_many_deletions_stop_the_kind_and_delete_nothing() -> None:
    world = World(flow_settings(topic_deletes=True, limits=Limits(30, 3)))
    for topic in ("x", "y", "z"):
        put_topic(world.source, topic)
    world.settle()
    del world.source.topics["x"]
    for _ in range(OBSERVATIONS):
        report = world.run_pass(after=INTERVAL)
    assert "1 of 3" in report.trouble.faulted[Kind.TOPIC]
    assert [refusal.key for refusal in report.plan.refused] == [("a.x",)]
    assert "a.x" in world.target.topics


class Broken:
    """An observer with a defect."""

    def passed(self, report: Report) -> None:
        raise ValueError("a defect")

    def due_at(self, now: float) -> float:
        return float("inf")

    def close(self, *, replaced: bool) -> None:
        """Nothing to close."""


class Soon(Broken):
    """An observer that wants a pass a quarter of a second after each."""

    def passed(self, report: Report) -> None:
        """Nothing to keep."""

    def due_at(self, now: float) -> float:
        return now + 0.25


def test_observer_makes_a_pass_due(world: World) -> None:
    world.observers.append(Soon())
    world.restart()
    world.settle()
    report = world.run_pass()
    assert report.due == report.now + 0.25


def test_defect_of_an_observer_costs_no_pass(world: World) -> None:
    world.observers.append(Broken())
    world.restart()
    set_config(world.source, "x", "retention.ms", "2")
    assert world.run_pass().outcomes
    assert overrides_of(world.target, "a.x") == {"retention.ms": "2"}
