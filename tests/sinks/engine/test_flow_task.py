"""A flow in a job: its trouble is in its status, and it waits before it tries again."""

from __future__ import annotations

import logging
import time
from dataclasses import replace

import pytest

from sinks.engine.flow_task import FlowTask
from sinks.engine.metrics import Metrics
from sinks.engine.report import KindTrouble, Report
from sinks.engine.status import FlowState, Task
from sinks.every_kind.backoff import LONGEST_RECOMPARE_S
from sinks.faults import (
    ClusterUnreachable,
    ItemFault,
    LedgerUntrusted,
    RightsMissing,
    WrongCluster,
)
from sinks.ledger.failover_record import Command, FailoverRecord, State
from sinks.ledger.ledger import Entry
from sinks.model.changes import Kind, Op, Outcome
from sinks.model.plan import Plan, Refusal, Unobserved
from streaming.errors import LockstepError
from streaming.hints import NewestHeartbeat
from tests.sinks.builders import (
    FLOW,
    Clock,
    World,
    config_change,
    flow_settings,
    put_topic,
    topic_change,
    world_in_step,
)
from tests.sinks.scripted_pass import ScriptedPass

INTERVAL = 60.0


def beat(seconds_ago: float = 0.0, latency_ms: int | None = None) -> NewestHeartbeat:
    """A heartbeat that was emitted so long ago."""
    return NewestHeartbeat(round((time.time() - seconds_ago) * 1000), latency_ms)


def seconds_until_tried_again(task: FlowTask, passes: ScriptedPass, clock: Clock) -> int:
    """Steps once a second until the next pass."""
    before, start = len(passes.asked), clock.now
    while len(passes.asked) == before:
        clock.now += 1
        task.step(None)
        assert clock.now - start < 10_000, "no pass in 10,000 s"
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
    task: FlowTask, passes: ScriptedPass, heartbeat: NewestHeartbeat | None, state: FlowState
) -> None:
    assert task.step(heartbeat).state is state
    assert len(passes.asked) == 1


@pytest.mark.parametrize("state", [State.PROMOTED, State.FAILED_OVER, State.INVALIDATED, State.REVERSING])
@pytest.mark.parametrize("heartbeat", [None, beat(31.0), beat()])
def test_flow_whose_target_has_taken_over_has_ended_whatever_mm2_does(state: State, heartbeat: NewestHeartbeat) -> None:
    world = world_in_step()
    world.ledger().put({(Entry.FAILOVER, ("state",)): FailoverRecord(state).to_text()})
    world.source.reachable = state is not State.FAILED_OVER
    status = FlowTask(world.reconcile, Metrics("0")).step(heartbeat, everything=True)
    assert (status.state, status.reason) == (FlowState.ENDED, None)


def test_takeover_that_is_half_done_is_no_end_yet() -> None:
    world = world_in_step()
    half = FailoverRecord(State.FAILING_OVER, Command.FAIL_OVER)
    world.ledger().put({(Entry.FAILOVER, ("state",)): half.to_text()})
    assert FlowTask(world.reconcile, Metrics("0")).step(beat(31.0), everything=True).state is FlowState.STALE


def test_once_mm2_copied_a_heartbeat_one_that_it_emits_on_the_target_proves_nothing(task: FlowTask) -> None:
    emitted = task.step(replace(beat(1.0), copied=False))
    assert (emitted.state, emitted.heartbeat_copied) == (FlowState.LIVE, False)
    copied = task.step(beat(5.0))
    assert (copied.state, copied.heartbeat_copied) == (FlowState.LIVE, True)
    assert task.step(beat(31.0)).state is FlowState.LIVE, "an older one changes nothing"
    later = task.step(replace(beat(0.0), copied=False))
    assert later.heartbeat_copied
    assert later.heartbeat_age_seconds == pytest.approx(5.0, abs=2.0)


