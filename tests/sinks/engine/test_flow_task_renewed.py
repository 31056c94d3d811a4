"""A flow that goes on with other settings: between two passes, audited, and everything is compared again."""

from __future__ import annotations

from sinks.engine.flow_task import FlowTask
from sinks.engine.status import FlowState
from sinks.faults import ClusterUnreachable
from sinks.ledger.audit import SettingChange
from streaming.errors import LockstepError
from tests.sinks.builders import Clock, flow_settings
from tests.sinks.scripted_pass import ScriptedPass

CHANGE = SettingChange("topics", "orders", "orders,bills")
LATER = SettingChange("topics", "orders,bills", "bills")


def test_call_waits_for_the_next_pass_which_then_looks_at_everything(task: FlowTask, passes: ScriptedPass) -> None:
    told: list[int] = []
    task.step(None)
    task.mailbox.add_call(lambda: told.append(len(passes.asked)), [CHANGE])
    assert told == []
    task.step(None)
    task.step(None)
    assert told == [1]
    assert passes.asked == [(set(), False), (set(), True), (set(), False)]
    assert passes.noted == [CHANGE]


def test_settings_that_the_flow_does_not_read_are_audited_and_compare_nothing(
    task: FlowTask, passes: ScriptedPass
) -> None:
    task.mailbox.add_changes([CHANGE])
    task.step(None)
    assert (passes.asked, passes.noted) == ([(set(), False)], [CHANGE])


def test_renewed_flow_runs_with_new_parts_and_closes_the_old_ones(task: FlowTask, passes: ScriptedPass) -> None:
    other = ScriptedPass()
    task.mailbox.renew(lambda: other, [CHANGE])  # type: ignore[arg-type, return-value]
    assert not passes.closed
    task.step(None)
    assert passes.closed
    assert passes.replaced, "what it tells last must not hold up the flow that goes on"
    assert (passes.asked, other.asked) == ([], [(set(), False)])
    assert other.noted == [CHANGE]


def test_renewal_that_fails_is_tried_again_ever_less_often_and_nothing_runs_with_the_old_settings(
    task: FlowTask, passes: ScriptedPass, clock: Clock
) -> None:
    other, faults, tries = ScriptedPass(), [LockstepError("no such truststore")], list[float]()

    def build() -> object:
        tries.append(clock.now)
        if faults:
            raise faults.pop()
        return other

    task.mailbox.renew(build, [CHANGE])  # type: ignore[arg-type]
    for _ in range(5):
        assert task.step(None).reason == "no such truststore"
    assert len(tries) == 1
    clock.now += flow_settings().pace.full_comparison_interval
    assert task.step(None).state is not FlowState.ERROR
    assert (passes.asked, other.asked, other.noted) == ([], [(set(), False)], [CHANGE])


def test_build_that_fails_loses_neither_calls_nor_changes_nor_who_comes_meanwhile(
    task: FlowTask, passes: ScriptedPass
) -> None:
    other, told = ScriptedPass(), list[str]()

    def fails() -> ScriptedPass:
        task.mailbox.add_call(lambda: told.append("meanwhile"), [LATER])
        raise LockstepError("no such truststore")

    def build() -> ScriptedPass:
        return (builds.pop(0))()

    builds = [fails, lambda: other]
    task.mailbox.renew(build, [CHANGE])  # type: ignore[arg-type]
    task.mailbox.add_call(lambda: told.append("before"), [])
    assert task.step(None).reason == "no such truststore"
    assert (told, passes.asked, passes.noted) == ([], [], [])
    assert task.step(None).state is not FlowState.ERROR
    assert (told, other.noted) == (["before", "meanwhile"], [CHANGE, LATER])
    assert (passes.asked, other.asked) == ([], [(set(), True)])


def test_newer_settings_that_come_while_a_build_fails_are_those_that_count(
    task: FlowTask, passes: ScriptedPass
) -> None:
    newer = ScriptedPass()

    def fails() -> ScriptedPass:
        task.mailbox.renew(lambda: newer, [LATER])  # type: ignore[arg-type, return-value]
        raise LockstepError("no such truststore")

    task.mailbox.renew(fails, [CHANGE])  # type: ignore[arg-type]
    task.step(None)
    assert task.step(None).state is not FlowState.ERROR
    assert (passes.asked, newer.asked, newer.noted) == ([], [(set(), False)], [CHANGE, LATER])


def test_call_that_fails_is_made_again_and_those_before_it_are_not(
    task: FlowTask, passes: ScriptedPass, clock: Clock
) -> None:
    told, faults = list[str](), [LockstepError("not now")]

    def call() -> None:
        if faults:
            raise faults.pop()
        told.append("second")

    task.step(None)
    task.mailbox.add_call(lambda: told.append("first"), [CHANGE])
    task.mailbox.add_call(call, [LATER])
    assert task.step(None).reason == "not now"
    assert (told, passes.noted) == (["first"], [])
    clock.now += flow_settings().pace.full_comparison_interval
    assert task.step(None).state is not FlowState.ERROR
    assert (told, passes.noted) == (["first", "second"], [CHANGE, LATER])
    assert passes.asked == [(set(), False), (set(), True)]


def test_audit_that_fails_is_written_again_and_the_call_is_not_made_twice(
    task: FlowTask, passes: ScriptedPass, clock: Clock
) -> None:
    told: list[str] = []
    passes.unnoted = [ClusterUnreachable("b: no broker")]
    task.step(None)
    task.mailbox.add_call(lambda: told.append("once"), [CHANGE])
    assert task.step(None).reason == "b: no broker"
    clock.now += flow_settings().pace.full_comparison_interval
    assert task.step(None).state is not FlowState.ERROR
    assert (told, passes.noted) == (["once"], [CHANGE])
    assert passes.asked == [(set(), False), (set(), True)], "what the plug-in was told holds for everything"


def test_reload_that_comes_while_the_audit_is_written_is_done_by_the_next_pass(
    task: FlowTask, passes: ScriptedPass
) -> None:
    newer = ScriptedPass()
    passes.while_noting = lambda: task.mailbox.renew(lambda: newer, [LATER])  # type: ignore[arg-type, return-value]
    task.mailbox.add_call(lambda: None, [CHANGE])
    task.step(None)
    assert (passes.asked, passes.noted) == ([(set(), True)], [CHANGE])
    task.step(None)
    assert (newer.asked, newer.noted) == ([(set(), False)], [LATER])


def test_look_that_is_asked_for_while_a_build_fails_is_answered_by_no_pass_and_made_by_the_next(
    task: FlowTask, clock: Clock
) -> None:
    other, faults = ScriptedPass(), [LockstepError("no such truststore")]

    def build() -> ScriptedPass:
        if faults:
            raise faults.pop()
        return other

    task.mailbox.renew(build, [])  # type: ignore[arg-type]
    assert not task.request_pass(["x"], 0)
    task.step(None)
    clock.now += flow_settings().pace.full_comparison_interval
    task.step(None)
    assert other.asked == [({"x"}, False)]


def test_only_the_last_of_two_renewals_before_a_pass_is_made(task: FlowTask) -> None:
    never, last = ScriptedPass(), ScriptedPass()
    task.mailbox.renew(lambda: never, [])  # type: ignore[arg-type, return-value]
    task.mailbox.renew(lambda: last, [])  # type: ignore[arg-type, return-value]
    task.step(None)
    assert (never.asked, last.asked) == ([], [(set(), False)])
