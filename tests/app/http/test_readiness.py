"""Whether a target could take over now: nothing that is wrong or not known is a yes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from app.failover_facts import in_step_of_status
from app.http.readiness import GOES_ON, Readiness, ReadinessAnswer, readiness
from app.http.remedies import OTHERWISE, advice
from sinks.engine.status import Failing, FlowState, FlowStatus, KindStatus, Task, as_far_as_known, silence, standing_by
from sinks.engine.verify_status import STALLED, VerifyStatus
from sinks.failover import checks
from sinks.failover.checks import COUNTED, Check, CheckResult, ReadinessFacts
from sinks.failover.preflight import FailoverLoss, FailoverStatus, NotChecked, Preflight
from sinks.flow_settings import FailoverRules
from sinks.ledger.failover_record import Begun, FailoverRecord
from sinks.ledger.failover_states import Command, State
from sinks.model.changes import Kind, Op
from sinks.model.effective_drift import DifferingConfig, DriftGroup
from sinks.model.plan import Refusal
from sinks.model.times import utc_now
from sinks.protocol.controller import GroupSummary
from streaming.flow import Flow

ACTIVE = KindStatus(Task.ACTIVE, drift=0)
NOON = datetime(2026, 11, 22, 12, tzinfo=timezone.utc)
IN_STEP = FlowStatus(
    Flow("a", "b"),
    FlowState.LIVE,
    1.0,
    kinds={Kind.TOPIC: ACTIVE, Kind.ACL: KindStatus(Task.DISABLED), Kind.GROUP_OFFSET: ACTIVE},
    failover=FailoverStatus(preflight=Preflight(NOON, 0.1, loss=FailoverLoss(0, True)), not_checked=None),
)
OUTDATED = NotChecked("the job's preflight stands still", NOON)


def preflighted(**made: Any) -> FlowStatus:
    """A flow that is well but for what its last preflight came to."""
    return replace(IN_STEP, failover=FailoverStatus(preflight=Preflight(utc_now(), 0.1, **made), not_checked=None))


def test_a_flow_that_is_heard_and_in_step_is_a_yes() -> None:
    found = readiness(IN_STEP, {"SYNCED": 4}, 1)
    assert (found.answer, found.findings) == (ReadinessAnswer.YES, ())


@pytest.mark.parametrize("made", [None, Preflight(NOON, 0.1, loss=FailoverLoss(0, True))])
def test_without_a_preflight_and_with_an_old_one_neither_answer_is_known_and_both_say_since_when(
    made: Preflight | None,
) -> None:
    found = readiness(replace(IN_STEP, failover=FailoverStatus(preflight=made, not_checked=OUTDATED)), {}, 1)
    for answered in (found.cutover, found.failover):
        assert (answered.answer, answered.since) == (ReadinessAnswer.UNKNOWN, NOON)
        assert OUTDATED.reason in answered.headline
    assert found.as_json()["since"] == found.as_json()["failover"]["since"] == "2026-11-22T12:00:00Z"


def test_what_an_old_preflight_found_is_no_reason_any_more_and_what_passes_find_is_one() -> None:
    lost = Check("records not copied", CheckResult.FAILED, "7, the oldest 90 s old", "0", "MM2 lags")
    old = replace(IN_STEP, failover=FailoverStatus(preflight=Preflight(NOON, 0.1, of_clusters=(lost,))))
    assert readiness(old, {}, 1).answer is ReadinessAnswer.UNKNOWN
    drifting = replace(old, kinds={Kind.ACL: replace(ACTIVE, drift=2)})
    assert readiness(drifting, {}, 1).answer is ReadinessAnswer.NO


def test_before_the_first_pass_the_answer_is_not_known() -> None:
    assert readiness(IN_STEP, {}, 0).answer is ReadinessAnswer.UNKNOWN


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (FlowState.STALE, "no heartbeat for 94 s"),
        (FlowState.NO_HEARTBEAT, "was seen yet"),
        (FlowState.NO_JOB, "b gives no answer"),
        (FlowState.ERROR, "no answer"),
    ],
)
def test_a_state_other_than_live_is_a_no_with_its_reason(state: FlowState, words: str) -> None:
    reason = silence(state, 94.0) or "b gives no answer"
    status = replace(IN_STEP, state=state, heartbeat_age_seconds=94.0, reason=reason)
    found = readiness(status, {}, 1)
    assert found.answer is ReadinessAnswer.NO
    assert words in found.headline


def test_an_error_that_stopped_the_flow_comes_with_its_own_remedy() -> None:
    stopped = Failing("CLUSTER_UNREACHABLE", "check that the cluster is up")
    status = replace(IN_STEP, state=FlowState.ERROR, reason="cluster b: the ledger host: no answer", failure=stopped)
    assert readiness(status, {}, 1).findings[0].as_json()["remedy"] == stopped.remedy


@pytest.mark.parametrize("task", [Task.PAUSED, Task.FAULTED])
def test_a_kind_that_is_not_kept_is_a_no(task: Task) -> None:
    found = readiness(replace(IN_STEP, kinds={Kind.ACL: KindStatus(task, "because")}), {}, 1)
    assert found.answer is ReadinessAnswer.NO
    assert found.headline == "acl: because"


def test_what_the_preflight_saw_of_the_clusters_is_a_no_with_its_remedy() -> None:
    lost = Check("records not copied", CheckResult.FAILED, "7, the oldest 90 s old", "0", "MM2 lags")
    found = readiness(preflighted(of_clusters=(lost,)), {}, 1)
    assert (found.answer, found.headline) == (ReadinessAnswer.NO, "records not copied: 7, the oldest 90 s old")
    assert found.findings[0].as_json()["remedy"] == "MM2 lags"


@pytest.mark.parametrize("result", [CheckResult.OK, CheckResult.WARNING])
def test_what_stops_no_failover_is_a_remark_at_most(result: CheckResult) -> None:
    found = readiness(preflighted(of_clusters=(Check("fence", result, "no authorizer"),)), {}, 1)
    assert (found.answer, len(found.findings)) == (ReadinessAnswer.YES, int(result is CheckResult.WARNING))


def test_a_preflight_that_could_not_look_is_a_no() -> None:
    assert "no right to read" in readiness(preflighted(trouble="no right to read x"), {}, 1).headline


def test_a_fence_is_said_and_stops_nothing() -> None:
    found = readiness(replace(IN_STEP, failover=replace(IN_STEP.failover, record=FailoverRecord(State.FENCED))), {}, 1)
    assert (found.answer, found.findings[0].reason) == (ReadinessAnswer.YES, "the flow is FENCED")


def ended(state: State, doing: Command | None = None) -> Readiness:
    """After the target took over, with MM2 and the source switched off."""
    record = FailoverRecord(state, doing, begun=Begun("ann@ops", "2026-11-22T11:00:00Z"))
    kinds = {Kind.ACL: KindStatus(Task.UNKNOWN, "the flow has ended")}
    status = replace(IN_STEP, state=FlowState.ERROR, reason="a: no answer", kinds=kinds)
    return readiness(replace(status, failover=FailoverStatus(record)), {}, 1)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (State.PROMOTED, "b has taken over since 2026-11-22T11:00:00Z, by `lockstep cutover`"),
        (State.FAILED_OVER, "b has taken over since 2026-11-22T11:00:00Z, by `lockstep failover`"),
        (State.REVERSING, "b has taken over. The way back: REVERSING since 2026-11-22T11:00:00Z"),
    ],
)
def test_after_the_takeover_both_answers_are_done_and_what_leads_on_is_said(state: State, words: str) -> None:
    found = ended(state)
    assert (found.answer, found.headline, found.failover.headline) == (ReadinessAnswer.DONE, words, words)
    assert [(one.blocks, one.remedy) for one in found.findings] == [(False, GOES_ON)]


def test_a_takeover_that_is_half_done_asks_for_its_command_again() -> None:
    found = ended(State.FAILING_OVER, Command.FAIL_OVER)
    assert found.failover.answer is ReadinessAnswer.NO
    assert "`failover` is half done. Run it again" in found.headline


OFFLINE = Check("offline on the target", CheckResult.FAILED, "a.x-0", "0", "bring it back")


def without_source(made: Preflight | None, passes: int = 1, verdicts: Mapping[str, int] | None = None) -> Readiness:
    """The source gives no answer, 12 s after it was seen last."""
    kinds = as_far_as_known({Kind.ACL: replace(ACTIVE, last_success=NOON)}, FlowState.ERROR, NOON)
    status = replace(IN_STEP, state=FlowState.ERROR, reason="a: no answer", kinds=kinds)
    shown = replace(status, failover=FailoverStatus(preflight=made, not_checked=None if made else OUTDATED))
    return readiness(shown, verdicts or {}, passes, now=NOON + timedelta(seconds=12))


def from_memory(records: int | None = 3, **more: Any) -> Preflight:
    """What a job makes of a source that is gone."""
    return Preflight(NOON, 0.1, trouble="a: no answer", loss=FailoverLoss(records, False, NOON, 2), **more)


def test_source_that_is_gone_is_no_reason_against_a_failover_which_says_what_it_loses() -> None:
    found = without_source(from_memory())
    assert (found.answer, found.headline) == (ReadinessAnswer.NO, "a: no answer")
    assert found.failover.answer is ReadinessAnswer.YES
    assert "at most 3 records of those that a had 12 s ago" in found.failover.headline
    assert ("a->b", "what Lockstep keeps was last in step at 2026-11-22T12:00:00Z") in [
        (one.about, one.reason) for one in found.findings
    ]


@pytest.mark.parametrize(
    ("made", "passes", "verdicts", "answer", "words"),
    [
        (None, 1, {}, ReadinessAnswer.UNKNOWN, "failover --dry-run"),
        (Preflight(NOON, 0.1, loss=FailoverLoss(0, True)), 1, {}, ReadinessAnswer.UNKNOWN, "not known here"),
        (Preflight(NOON, 0.1, trouble="b: no answer"), 1, {}, ReadinessAnswer.NO, "b: no answer"),
        (from_memory(None), 1, {}, ReadinessAnswer.UNKNOWN, "of 2 partitions"),
        (from_memory(), 0, {}, ReadinessAnswer.UNKNOWN, "at most 3 records"),
        (from_memory(of_target=(OFFLINE,)), 1, {}, ReadinessAnswer.NO, "offline on the target: a.x-0"),
        (from_memory(), 1, {"TOO_OLD": 1}, ReadinessAnswer.NO, "groups"),
    ],
)
def test_what_is_not_known_or_stops_the_target_is_no_yes_without_the_source(
    made: Preflight | None, passes: int, verdicts: dict[str, int], answer: ReadinessAnswer, words: str
) -> None:
    found = without_source(made, passes, verdicts).failover
    assert found.answer is answer
    assert words in found.headline


def test_mm2_that_is_down_stops_a_cutover_alone() -> None:
    status = replace(preflighted(loss=FailoverLoss(200, True)), state=FlowState.STALE, reason="no heartbeat for 94 s")
    found = readiness(status, {}, 1)
    assert (found.answer, found.failover.answer) == (ReadinessAnswer.NO, ReadinessAnswer.YES)


def test_a_loss_that_is_over_its_limit_stops_a_failover_while_the_source_answers() -> None:
    over = Check(COUNTED, CheckResult.FAILED, "7, the oldest 90 s old")
    found = readiness(preflighted(of_clusters=(over,), loss=FailoverLoss(7, True)), {}, 1)
    assert found.failover.answer is ReadinessAnswer.NO


def test_a_figure_is_as_old_as_its_preflight() -> None:
    made = Preflight(NOON, 0.1, records=0, loss=FailoverLoss(0, True))
    status = replace(IN_STEP, failover=FailoverStatus(preflight=made, not_checked=None))
    found = readiness(status, {}, 1, now=NOON + timedelta(seconds=40)).failover
    assert found.headline.startswith("It would lose 0 records of those that a had 40 s ago, and what came since")


@pytest.mark.parametrize("state", list(FlowState))
def test_no_flow_whose_kinds_are_not_known_is_a_yes(state: FlowState) -> None:
    kinds = as_far_as_known({Kind.ACL: replace(ACTIVE, drift=0)}, state, None)
    found = readiness(replace(IN_STEP, state=state, kinds=kinds, reason=silence(state, 40.0)), {}, 1)
    assert (found.answer is ReadinessAnswer.YES) == (state is FlowState.LIVE)


def test_a_flow_that_another_process_leads_is_not_known_and_says_who_does() -> None:
    status = replace(IN_STEP, kinds={Kind.ACL: standing_by(ACTIVE)}, reason="lockstep-run-7 on h leads a->b")
    for passes in (0, 3):
        found = readiness(status, {}, passes)
        assert (found.answer, found.headline) == (ReadinessAnswer.UNKNOWN, "lockstep-run-7 on h leads a->b")


def test_a_difference_or_what_could_not_be_seen_is_a_no() -> None:
    drifting = replace(IN_STEP, kinds={Kind.ACL: replace(ACTIVE, drift=2, reason="POLICY_VIOLATION: no")})
    assert readiness(drifting, {}, 1).headline == "acl: 2 differences not mended: POLICY_VIOLATION: no"
    unseen = replace(IN_STEP, kinds={Kind.ACL: KindStatus(Task.UNKNOWN, "not all ACLs could be read")})
    found = readiness(unseen, {}, 1)
    assert (found.answer, found.headline) == (ReadinessAnswer.NO, "acl: not all ACLs could be read")


@pytest.mark.parametrize("drift", [0, 1, 2, 3])
@pytest.mark.parametrize("kind", [Kind.ACL, Kind.GROUP_OFFSET])
@pytest.mark.parametrize("refused", [False, True])
@pytest.mark.parametrize("task", [Task.ACTIVE, Task.PAUSED, Task.FAULTED, Task.UNKNOWN])
def test_the_page_and_the_preflight_agree_on_every_kind(task: Task, refused: bool, kind: Kind, drift: int) -> None:
    rules = FailoverRules(max_drift=2)
    refusals = (Refusal(kind, Op.UPDATE, ("k",), "no"),) * 3 if refused else ()
    reason = None if task is Task.ACTIVE else "why"
    status = replace(IN_STEP, kinds={kind: KindStatus(task, reason, drift, refused=refusals)})
    in_step = in_step_of_status(status, GroupSummary({}, {}))
    facts = ReadinessFacts(rules, drift=in_step.drift, refused=in_step.refused, faulted=in_step.faulted)
    (check,) = [one for one in checks.readiness(facts) if one.name == f"in step: {kind}"]
    page = readiness(status, {}, 1, rules)
    assert (page.answer is ReadinessAnswer.YES) == (check.result is CheckResult.OK)


def test_one_reason_of_a_flow_and_all_its_kinds_is_one_finding() -> None:
    kinds = {kind: KindStatus(Task.FAULTED, "the ledger is gone") for kind in Kind}
    found = readiness(replace(IN_STEP, state=FlowState.ERROR, reason="the ledger is gone", kinds=kinds), {}, 1)
    assert [finding.about for finding in found.findings] == ["a->b"]


def test_a_reason_beside_the_state_is_told_as_well() -> None:
    status = replace(IN_STEP, state=FlowState.NO_HEARTBEAT, reason="MM2 has not made these topics yet: x")
    assert [finding.blocks for finding in readiness(status, {}, 1).findings] == [True, False]


def test_groups_that_may_skip_records_are_a_no_as_in_preflight() -> None:
    found = readiness(IN_STEP, {"TARGET_AHEAD": 1, "SYNCED": 2}, 1)
    assert (found.answer, found.findings[0].about) == (ReadinessAnswer.NO, "groups")
    assert "may skip records" in found.headline
    accepted = readiness(IN_STEP, {"TARGET_AHEAD": 1, "SYNCED": 2}, 1, FailoverRules(max_groups_skipping=1))
    assert accepted.answer is ReadinessAnswer.YES


def test_groups_with_members_on_the_target_and_defaults_that_differ_are_remarks() -> None:
    differing = (DriftGroup(DifferingConfig(Kind.TOPIC_CONFIG, "retention.ms", "1", "2"), 3),)
    found = readiness(replace(IN_STEP, effective=differing), {"GROUP_ACTIVE": 1, "SYNCED": 2}, 1)
    assert found.answer is ReadinessAnswer.YES
    assert [finding.about for finding in found.findings] == ["groups", "effective"]
    assert "with 2 remarks" in found.headline


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("POLICY_VIOLATION: at most 7 days", "config.properties.exclude"),
        ("TOPIC_AUTHORIZATION_FAILED: no", "lockstep rights"),
        ("the brokers of b take no segment.bytes below 1048576", "change it on the source"),
        ("the brokers of b do not know message.format.version: gone", "change it on the source"),
        ("b has not answered for 9 s: is it up?", "goes on by itself"),
        ("cluster b: h:9092: refuses connections; is b.bootstrap.servers right, and the cluster up?", "by itself"),
        ("paused: what differs is not known", "Resume it once"),
        ("the ledger x is not compacted", "docs/safety.md"),
        ("MirrorMaker 2 is not heard: its newest heartbeat is 94 s old", "MirrorMaker 2 runs"),
        ("a.general-ledger: TOPIC_EXCEPTION", OTHERWISE),
        ("a.paused-extra-heartbeats: TOPIC_EXCEPTION", OTHERWISE),
        ("something new", OTHERWISE),
        (None, OTHERWISE),
    ],
)
def test_each_reason_has_something_to_do(reason: str | None, words: str) -> None:
    assert words in advice(reason)


@pytest.mark.parametrize("difference", ["MISSING", "CHANGED", "REORDERED"])
def test_records_that_a_failover_would_lose_or_change_are_a_no(difference: str) -> None:
    found = readiness(replace(IN_STEP, verify=VerifyStatus(differences={("orders", difference): 5000})), {}, 1)
    assert (found.answer, found.headline) == (ReadinessAnswer.NO, f"records: 5,000 records {difference}")


def test_a_partition_that_stands_still_is_a_no_and_records_that_the_target_has_twice_are_a_remark() -> None:
    stalled = replace(IN_STEP, verify=VerifyStatus(differences={("orders", STALLED): 1}))
    differing = replace(IN_STEP, verify=VerifyStatus(differences={("orders", "DUPLICATE"): 2}))
    still = readiness(stalled, {}, 1)
    assert (still.answer, still.headline) == (
        ReadinessAnswer.NO,
        "records: 1 partition stands still while the source moves",
    )
    assert "MirrorMaker 2's task" in advice(still.headline)
    found = readiness(differing, {}, 1)
    assert (found.answer, [one.reason for one in found.findings]) == (ReadinessAnswer.YES, ["2 records DUPLICATE"])
    assert "lockstep verify TOPIC" in advice("2 records DUPLICATE")