def test_a_kind_is_unknown_until_it_was_compared() -> None:
    world = World()
    world.source_acls.denied = {"describe"}
    task = FlowTask(world.reconcile, Metrics("0"))
    assert {of.task for of in task.status().kinds.values()} <= {Task.UNKNOWN, Task.DISABLED}
    kinds = task.step(beat()).kinds
    assert (kinds[Kind.ACL].task, kinds[Kind.TOPIC].task) == (Task.UNKNOWN, Task.ACTIVE)
    world.source_acls.denied = set()
    task.request_pass((), 0)
    assert task.step(beat()).kinds[Kind.ACL].task is Task.ACTIVE


def test_error_of_a_flow_is_in_its_status_and_raises_nothing(task: FlowTask, passes: ScriptedPass) -> None:
    passes.error = WrongCluster("b.bootstrap.servers leads elsewhere")
    status = task.step(beat())
    assert (status.state, status.reason) == (FlowState.ERROR, "b.bootstrap.servers leads elsewhere")
    assert {kind: of.task for kind, of in status.kinds.items()} == dict.fromkeys(Kind, Task.UNKNOWN)
    # The flow has the reason: it is said once.
    assert {of.reason for of in status.kinds.values()} == {None}


def test_trouble_of_one_flow_leaves_the_others_alone() -> None:
    broken, healthy = World(), World(flow_settings(flow=type(FLOW)("c", "b")))
    broken.source.reachable = False
    put_topic(healthy.source, "x")
    metrics = Metrics("0")
    states = [FlowTask(world.reconcile, metrics).step(beat()).state for world in (broken, healthy)]
    assert states == [FlowState.ERROR, FlowState.LIVE]
    assert "c.x" in healthy.target.topics


def test_unreachable_cluster_is_tried_again_ever_less_often(task: FlowTask, passes: ScriptedPass, clock: Clock) -> None:
    passes.error = ClusterUnreachable("cluster b: no answer")
    task.step(None)
    waits = [seconds_until_tried_again(task, passes, clock) for _ in range(8)]
    assert waits == [1, 2, 4, 8, 16, *[round(LONGEST_RECOMPARE_S)] * 3]


def test_kinds_of_a_flow_in_error_are_unknown_since_then_and_known_again_afterwards(
    task: FlowTask, passes: ScriptedPass, clock: Clock
) -> None:
    before = task.step(beat()).kinds[Kind.TOPIC]
    passes.error = ClusterUnreachable("cluster b: no answer")
    since = {task.step(beat()).kinds[Kind.TOPIC].since for clock.now in (2000.0, 3000.0)}
    during = task.status().kinds[Kind.TOPIC]
    assert (during.task, during.drift, during.last_success) == (Task.UNKNOWN, None, before.last_success)
    assert since == {during.since}
    assert during.since is not None
    passes.error, clock.now = None, 4000.0
    after = task.step(beat()).kinds[Kind.TOPIC]
    assert (after.task, after.drift, after.since) == (Task.ACTIVE, 0, None)


def test_kinds_of_a_flow_without_fresh_heartbeats_are_unknown_since_the_newest(task: FlowTask) -> None:
    newest = beat(31.0)
    status = task.step(newest)
    assert status.reason == "no heartbeat for 31 s: is MM2 running?"
    assert {kind: of.task for kind, of in status.kinds.items()} == dict.fromkeys(Kind, Task.UNKNOWN)
    (since,) = {of.since for of in status.kinds.values()}
    assert since is not None
    assert round(since.timestamp() * 1000) == newest.timestamp_ms


def test_what_differs_is_not_known_before_the_first_pass(task: FlowTask) -> None:
    assert {of.drift for of in task.status().kinds.values()} == {None}


