"""A pass that is cut short: nothing is lost, nothing is written twice, nothing goes elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pytest

from sinks.faults import (
    ClusterUnreachable,
    IncrementalUnsupported,
    ItemFault,
    RightsMissing,
    WrongCluster,
)
from sinks.flow_settings import Incremental
from sinks.kinds.topics.controller import TopicController
from sinks.ledger.audit import Audit
from sinks.model.changes import Kind, Outcome
from sinks.model.plan import Plan, Refusal
from streaming.errors import LockstepError
from tests.memory.memory_cluster import MemoryCluster, PlainWatch
from tests.sinks.builders import World, flow_settings, overrides_of, put_topic, set_config, world_in_step

INTERVAL = 60.0


@pytest.fixture
def world() -> World:
    return world_in_step()


class DiesHereError(Exception):
    """The process ends between two lines."""


class CrashingAudit(Audit):
    """Dies between apply and record."""

    def record(self, plan: Plan, outcomes: Iterable[Outcome], refused: Iterable[Refusal] = ()) -> None:
        if plan.changes:
            raise DiesHereError


@pytest.mark.parametrize("restarted", [True, False], ids=["restarted", "same process"])
def test_crash_between_apply_and_record_writes_nothing_twice(restarted: bool) -> None:
    world = World()
    put_topic(world.source, "x", 3, retention_ms="1")
    put_topic(world.target, "a.x", 3, retention_ms="2")
    whole = world.reconcile._recorder._audit
    world.reconcile._recorder._audit = CrashingAudit("audit", world.target, 1, "tester@here")
    with pytest.raises(DiesHereError):
        world.run_pass()
    assert overrides_of(world.target, "a.x") == {"retention.ms": "1"}
    writes = world.target.writes
    if restarted:
        world.restart()
    world.reconcile._recorder._audit = whole
    assert world.run_pass().plan.changes == ()
    assert world.target.writes == writes


@pytest.mark.parametrize("silent", ["source", "target"])
def test_silent_cluster_plans_nothing_and_the_next_pass_finds_the_change(world: World, silent: str) -> None:
    cluster = world.source if silent == "source" else world.target
    set_config(world.source, "x", "retention.ms", "2")
    cluster.reachable = False
    with pytest.raises(ClusterUnreachable):
        world.run_pass()
    cluster.reachable = True
    assert world.target.writes == 0
    world.run_pass()
    assert overrides_of(world.target, "a.x") == {"retention.ms": "2"}


def test_change_seen_while_the_full_comparison_fails_is_not_lost(world: World) -> None:
    class SilentWatch:
        def changed(self, shards: object) -> set[str]:
            raise ClusterUnreachable("cluster b: no answer")

    part = world.controller(Kind.TOPIC)
    assert isinstance(part, TopicController)
    healthy = part._target_watch
    part._target_watch = SilentWatch()  # type: ignore[assignment]  # only its `changed` is called
    set_config(world.source, "x", "retention.ms", "2")
    with pytest.raises(ClusterUnreachable):
        world.run_pass(after=INTERVAL)
    part._target_watch = healthy
    world.run_pass()
    assert overrides_of(world.target, "a.x") == {"retention.ms": "2"}


def test_target_that_falls_silent_while_writing_gets_the_rest_at_the_next_pass(world: World) -> None:
    class Falling(MemoryCluster):
        def alter_topic_configs(self, alterations: object) -> dict[str, ItemFault | None]:
            raise ClusterUnreachable("cluster b: no answer")

    set_config(world.source, "x", "retention.ms", "2")
    world.target.__class__ = Falling
    report = world.run_pass()
    assert [str(outcome.error) for outcome in report.outcomes] == ["UNREACHABLE: cluster b: no answer"]
    world.target.__class__ = MemoryCluster
    world.run_pass()
    assert overrides_of(world.target, "a.x") == {"retention.ms": "2"}


@pytest.mark.parametrize("alias", ["a", "b"])
def test_cluster_that_is_another_one_now_stops_the_flow_and_nothing_is_written(world: World, alias: str) -> None:
    (world.source if alias == "a" else world.target).id = "another"
    set_config(world.source, "x", "retention.ms", "2")
    for after in (1.0, INTERVAL, 1.0):
        with pytest.raises(WrongCluster, match=f"{alias}.bootstrap.servers leads to the cluster another"):
            world.run_pass(after=after)
    assert world.target.writes == 0
    assert overrides_of(world.target, "a.x") == {"retention.ms": "1"}


def test_source_that_may_not_be_described_stops_the_flow(world: World) -> None:
    world.source.denied = {"describe"}
    with pytest.raises(RightsMissing):
        world.run_pass()


def test_required_without_the_api_stops_the_flow_after_the_other_kinds_are_written_and_recorded() -> None:
    world = World(flow_settings(incremental=Incremental.REQUIRED))
    world.target.incremental = False
    put_topic(world.source, "x", retention_ms="1")
    put_topic(world.target, "a.x", retention_ms="2")
    put_topic(world.source, "new")
    with pytest.raises(IncrementalUnsupported, match="required"):
        world.run_pass()
    assert world.ledger().owned(Kind.TOPIC) == {("a.new",)}
    assert [event.key for event in world.events() if event.result == "applied"] == [("a.new",)]
    world.target.incremental = True
    world.run_pass()
    assert overrides_of(world.target, "a.x") == {"retention.ms": "1"}


def test_error_of_the_ledger_stops_the_pass_before_anything_is_written() -> None:
    world = World()
    put_topic(world.source, "x")
    world.target.reachable = False
    with pytest.raises(LockstepError):
        world.run_pass()
    world.target.reachable = True
    assert world.target.writes == 0


class Overtaken(PlainWatch):
    """A look that is out of date at once: something happens right after it."""

    def __init__(self, cluster: MemoryCluster) -> None:
        super().__init__(cluster)
        self.then: list[Callable[[], object]] = []

    def changed(self, shards: Sequence[Sequence[str]]) -> set[str]:
        differing = super().changed(shards)
        if self.then:
            self.then.pop(0)()
        return differing


def test_config_that_is_set_behind_a_look_and_taken_back_before_the_next_is_taken_back_soon(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = world.controller(Kind.TOPIC)
    assert isinstance(part, TopicController)
    watch = part._source_watch = Overtaken(world.source)
    world.run_pass()
    world.run_pass()
    set_config(world.source, "x", "retention.bytes", "5")
    watch.then = [lambda: set_config(world.source, "x", "retention.ms", "9")]
    world.run_pass()
    with monkeypatch.context() as patched:
        # With a budget, the topic's next turn may come some passes later.
        patched.setattr(part._schedule, "turn", lambda now, **_: iter(()))
        world.run_pass()
        world.run_pass()
    assert overrides_of(world.target, "a.x") == {"retention.ms": "9", "retention.bytes": "5"}
    set_config(world.source, "x", "retention.ms", "1")
    world.run_pass()
    assert overrides_of(world.target, "a.x") == {"retention.ms": "1", "retention.bytes": "5"}
