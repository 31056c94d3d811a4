"""A flow that goes on with other settings: between two walks, audited, and everything is compared again."""

from __future__ import annotations

from sinks.engine.audit import SettingChange
from sinks.engine.flow_task import FlowTask
from streaming.errors import LockstepError
from tests.sinks.scripted_pass import ScriptedPass

CHANGE = SettingChange("topics", "orders", "orders,bills")


def test_call_waits_for_the_next_walk_which_then_looks_at_everything(task: FlowTask, passes: ScriptedPass) -> None:
    told: list[int] = []
    task.step(None)
    task.tell(lambda: told.append(len(passes.asked)), [CHANGE])
    assert told == []
    task.step(None)
    task.step(None)
    assert told == [1]
    assert passes.asked == [(set(), False), (set(), True), (set(), False)]
    assert passes.noted == [CHANGE]


def test_renewed_flow_walks_with_new_parts_and_closes_the_old_ones(task: FlowTask, passes: ScriptedPass) -> None:
    other = ScriptedPass()
    task.renew(lambda: other, [CHANGE])  # type: ignore[arg-type, return-value]
    assert not passes.closed
    task.step(None)
    assert passes.closed
    assert passes.replaced, "what it tells last must not hold up the flow that goes on"
    assert (passes.asked, other.asked) == ([], [(set(), False)])
    assert other.noted == [CHANGE]


def test_renewal_that_fails_is_tried_again_and_nothing_walks_with_the_old_settings(
    task: FlowTask, passes: ScriptedPass
) -> None:
    other, faults = ScriptedPass(), [LockstepError("no such truststore")]

    def build() -> object:
        if faults:
            raise faults.pop()
        return other

    task.renew(build, [CHANGE])  # type: ignore[arg-type]
    assert task.step(None).reason == "no such truststore"
    assert task.step(None).reason is None
    assert (passes.asked, other.asked, other.noted) == ([], [(set(), False)], [CHANGE])


def test_only_the_last_of_two_renewals_before_a_walk_is_made(task: FlowTask) -> None:
    never, last = ScriptedPass(), ScriptedPass()
    task.renew(lambda: never, [])  # type: ignore[arg-type, return-value]
    task.renew(lambda: last, [])  # type: ignore[arg-type, return-value]
    task.step(None)
    assert (never.asked, last.asked) == ([], [(set(), False)])
