"""A flow in a job: its trouble is in its status, and it waits before it tries again."""

from __future__ import annotations

import logging
import time

import pytest

from sinks.engine.flow_task import LONGEST_WAIT, FlowTask
from sinks.engine.ledger import Entry
from sinks.engine.metrics import Metrics
from sinks.engine.model import Kind, Outcome
from sinks.engine.plan import Plan, Unobserved
from sinks.engine.reconcile import Report
from sinks.engine.status import FlowState, Heartbeats, Task
from sinks.faults import (
    ClusterUnreachable,
    IncrementalUnsupported,
    ItemFault,
    RightsMissing,
    UnsafePlan,
    WrongCluster,
)
from streaming.errors import LockstepError
from tests.sinks.builders import (
    FLOW,
    Clock,
    World,
    config_change,
    deaf,
    flow_settings,
    put_topic,
    topic_change,
)
from tests.sinks.walks import ScriptedPass

INTERVAL = 60.0


def beat(seconds_ago: float = 0.0, latency_ms: int | None = None) -> Heartbeats:
    """A heartbeat that was emitted so long ago."""
    return Heartbeats(round((time.time() - seconds_ago) * 1000), latency_ms)


def seconds_until_tried_again(task: FlowTask, walks: ScriptedPass, clock: Clock) -> int:
    """Steps once a second until the next walk."""
    before, start = len(walks.asked), clock.now
    while len(walks.asked) == before:
        clock.now += 1
        task.step(None)
        assert clock.now - start < 10_000, "no walk in 10,000 s"
    return round(clock.now - start)


def test_healthy_flow_is_live_with_its_age_and_latency(task: FlowTask) -> None:
    status = task.step(beat(2.0, 150))
    assert status.state is FlowState.LIVE
    assert status.heartbeat_age_seconds == pytest.approx(2.0, abs=1.0)
    assert status.replication_latency_ms == 150
    assert {kind: of.task for kind, of in status.kinds.items()} == dict.fromkeys(Kind, Task.ACTIVE)
    assert all(of.last_success is not None for of in status.kinds.values())


@pytest.mark.parametrize(("heartbeat", "state"), [(None, FlowState.NO_HEARTBEAT), (beat(31.0), FlowState.STALE)])
def test_silent_mm2_is_seen_and_work_goes_on(
    task: FlowTask, walks: ScriptedPass, heartbeat: Heartbeats | None, state: FlowState
) -> None:
    assert task.step(heartbeat).state is state
    assert len(walks.asked) == 1


def test_older_heartbeat_that_comes_later_does_not_count(task: FlowTask) -> None:
    task.step(beat(1.0, 1))
    assert task.step(beat(500.0, 2)).replication_latency_ms == 1


def test_error_of_a_flow_is_in_its_status_and_raises_nothing(task: FlowTask, walks: ScriptedPass) -> None:
    walks.error = WrongCluster("b.bootstrap.servers leads elsewhere")
    status = task.step(beat())
    assert (status.state, status.reason) == (FlowState.ERROR, "b.bootstrap.servers leads elsewhere")
    assert {kind: of.task for kind, of in status.kinds.items()} == dict.fromkeys(Kind, Task.FAULTED)
    assert status.kinds[Kind.TOPIC].reason == "b.bootstrap.servers leads elsewhere"


def test_trouble_of_one_flow_leaves_the_others_alone() -> None:
    broken, healthy = World(), World(flow_settings(flow=type(FLOW)("c", "b")))
    broken.source.reachable = False
    put_topic(healthy.source, "x")
    metrics = Metrics("0")
    states = [FlowTask(world.reconcile, deaf, metrics).step(beat()).state for world in (broken, healthy)]
    assert states == [FlowState.ERROR, FlowState.LIVE]
    assert "c.x" in healthy.target.topics


def test_unreachable_cluster_is_tried_again_ever_less_often(task: FlowTask, walks: ScriptedPass, clock: Clock) -> None:
    walks.error = ClusterUnreachable("cluster b: no answer")
    task.step(None)
    waits = [seconds_until_tried_again(task, walks, clock) for _ in range(8)]
    assert waits == [1, 2, 4, 8, 16, *[round(LONGEST_WAIT)] * 3]


def test_unreachable_cluster_leaves_the_kinds_as_they_were(task: FlowTask, walks: ScriptedPass) -> None:
    walks.error = ClusterUnreachable("cluster b: no answer")
    assert task.step(None).kinds[Kind.TOPIC].task is Task.ACTIVE


@pytest.mark.parametrize("error", [RightsMissing("grant"), WrongCluster("other"), UnsafePlan("4 of 10")])
def test_terminal_error_is_looked_at_again_with_every_comparison(
    task: FlowTask, walks: ScriptedPass, clock: Clock, error: LockstepError
) -> None:
    walks.error = error
    task.step(None)
    assert [seconds_until_tried_again(task, walks, clock) for _ in range(3)] == [INTERVAL] * 3