@pytest.mark.parametrize("error", [RightsMissing("grant"), WrongCluster("other"), LedgerUntrusted("vanished")])
def test_terminal_error_is_looked_at_again_with_every_comparison(
    task: FlowTask, passes: ScriptedPass, clock: Clock, error: LockstepError
) -> None:
    passes.error = error
    task.step(None)
    assert [seconds_until_tried_again(task, passes, clock) for _ in range(3)] == [INTERVAL] * 3


def test_flow_that_recovers_says_so_and_waits_no_more(
    task: FlowTask, passes: ScriptedPass, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    passes.error = ClusterUnreachable("cluster b: no answer")
    task.step(None)
    seconds_until_tried_again(task, passes, clock)
    passes.error = None
    with caplog.at_level(logging.INFO):
        assert seconds_until_tried_again(task, passes, clock) == 2
    assert "a->b: works again" in caplog.messages
    status = task.step(beat())
    assert (status.state, status.reason) == (FlowState.LIVE, None)
    assert seconds_until_tried_again(task, passes, clock) == 1


def test_same_error_is_logged_once(
    task: FlowTask, passes: ScriptedPass, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    passes.error = ClusterUnreachable("cluster b: no answer")
    task.step(None)
    seconds_until_tried_again(task, passes, clock)
    assert len(caplog.messages) == 1


def test_trouble_of_one_kind_faults_it_alone(task: FlowTask, passes: ScriptedPass) -> None:
    passes.report = Report(Plan(FLOW), trouble=KindTrouble({Kind.TOPIC_CONFIG: "upgrade"}))
    kinds = task.step(None).kinds
    assert (kinds[Kind.TOPIC_CONFIG].task, kinds[Kind.TOPIC_CONFIG].reason) == (Task.FAULTED, "upgrade")
    assert kinds[Kind.TOPIC].task is Task.ACTIVE


def test_exception_that_nobody_thought_of_is_in_the_status_and_is_tried_again(
    task: FlowTask, passes: ScriptedPass, clock: Clock
) -> None:
    passes.error = ZeroDivisionError("a bug")
    status = task.step(None)
    assert status.state is FlowState.ERROR
    assert status.reason is not None and "ZeroDivisionError: a bug" in status.reason
    passes.error = None
    clock.now += 60.0
    assert task.step(None).state is not FlowState.ERROR


def test_disabled_kind_stays_disabled_whatever_happens(passes: ScriptedPass, clock: Clock) -> None:
    passes.settings = flow_settings(enabled=[Kind.TOPIC])
    task = FlowTask(passes, Metrics("0"), clock)  # type: ignore[arg-type]
    assert task.step(None).kinds[Kind.TOPIC_CONFIG].task is Task.DISABLED
    passes.error = WrongCluster("other")
    assert task.step(None).kinds[Kind.TOPIC_CONFIG].task is Task.DISABLED


def test_failed_changes_are_drift_and_no_success(task: FlowTask, passes: ScriptedPass) -> None:
    success = task.step(None).kinds[Kind.TOPIC_CONFIG].last_success
    change = config_change("a.x", "retention.ms", "1", "2")
    passes.report = Report(Plan(FLOW), (Outcome(change, ItemFault("INVALID_CONFIG", "no")),))
    status = task.step(None).kinds[Kind.TOPIC_CONFIG]
    assert (status.task, status.drift, status.last_success) == (Task.ACTIVE, 1, success)


def test_what_could_not_be_seen_is_a_reason_and_no_success(task: FlowTask, passes: ScriptedPass) -> None:
    passes.report = Report(Plan(FLOW, errors=(Unobserved(Kind.TOPIC_CONFIG, "x on a: denied"),)))
    status = task.step(None).kinds[Kind.TOPIC_CONFIG]
    assert (status.reason, status.last_success) == ("x on a: denied", None)


def test_every_write_denied_is_a_fault_with_the_rights_to_grant(task: FlowTask, passes: ScriptedPass) -> None:
    fault = ItemFault("TOPIC_AUTHORIZATION_FAILED", "no")
    changes = [config_change(f"a.{name}", "retention.ms", "1", "2") for name in "xy"]
    passes.report = Report(Plan(FLOW), tuple(Outcome(change, fault) for change in changes))
    status = task.step(None).kinds[Kind.TOPIC_CONFIG]
    assert status.task is Task.FAULTED
    assert status.reason is not None
    assert "2 changes" in status.reason
    assert "grant ALTER_CONFIGS" in status.reason


def test_a_fault_stays_while_what_was_denied_waits_for_its_next_try(task: FlowTask, passes: ScriptedPass) -> None:
    key, reason = ("a.x", "retention.ms"), "TOPIC_AUTHORIZATION_FAILED: no (refused 1 time, tried again in 30 s)"
    waiting = Refusal(Kind.TOPIC_CONFIG, Op.UPDATE, key, reason, denied=True)
    passes.report = Report(Plan(FLOW, refused=(waiting,)))
    status = task.step(None).kinds[Kind.TOPIC_CONFIG]
    assert (status.task, status.drift) == (Task.FAULTED, 1)
    assert "grant ALTER_CONFIGS" in str(status.reason)


def test_refused_key_is_in_the_status_with_its_reason() -> None:
    world = World()
    world.target.policy = lambda topic, name, value: "30 days at most" if name == "retention.ms" else None
    put_topic(world.source, "x", retention_ms="1")
    task = FlowTask(world.reconcile, Metrics("0"))
    for _ in range(3):
        status = task.step(beat()).kinds[Kind.TOPIC_CONFIG]
    (refusal,) = status.refused
    assert status.drift == 1
    assert status.reason == refusal.reason
    assert "30 days at most" in refusal.reason


def test_paused_kind_says_so_and_goes_on_when_resumed() -> None:
    world = World()
    world.ledger().put({(Entry.PAUSED, (Kind.TOPIC_CONFIG.value,)): ""})
    task = FlowTask(world.reconcile, Metrics("0"))
    paused = task.step(None).kinds[Kind.TOPIC_CONFIG]
    assert (paused.task, paused.drift) == (Task.PAUSED, None)
    assert paused.reason == "paused, so the differences are not known. `lockstep resume topic-config` starts it again"
    world.ledger().put({(Entry.PAUSED, (Kind.TOPIC_CONFIG.value,)): None})
    assert task.step(None, everything=True).kinds[Kind.TOPIC_CONFIG].task is Task.ACTIVE


def test_topics_that_mm2_has_not_made_yet_are_the_reason(task: FlowTask, passes: ScriptedPass) -> None:
    passes.report = Report(Plan(FLOW), missing_topics=("a.heartbeats on b",))
    assert task.step(None).reason == "MM2 has not made these topics yet: a.heartbeats on b"
    passes.report = Report(Plan(FLOW))
    assert task.step(beat()).reason is None


def test_creation_that_failed_is_logged_with_its_reason(
    task: FlowTask, passes: ScriptedPass, caplog: pytest.LogCaptureFixture
) -> None:
    passes.report = Report(Plan(FLOW), (Outcome(topic_change("a.x", None, 1), ItemFault("POLICY_VIOLATION", "no")),))
    task.step(None)
    assert caplog.messages == ["a->b: create a.x: POLICY_VIOLATION: no"]


def test_flow_without_heartbeats_is_live_while_the_copies_catch_up(task: FlowTask, passes: ScriptedPass) -> None:
    passes.report = replace(passes.report, caught_up_ms=beat(2.0).timestamp_ms)
    assert task.step(None).state is FlowState.LIVE


def test_a_job_that_starts_while_the_mirror_stands_still_says_so() -> None:
    """The stream goes on behind the last heartbeat."""
    task = FlowTask(world_in_step().reconcile, Metrics("0"), last_heartbeat=lambda: beat(373.0))
    assert task.step(None, everything=True).state is FlowState.STALE
    assert task.step(beat(1.0)).state is FlowState.LIVE
