"""A metadata-change signal comes once: a pass that fails in between does not lose it."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from sinks.engine.flow_task import FlowTask
from sinks.engine.metrics import Metrics
from sinks.engine.pass_schedule import POLL_REST
from sinks.engine.report import Report
from sinks.every_kind.backoff import LONGEST_RECOMPARE_S
from sinks.every_kind.controller import PassContext
from sinks.every_kind.kinds_agenda import KindsAgenda
from sinks.faults import ClusterUnreachable, ItemFault, Observed, RightsMissing
from sinks.flow_settings import Pace
from sinks.kafka.ports.cluster import TopicConfigs
from sinks.model.changes import Kind
from tests.memory.memory_cluster import MemoryCluster
from tests.sinks.builders import World, flow_settings, overrides_of, put_topic, set_config, world_in_step
from tests.sinks.kinds.acls.acl_builders import acl
from tests.sinks.one_signal import with_signal
from tests.sinks.scripted_pass import ScriptedPass

DENIED = ItemFault("TOPIC_AUTHORIZATION_FAILED", "until the operator grants it")


def test_signal_of_a_pass_that_breaks_off_reaches_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_in_step()
    put_topic(world.source, "x", 1, retention_ms="1")
    signal = with_signal(world)
    for _ in range(4):
        world.run_pass()
    set_config(world.source, "x", "retention.ms", "2")
    signal.records = 1

    def silent(context: PassContext, agenda: KindsAgenda) -> object:
        raise ClusterUnreachable("silent for a moment")

    with monkeypatch.context() as broken:
        broken.setattr(world.controllers[0], "poll", silent)
        with pytest.raises(ClusterUnreachable):
            world.run_pass(after=1.0)
    world.run_pass(after=1.0)
    assert overrides_of(world.target, "a.x")["retention.ms"] == "2"


def test_pass_that_failed_is_tried_again_when_its_retry_is_due_however_far_the_next_poll_is() -> None:
    passes = ScriptedPass()
    task = FlowTask(passes, Metrics("1"), clock=lambda: 100.0)
    task._report = Report(task._report.plan, due=700.0)
    assert task.due_at() == 700.0
    passes.error = ClusterUnreachable("silent for a moment")
    task.step(None)
    assert task.due_at() == 101.0


def test_signal_that_comes_while_topics_are_in_trouble_is_looked_for_once_they_are_out_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = world_in_step()
    signal = with_signal(world)
    for _ in range(4):
        world.run_pass()

    def denied(context: PassContext, agenda: KindsAgenda) -> object:
        raise RightsMissing("for a moment")

    with monkeypatch.context() as broken:
        broken.setattr(world.controller(Kind.TOPIC_CONFIG), "poll", denied)
        for _ in range(4):
            world.run_pass()
        set_config(world.source, "x", "retention.ms", "2")
        signal.records = 1
        # In trouble, topics are not asked in every pass.
        world.run_pass(after=0.1)
    assert world.run_pass(after=LONGEST_RECOMPARE_S).everything is False
    assert overrides_of(world.target, "a.x")["retention.ms"] == "2"


@pytest.mark.parametrize(("side", "topic"), [("source", "x"), ("target", "a.x")])
def test_signal_that_comes_while_a_topic_may_not_be_read_is_compared_soon_after_it_may(
    monkeypatch: pytest.MonkeyPatch, side: str, topic: str
) -> None:
    world = world_in_step()
    signal = with_signal(world)
    cluster: MemoryCluster = getattr(world, side)
    describe = cluster.describe_topic_configs

    def denied(topics: Collection[str]) -> Observed[str, TopicConfigs]:
        seen = describe(topics)
        shown = {name: configs for name, configs in seen.items.items() if name != topic}
        return Observed(shown, {**seen.errors, **dict.fromkeys(seen.items.keys() - shown.keys(), DENIED)})

    world.run_pass(everything=True)
    for _ in range(4):
        world.run_pass()

    def passes(seconds: float) -> list[Report]:
        """Those that no signal asks for."""
        end, found = world.clock.now + seconds, [world.run_pass(after=0.0)]
        while (due := max(found[-1].due, world.clock.now + POLL_REST)) <= end:
            found.append(world.run_pass(after=due - world.clock.now))
        return found

    with monkeypatch.context() as broken:
        broken.setattr(cluster, "describe_topic_configs", denied)
        set_config(world.source, "x", "retention.ms", "2")
        signal.records = 1
        passes(10.0)
    assert overrides_of(world.target, "a.x") == {"retention.ms": "1"}
    assert not any(report.everything for report in passes(10.0))
    assert overrides_of(world.target, "a.x") == {"retention.ms": "2"}


def test_signal_that_comes_while_a_kind_rests_is_looked_for_when_its_interval_is_over() -> None:
    pace = Pace(observe_rate=0, intervals={Kind.ACL: 3.0})
    world = World(flow_settings(pace=pace))
    put_topic(world.source, "x")
    world.source_acls.bindings = {acl("ALLOW READ User:al TOPIC x")}
    world.settle()
    signal = with_signal(world)
    world.run_pass(after=3.0)
    world.source_acls.bindings = {*world.source_acls.bindings, acl("ALLOW READ User:bo TOPIC x")}
    signal.records = 1
    world.run_pass(after=1.0)
    world.run_pass(after=2.0)
    assert acl("ALLOW READ User:bo TOPIC a.x") in world.target_acls.bindings


def test_topic_that_somebody_asks_for_is_compared_though_its_kind_is_in_trouble(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = world_in_step()

    def denied(context: PassContext, agenda: KindsAgenda) -> object:
        raise RightsMissing("until the operator grants it")

    with monkeypatch.context() as broken:
        broken.setattr(world.controller(Kind.TOPIC_CONFIG), "poll", denied)
        for _ in range(4):
            world.run_pass(after=2.0)
    set_config(world.source, "x", "retention.ms", "2")
    world.run_pass("x", after=0.1)
    assert overrides_of(world.target, "a.x")["retention.ms"] == "2"