def test_flow_that_recovers_says_so_and_waits_no_more(
    task: FlowTask, walks: ScriptedPass, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    walks.error = ClusterUnreachable("cluster b: no answer")
    task.step(None)
    seconds_until_tried_again(task, walks, clock)
    walks.error = None
    with caplog.at_level(logging.INFO):
        assert seconds_until_tried_again(task, walks, clock) == 2
    assert "a->b: goes on again" in caplog.messages
    status = task.step(beat())
    assert (status.state, status.reason) == (FlowState.LIVE, None)
    assert seconds_until_tried_again(task, walks, clock) == 1


def test_same_error_is_logged_once(
    task: FlowTask, walks: ScriptedPass, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    walks.error = ClusterUnreachable("cluster b: no answer")
    task.step(None)
    seconds_until_tried_again(task, walks, clock)
    assert len(caplog.messages) == 1


def test_broker_without_the_incremental_api_faults_topic_configs_alone(task: FlowTask, walks: ScriptedPass) -> None:
    walks.error = IncrementalUnsupported("upgrade")
    kinds = task.step(None).kinds
    assert kinds[Kind.TOPIC_CONFIG].task is Task.FAULTED
    assert kinds[Kind.TOPIC].task is Task.ACTIVE


def test_disabled_kind_stays_disabled_whatever_happens(walks: ScriptedPass, clock: Clock) -> None:
    walks.settings = flow_settings(enabled=[Kind.TOPIC])
    task = FlowTask(walks, deaf, Metrics("0"), clock)  # type: ignore[arg-type]
    assert task.step(None).kinds[Kind.TOPIC_CONFIG].task is Task.DISABLED
    walks.error = WrongCluster("other")
    assert task.step(None).kinds[Kind.TOPIC_CONFIG].task is Task.DISABLED


def test_failed_changes_are_drift_and_no_success(task: FlowTask, walks: ScriptedPass) -> None:
    success = task.step(None).kinds[Kind.TOPIC_CONFIG].last_success
    change = config_change("a.x", "retention.ms", "1", "2")
    walks.report = Report(Plan(FLOW), (Outcome(change, ItemFault("INVALID_CONFIG", "no")),))
    status = task.step(None).kinds[Kind.TOPIC_CONFIG]
    assert (status.task, status.drift, status.last_success) == (Task.ACTIVE, 1, success)


def test_what_could_not_be_seen_is_a_reason_and_no_success(task: FlowTask, walks: ScriptedPass) -> None:
    walks.report = Report(Plan(FLOW, errors=(Unobserved(Kind.TOPIC_CONFIG, "x on a: denied"),)))
    status = task.step(None).kinds[Kind.TOPIC_CONFIG]
    assert (status.reason, status.last_success) == ("x on a: denied", None)


def test_every_write_denied_is_a_fault_with_the_rights_to_grant(task: FlowTask, walks: ScriptedPass) -> None:
    fault = ItemFault("TOPIC_AUTHORIZATION_FAILED", "no")
    changes = [config_change(f"a.{name}", "retention.ms", "1", "2") for name in "xy"]
    walks.report = Report(Plan(FLOW), tuple(Outcome(change, fault) for change in changes))
    status = task.step(None).kinds[Kind.TOPIC_CONFIG]
    assert status.task is Task.FAULTED
    assert status.reason is not None
    assert "2 topics" in status.reason
    assert "grant ALTER_CONFIGS" in status.reason


def test_refused_key_is_in_the_status_with_its_reason() -> None:
    world = World()
    world.target.policy = lambda topic, name, value: "30 days at most" if name == "retention.ms" else None
    put_topic(world.source, "x", retention_ms="1")
    task = FlowTask(world.reconcile, deaf, Metrics("0"))
    for _ in range(3):
        status = task.step(beat()).kinds[Kind.TOPIC_CONFIG]
    (refusal,) = status.refused
    assert status.drift == 1
    assert status.reason == refusal.reason
    assert "30 days at most" in refusal.reason


def test_paused_kind_says_so_and_goes_on_when_resumed() -> None:
    world = World()
    world.ledger().put({(Entry.PAUSED, (Kind.TOPIC_CONFIG.value,)): ""})
    task = FlowTask(world.reconcile, deaf, Metrics("0"))
    assert task.step(None).kinds[Kind.TOPIC_CONFIG].task is Task.PAUSED
    world.ledger().put({(Entry.PAUSED, (Kind.TOPIC_CONFIG.value,)): None})
    assert task.step(None, everything=True).kinds[Kind.TOPIC_CONFIG].task is Task.ACTIVE


def test_topics_that_mm2_has_not_made_yet_are_the_reason(task: FlowTask, walks: ScriptedPass) -> None:
    walks.report = Report(Plan(FLOW), not_there=("a.heartbeats on b",))
    assert task.step(None).reason == "MM2 has not made these topics yet: a.heartbeats on b"
    walks.report = Report(Plan(FLOW))
    assert task.step(None).reason is None


def test_creation_that_failed_is_logged_with_its_reason(
    task: FlowTask, walks: ScriptedPass, caplog: pytest.LogCaptureFixture
) -> None:
    walks.report = Report(Plan(FLOW), (Outcome(topic_change("a.x", None, 1), ItemFault("POLICY_VIOLATION", "no")),))
    task.step(None)
    assert caplog.messages == ["a->b: create ('a.x',): POLICY_VIOLATION: no"]
