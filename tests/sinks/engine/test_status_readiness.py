"""Whether a target could take over now, by what a job knows: nothing that is wrong or not known is a yes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from sinks.engine.flow_status import kind_status
from sinks.engine.metrics import Metrics
from sinks.engine.report import Report
from sinks.engine.status import Failing, FlowState, FlowStatus, KindStatus, Task, as_far_as_known, silence, standing_by
from sinks.engine.verify_status import STALLED, VerifyStatus
from sinks.every_kind.backoff import Backoff
from sinks.every_kind.comparison import GroupSummary
from sinks.failover.preflight import FailoverStatus, Preflight
from sinks.failover.readiness import GOES_ON, Readiness, ReadinessAnswer
from sinks.failover.readiness_facts import FailoverLoss, NotChecked, ReadinessFacts, TopicLoss
from sinks.faults import ItemFault
from sinks.flow_settings import FailoverRules
from sinks.kafka.ports.cluster import Replicas
from sinks.ledger.failover_record import Begun, Command, FailoverRecord, State
from sinks.model.changes import Kind, Op, Outcome
from sinks.model.effective_drift import DifferingConfig, DriftGroup
from sinks.model.plan import SEE_PLAN, Plan, Refusal
from streaming.flow import Flow
from streaming.mm2.records import TopicPartition
from tests.sinks.builders import config_change

ACTIVE = KindStatus(Task.ACTIVE, drift=0)
NOON = datetime(2026, 11, 22, 12, tzinfo=timezone.utc)
SEEN = Preflight(NOON, 0.1, loss=FailoverLoss(0, True), facts=ReadinessFacts(FailoverRules()))
SYNCED = GroupSummary({"SYNCED": 2}, {})
IN_STEP = FlowStatus(
    Flow("a", "b"),
    FlowState.LIVE,
    1.0,
    kinds={Kind.TOPIC: ACTIVE, Kind.ACL: KindStatus(Task.DISABLED), Kind.GROUP_OFFSET: ACTIVE},
    failover=FailoverStatus(preflight=SEEN, not_checked=None),
    compared=True,
    groups=SYNCED,
)
OUTDATED = NotChecked("the job's preflight stands still", NOON)


def preflighted(**seen: Any) -> FlowStatus:
    """A flow that is well but for what its last preflight saw."""
    loss, trouble = seen.pop("loss", SEEN.loss), seen.pop("trouble", None)
    made = replace(SEEN, facts=ReadinessFacts(FailoverRules(), **seen), loss=loss, trouble=trouble)
    return replace(IN_STEP, failover=FailoverStatus(preflight=made, not_checked=None))


def waiting(records: int) -> dict[str, TopicLoss]:
    """Records that MM2 has not copied for a minute and a half."""
    return {"x": TopicLoss(records, 90.0)}


def findings(found: Readiness) -> list[tuple[str, str]]:
    """Of the page: what each is about, and the reason."""
    return [(row["about"], row["reason"]) for row in found.as_json()["findings"]]


def test_a_flow_that_is_heard_and_in_step_is_a_yes() -> None:
    found = IN_STEP.readiness()
    assert (found.cutover.answer, found.failover.answer, findings(found)) == (*[ReadinessAnswer.YES] * 2, [])


@pytest.mark.parametrize("made", [None, SEEN])
def test_without_a_preflight_and_with_an_old_one_neither_answer_is_known_and_both_say_since_when(
    made: Preflight | None,
) -> None:
    found = replace(IN_STEP, failover=FailoverStatus(preflight=made, not_checked=OUTDATED)).readiness()
    for answered in (found.cutover, found.failover):
        assert (answered.answer, answered.since) == (ReadinessAnswer.UNKNOWN, NOON)
        assert OUTDATED.reason in answered.headline
    assert found.as_json()["since"] == found.as_json()["failover"]["since"] == "2026-11-22T12:00:00Z"


def test_what_an_old_preflight_found_is_no_reason_any_more_and_what_passes_find_is_one() -> None:
    made = preflighted(losses=waiting(7)).failover
    old = replace(IN_STEP, failover=replace(made, not_checked=OUTDATED))
    assert old.readiness().cutover.answer is ReadinessAnswer.UNKNOWN
    drifting = replace(old, kinds={Kind.ACL: replace(ACTIVE, drift=2)})
    assert drifting.readiness().cutover.answer is ReadinessAnswer.NO


def test_before_the_first_pass_the_answer_is_not_known() -> None:
    assert replace(IN_STEP, compared=False).readiness().cutover.answer is ReadinessAnswer.UNKNOWN


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (FlowState.STALE, "heartbeat: 94.0 s old"),
        (FlowState.NO_HEARTBEAT, "heartbeat: none was seen"),
        (FlowState.NO_JOB, "b gives no answer"),
        (FlowState.ERROR, "b gives no answer"),
    ],
)
def test_a_state_other_than_live_is_a_no_with_its_reason(state: FlowState, words: str) -> None:
    age = None if state is FlowState.NO_HEARTBEAT else 94.0
    reason = silence(state, age) or "b gives no answer"
    found = replace(IN_STEP, state=state, heartbeat_age_seconds=age, reason=reason).readiness()
    assert found.cutover.answer is ReadinessAnswer.NO
    assert found.cutover.headline.startswith(words)


def test_an_error_that_stopped_the_flow_comes_with_its_own_remedy() -> None:
    stopped = Failing("CLUSTER_UNREACHABLE", "check that the cluster is up")
    status = replace(IN_STEP, state=FlowState.ERROR, reason="cluster b: the ledger host: no answer", failure=stopped)
    assert status.readiness().as_json()["findings"][0]["remedy"] == stopped.remedy


@pytest.mark.parametrize("task", [Task.PAUSED, Task.FAULTED])
def test_a_kind_that_is_not_kept_is_a_no_with_its_remedy(task: Task) -> None:
    found = replace(IN_STEP, kinds={Kind.ACL: KindStatus(task, "because", remedy="mend it")}).readiness()
    assert (found.cutover.answer, found.cutover.headline) == (ReadinessAnswer.NO, "acl: because")
    assert found.as_json()["findings"][0]["remedy"] == "mend it"


def test_what_the_preflight_saw_of_the_clusters_is_a_no_with_its_remedy() -> None:
    found = preflighted(losses=waiting(7)).readiness()
    headline = "records not copied: 7, the oldest 90.0 s old: x 7"
    assert (found.cutover.answer, found.cutover.headline) == (ReadinessAnswer.NO, headline)
    assert found.as_json()["findings"][0]["remedy"].startswith("MM2 lags")


@pytest.mark.parametrize("authorizer", [True, False])
def test_what_stops_no_failover_is_a_remark_at_most(authorizer: bool) -> None:
    found = preflighted(authorizer=authorizer).readiness()
    assert (found.cutover.answer, len(findings(found))) == (ReadinessAnswer.YES, int(not authorizer))


def test_a_preflight_that_could_not_look_is_a_no() -> None:
    assert "no right to read" in preflighted(trouble="no right to read x").readiness().cutover.headline


def test_a_fence_is_said_and_stops_nothing() -> None:
    fenced = replace(IN_STEP, failover=replace(IN_STEP.failover, record=FailoverRecord(State.FENCED)))
    found = fenced.readiness()
    assert (found.cutover.answer, findings(found)) == (ReadinessAnswer.YES, [("failover", "the flow is FENCED")])


def ended(state: State, doing: Command | None = None) -> Readiness:
    """After the target took over, with MM2 and the source switched off."""
    record = FailoverRecord(
        state, doing, begun=Begun("ann@ops", "2026-11-22T12:00:00Z"), ended_at="2026-11-22T11:00:00Z"
    )
    kinds = {Kind.ACL: KindStatus(Task.UNKNOWN, "the flow has ended")}
    status = replace(IN_STEP, state=FlowState.ERROR, reason="a: no answer", kinds=kinds)
    return replace(status, failover=FailoverStatus(record)).readiness()


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (State.PROMOTED, "b has taken over since 2026-11-22T11:00:00Z, by `lockstep cutover`"),
        (State.FAILED_OVER, "b has taken over since 2026-11-22T11:00:00Z, by `lockstep failover`"),
        (State.REVERSING, "b has taken over. The way back: REVERSING since 2026-11-22T12:00:00Z"),
    ],
)
def test_after_the_takeover_both_answers_are_done_and_what_leads_on_is_said(state: State, words: str) -> None:
    found = ended(state)
    assert (found.ready, found.cutover, found.failover.headline) == (None, found.failover, words)
    assert found.cutover.answer is ReadinessAnswer.DONE
    assert [(one["blocks"], one["remedy"]) for one in found.as_json()["findings"]] == [(False, GOES_ON)]


def test_a_takeover_that_is_half_done_asks_for_its_command_again() -> None:
    found = ended(State.FAILING_OVER, Command.FAIL_OVER)
    assert found.failover.answer is ReadinessAnswer.NO
    assert "`failover` is half done. Run it again" in found.cutover.headline


OFFLINE = ReadinessFacts(
    FailoverRules(), remote=["a.x"], replicas=Replicas(3, {}, {}, offline=frozenset({TopicPartition("a.x", 0)}))
)


def without_source(made: Preflight | None, *, compared: bool = True, verdicts: Mapping[str, int] = {}) -> Readiness:
    """The source gives no answer, 12 s after it was seen last."""
    kinds = as_far_as_known({Kind.GROUP_OFFSET: replace(ACTIVE, last_success=NOON)}, FlowState.ERROR, NOON)
    failover = FailoverStatus(preflight=made, not_checked=None if made else OUTDATED)
    status = replace(IN_STEP, state=FlowState.ERROR, reason="a: no answer", kinds=kinds, failover=failover)
    groups = GroupSummary(verdicts, {})
    return replace(status, compared=compared, groups=groups).readiness(NOON + timedelta(seconds=12))


def from_memory(records: int | None = 3, **more: Any) -> Preflight:
    """What a job makes of a source that is gone."""
    return Preflight(NOON, 0.1, trouble="a: no answer", loss=FailoverLoss(records, False, NOON, 2), **more)


def test_source_that_is_gone_is_no_reason_against_a_failover_which_says_what_it_loses() -> None:
    found = without_source(from_memory())
    assert (found.cutover.answer, found.ready) == (ReadinessAnswer.NO, False)
    assert found.cutover.headline.startswith("a: no answer")
    assert found.failover.answer is ReadinessAnswer.YES
    assert "at most 3 records that a had 12 s ago" in found.failover.headline
    assert ("a->b", "what Lockstep keeps was last in step at 2026-11-22T12:00:00Z") in findings(found)


@pytest.mark.parametrize(
    ("made", "compared", "verdicts", "answer", "words"),
    [
        (None, True, {}, ReadinessAnswer.UNKNOWN, "failover --dry-run"),
        (SEEN, True, {}, ReadinessAnswer.UNKNOWN, "not known here"),
        (Preflight(NOON, 0.1, trouble="b: no answer"), True, {}, ReadinessAnswer.NO, "b: no answer"),
        (from_memory(None), True, {}, ReadinessAnswer.UNKNOWN, "of 2 partitions"),
        (from_memory(), False, {}, ReadinessAnswer.UNKNOWN, "at most 3 records"),
        (from_memory(facts=OFFLINE), True, {}, ReadinessAnswer.NO, "offline on the target: a.x-0"),
        (from_memory(), True, {"TOO_OLD": 1}, ReadinessAnswer.NO, "groups"),
    ],
)
def test_what_is_not_known_or_stops_the_target_is_no_yes_without_the_source(
    made: Preflight | None, compared: bool, verdicts: dict[str, int], answer: ReadinessAnswer, words: str
) -> None:
    found = without_source(made, compared=compared, verdicts=verdicts).failover
    assert found.answer is answer
    assert words in found.headline


def test_what_the_last_preflight_saw_of_the_source_is_no_reason_once_that_is_gone() -> None:
    lagging = replace(OFFLINE, replicas=Replicas(3), losses=waiting(7))
    assert "records not copied" not in dict(findings(without_source(from_memory(facts=lagging))))


def test_mm2_that_is_down_stops_a_cutover_alone() -> None:
    status = preflighted(loss=FailoverLoss(200, True))
    found = replace(status, state=FlowState.STALE, heartbeat_age_seconds=94.0, reason=silence(FlowState.STALE, 94.0))
    assert found.readiness().cutover.answer is ReadinessAnswer.NO
    assert found.readiness().failover.answer is ReadinessAnswer.YES


def test_a_loss_that_is_over_its_limit_stops_a_failover_while_the_source_answers() -> None:
    found = preflighted(losses=waiting(7), loss=FailoverLoss(7, True)).readiness()
    assert found.failover.answer is ReadinessAnswer.NO


def test_a_figure_is_as_old_as_its_preflight() -> None:
    found = IN_STEP.readiness(NOON + timedelta(seconds=40)).failover
    assert found.headline.startswith("It would lose 0 records that a had 40 s ago, and each later record")


@pytest.mark.parametrize("state", list(FlowState))
def test_no_flow_whose_kinds_are_not_known_is_a_yes(state: FlowState) -> None:
    kinds = as_far_as_known({Kind.ACL: replace(ACTIVE, drift=0)}, state, None)
    age = {FlowState.LIVE: 1.0, FlowState.NO_HEARTBEAT: None}.get(state, 40.0)
    status = replace(IN_STEP, state=state, kinds=kinds, heartbeat_age_seconds=age, reason=silence(state, age))
    assert (status.readiness().cutover.answer is ReadinessAnswer.YES) == (state is FlowState.LIVE)


@pytest.mark.parametrize("compared", [False, True])
def test_a_flow_that_another_process_leads_is_not_known_and_says_who_does(compared: bool) -> None:
    status = replace(IN_STEP, kinds={Kind.ACL: standing_by(ACTIVE)}, reason="lockstep-run-7 on h leads a->b")
    found = replace(status, compared=compared).readiness()
    assert (found.cutover.answer, found.cutover.headline) == (ReadinessAnswer.UNKNOWN, "lockstep-run-7 on h leads a->b")


def test_a_difference_or_what_could_not_be_seen_is_a_no() -> None:
    drifting = replace(IN_STEP, kinds={Kind.ACL: replace(ACTIVE, drift=2, reason="POLICY_VIOLATION: no")})
    assert drifting.readiness().cutover.headline == "acl: 2 differences: POLICY_VIOLATION: no"
    unseen = replace(IN_STEP, kinds={Kind.ACL: KindStatus(Task.UNKNOWN, "not all ACLs could be read")})
    found = unseen.readiness().cutover
    assert (found.answer, found.headline) == (ReadinessAnswer.NO, "acl: not all ACLs could be read")


@pytest.mark.parametrize("drift", [0, 1, 2, 3])
@pytest.mark.parametrize("kind", [Kind.ACL, Kind.GROUP_OFFSET])
@pytest.mark.parametrize("refused", [False, True])
@pytest.mark.parametrize("task", [Task.ACTIVE, Task.PAUSED, Task.FAULTED, Task.UNKNOWN])
def test_status_metric_and_page_give_one_answer(task: Task, refused: bool, kind: Kind, drift: int) -> None:
    rules = FailoverRules(max_drift=2)
    refusals = (Refusal(kind, Op.UPDATE, ("k",), "no"),) * 3 if refused else ()
    reason = None if task is Task.ACTIVE else "why"
    status = replace(IN_STEP, kinds={kind: KindStatus(task, reason, drift, refused=refusals)}, rules=rules)
    metrics = Metrics("0")
    metrics.status(status)
    known = metrics.registry.get_sample_value("lockstep_failover_ready", {"source": "a", "target": "b"})
    page = status.readiness().as_json()["answer"] == "yes"
    assert status.failover.as_json(status.readiness())["preflight"]["ready"] is page is bool(known)


def test_one_reason_of_a_flow_and_all_its_kinds_is_one_finding() -> None:
    kinds = {kind: KindStatus(Task.FAULTED, "the ledger is gone") for kind in Kind}
    stopped = replace(IN_STEP, state=FlowState.ERROR, reason="the ledger is gone", kinds=kinds)
    assert [about for about, _ in findings(stopped.readiness())] == ["a->b"]
    faulted = replace(IN_STEP, kinds={kind: KindStatus(Task.FAULTED, "denied") for kind in Kind})
    assert len([reason for _, reason in findings(faulted.readiness()) if reason == "denied"]) == 1


def test_a_reason_beside_the_state_is_told_as_well() -> None:
    status = replace(
        IN_STEP,
        state=FlowState.NO_HEARTBEAT,
        heartbeat_age_seconds=None,
        reason="MM2 has not made these topics yet: x",
    )
    assert [row["blocks"] for row in status.readiness().as_json()["findings"]] == [True, False]


def test_groups_that_may_skip_records_are_a_no_as_in_preflight() -> None:
    ahead = replace(IN_STEP, groups=GroupSummary({"TARGET_AHEAD": 1, "SYNCED": 2}, {}))
    found = ahead.readiness().cutover
    assert found.answer is ReadinessAnswer.NO
    assert found.headline.startswith("groups: 1 may skip records")
    accepted = replace(ahead, rules=FailoverRules(max_groups_skipping=1)).readiness()
    assert accepted.cutover.answer is ReadinessAnswer.YES


def test_groups_with_members_on_the_target_and_defaults_that_differ_are_remarks() -> None:
    differing = (DriftGroup(DifferingConfig(Kind.TOPIC_CONFIG, "retention.ms", "1", "2"), 3),)
    groups = GroupSummary({"GROUP_ACTIVE": 1, "SYNCED": 2}, {})
    found = replace(IN_STEP, effective=differing, groups=groups).readiness()
    assert found.cutover.answer is ReadinessAnswer.YES
    assert [about for about, _ in findings(found)] == ["groups", "effective"]
    assert "with 2 remarks" in found.cutover.headline


@pytest.mark.parametrize("difference", ["MISSING", "CHANGED", "REORDERED"])
def test_records_that_a_failover_would_lose_or_change_are_a_no(difference: str) -> None:
    differing = replace(IN_STEP, verify=VerifyStatus(differences={("orders", difference): 5000}))
    found = differing.readiness()
    assert (found.cutover.answer, found.failover.answer) == (ReadinessAnswer.NO, ReadinessAnswer.NO)
    assert found.cutover.headline == f"records: 5,000 records {difference}"


def test_a_partition_that_stands_still_is_a_no_and_records_that_the_target_has_twice_are_a_remark() -> None:
    still = replace(IN_STEP, verify=VerifyStatus(differences={("orders", STALLED): 1})).readiness()
    assert still.cutover.headline == "records: 1 partition stands still while the source moves"
    assert "MirrorMaker 2's task" in still.as_json()["findings"][0]["remedy"]
    twice = replace(IN_STEP, verify=VerifyStatus(differences={("orders", "DUPLICATE"): 2})).readiness()
    assert (twice.cutover.answer, findings(twice)) == (ReadinessAnswer.YES, [("records", "2 records DUPLICATE")])
    assert "lockstep verify TOPIC" in twice.as_json()["findings"][0]["remedy"]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("POLICY_VIOLATION", "config.properties.exclude"),
        ("INVALID_CONFIG", "change the value on the source"),
        ("TOPIC_AUTHORIZATION_FAILED", "lockstep rights"),
        ("UNKNOWN_SERVER_ERROR", SEE_PLAN),
    ],
)
def test_a_change_that_the_target_refuses_has_the_remedy_of_its_error(code: str, words: str) -> None:
    change, fault = config_change("a.x", "retention.ms", "1", "2"), ItemFault(code, "no")
    (outcome,), backoff = (Outcome(change, fault),), Backoff()
    backoff.learn([outcome], 0.0)
    _, (refusal,) = backoff.sift([change], 1.0)
    assert words in refusal.remedy
    plan = Plan(IN_STEP.flow)
    for report in (Report(plan, (outcome,)), Report(replace(plan, refused=(refusal,)))):
        remedy = kind_status(Kind.TOPIC_CONFIG, ACTIVE, report, NOON).remedy
        assert words in remedy or (not remedy and words == SEE_PLAN)
