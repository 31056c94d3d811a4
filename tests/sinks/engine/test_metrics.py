"""The metrics that dashboards rely on, as Prometheus reads them."""

from __future__ import annotations

import math
from datetime import datetime, timezone

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from sinks.engine.metrics import FAMILIES, WORST_ROWS, Metrics
from sinks.engine.pass_schedule import Reason
from sinks.engine.reconcile import Report
from sinks.engine.status import STATES_IN_A_JOB, FlowState, FlowStatus, KindStatus, Task
from sinks.engine.verify_status import STALLED, VerifyStatus
from sinks.every_kind.comparison import GroupSummary
from sinks.failover.preflight import FailoverStatus, Preflight
from sinks.faults import ItemFault, LedgerUntrusted
from sinks.kinds.offsets.verdicts import Verdict
from sinks.ledger.failover_record import State
from sinks.model.changes import Kind, Outcome
from sinks.model.plan import Plan
from sinks.printable import printable
from streaming.query_restarts import QueryState, QueryStatus
from tests.sinks.builders import FLOW, config_change, topic_change
from tests.sinks.engine.promised_metrics import PROMISED

COUNTED_MS = 1_704_067_200_000
"""The first moment of 2024."""

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples(metrics: Metrics) -> Samples:
    """Everything that Prometheus would store."""
    text = generate_latest(metrics.registry).decode()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(found: Samples, name: str, **labels: str) -> float | None:
    """One sample, of the flow a->b unless other labels are given."""
    flow = {"source": "a", "target": "b"} if "source" in PROMISED.get(name, {"source"}) else {}
    return found.get((name, frozenset((flow | labels).items())))


@pytest.fixture
def metrics() -> Metrics:
    """Every metric has been written once."""
    built = Metrics("1.2.3", lambda: COUNTED_MS + 1500)
    refused = Outcome(config_change("a.t", "retention.ms", None, "x"), ItemFault("INVALID_CONFIG", "no"))
    passing = Outcome(topic_change("a.u", None, 1), ItemFault("REQUEST_TIMED_OUT", "", retriable=True))
    applied = Outcome(topic_change("a.t", None, 1))
    built.passed(FLOW, [Reason.SIGNAL])
    built.report(Report(Plan(FLOW), (applied, passing, refused), seconds={"observe": 0.02, "apply": 0.3}))
    built.report(Report(Plan(FLOW), groups=GroupSummary({Verdict.SYNCED: 4}, {"late": 7}, refused={"sync": 1})))
    built.status(
        FlowStatus(
            FLOW,
            FlowState.LIVE,
            1.5,
            250,
            verify=VerifyStatus(through=datetime(2024, 1, 1, tzinfo=timezone.utc), differences={("t", STALLED): 1}),
            kinds={
                Kind.TOPIC: KindStatus(Task.PAUSED),
                Kind.TOPIC_CONFIG: KindStatus(
                    Task.ACTIVE, drift=3, last_success=datetime(2024, 1, 1, tzinfo=timezone.utc)
                ),
            },
        )
    )
    made = Preflight(datetime(2024, 1, 1, tzinfo=timezone.utc), 0.25, records=3, oldest_ms=COUNTED_MS)
    failover = FailoverStatus(preflight=made, not_checked=None)
    built.preflight(FlowStatus(FLOW, FlowState.LIVE, 1.5, failover=failover, compared=True))
    built.count_request("b", "CreateTopics", "ok")
    built.count_listener(FLOW, "topic", "ok")
    built.count_reporter("acme.metrics:Reporter")
    for restarts in (1, 1, 3):
        built.query(
            "b", QueryStatus(QueryState.BACKING_OFF, "why", datetime(2024, 1, 1, tzinfo=timezone.utc), restarts)
        )
    built.count_failure(FLOW, LedgerUntrusted("it is gone"))
    built.query_runs("b", True)
    built.query_batch("b", 7, 12, 0.5)
    built.batch(0.4, 12, {("a.heartbeats", "short value"): 2, ("a.heartbeats", "tombstone"): 1})
    return built


def test_a_flow_is_in_one_state_and_what_is_not_known_of_a_kind_is_no_number(metrics: Metrics) -> None:
    found = samples(metrics)
    states = {state: value(found, "lockstep_flow_state", state=state.value) for state in STATES_IN_A_JOB}
    assert states == dict.fromkeys(STATES_IN_A_JOB, 0) | {FlowState.LIVE: 1}
    drift = value(found, "lockstep_drift", kind="topic")
    assert drift is not None
    assert math.isnan(drift)


def test_names_and_labels_are_as_promised(metrics: Metrics) -> None:
    found: dict[str, set[str]] = {}
    for name, labels in samples(metrics):
        found.setdefault(name, {label for label, _ in labels})
    assert {name: found.get(name) for name in PROMISED} == PROMISED


def test_nothing_is_exposed_that_was_not_promised(metrics: Metrics) -> None:
    families = {family.name for family in text_string_to_metric_families(generate_latest(metrics.registry).decode())}
    promised = {name.removesuffix("_total").removesuffix("_bucket") for name in PROMISED}
    assert {name.removesuffix("_created") for name in families} == promised


def test_a_failover_is_in_one_state_and_its_risk_is_that_of_the_last_preflight(metrics: Metrics) -> None:
    found = samples(metrics)
    states = {state: value(found, "lockstep_failover_state", state=state.value) for state in State}
    assert states == dict.fromkeys(State, 0) | {State.MIRRORING: 1}
    assert value(found, "lockstep_failover_ready") == 1
    assert value(found, "lockstep_failover_records_at_risk") == 3
    assert value(found, "lockstep_failover_seconds_at_risk") == 1.5
    assert value(found, "lockstep_failover_preflight_seconds") == 0.25


@pytest.mark.parametrize("made", [None, Preflight(datetime(2024, 1, 1, tzinfo=timezone.utc), 0.1, trouble="silent")])
def test_without_a_preflight_that_could_look_nothing_is_said_to_be_at_risk(
    metrics: Metrics, made: Preflight | None
) -> None:
    metrics.preflight(FlowStatus(FLOW, FlowState.LIVE, 1.5, failover=FailoverStatus(preflight=made)))
    found = samples(metrics)
    for name in ("ready", "records_at_risk", "seconds_at_risk"):
        assert math.isnan(value(found, f"lockstep_failover_{name}") or 0)


def test_a_groups_name_in_a_label_steers_no_terminal_and_names_that_look_the_same_are_one(metrics: Metrics) -> None:
    names = {"g\x1b]0;owned\x07\u202e\n": 2, "g\\u001b]0;owned\\u0007\\u202e\\n": 9}
    metrics.report(Report(Plan(FLOW), groups=GroupSummary({}, names)))
    text = generate_latest(metrics.registry).decode()
    assert text == printable(text)
    found = samples(metrics)
    shown = {dict(labels)["group"]: bound for (name, labels), bound in found.items() if name.endswith("bound_records")}
    assert shown == {r"g\u001b]0;owned\u0007\u202e\n": 9}
    metrics.report(Report(Plan(FLOW), groups=GroupSummary({}, {})))
    assert not any(name.endswith("bound_records") for name, _ in samples(metrics))


def test_evidence_that_was_refused_is_counted_once_also_by_a_flow_that_was_renewed(metrics: Metrics) -> None:
    for refused in (2, 2, 3, 0, 1):
        metrics.report(Report(Plan(FLOW), groups=GroupSummary({}, {}, refused={"checkpoint": refused})))
    name = "lockstep_offset_evidence_refused_total"
    assert value(samples(metrics), name, evidence="checkpoint") == 4


def test_a_query_is_in_one_state_and_its_restarts_are_counted_once(metrics: Metrics) -> None:
    found = samples(metrics)
    states = {state: value(found, "lockstep_query_state", target="b", state=state.value) for state in QueryState}
    assert states == {state: float(state is QueryState.BACKING_OFF) for state in QueryState}
    assert value(found, "lockstep_query_restarts_total", target="b") == 3


def test_batches_that_spark_committed_say_their_number_and_their_records_add_up(metrics: Metrics) -> None:
    metrics.query_batch("b", 8, 3, 0.25)
    metrics.query_runs("b", False)
    found = samples(metrics)
    assert value(found, "lockstep_query_batch", target="b") == 8
    assert value(found, "lockstep_query_rows_total", target="b") == 15
    assert value(found, "lockstep_query_batch_seconds", target="b") == 0.25
    assert value(found, "lockstep_query_active", target="b") == 0


def test_passes_that_an_error_ended_are_counted_by_its_name(metrics: Metrics) -> None:
    assert value(samples(metrics), "lockstep_pass_failures_total", error="LedgerUntrusted") == 1


def test_every_family_says_what_it_is(metrics: Metrics) -> None:
    for family in text_string_to_metric_families(generate_latest(metrics.registry).decode()):
        assert family.documentation


def test_values_have_the_units_that_their_names_say(metrics: Metrics) -> None:
    found = samples(metrics)
    assert value(found, "lockstep_flow_heartbeat_age_seconds") == 1.5
    assert value(found, "lockstep_replication_latency_seconds") == 0.25
    assert value(found, "lockstep_last_success_timestamp_seconds", kind="topic-config") == 1704067200
    assert value(found, "lockstep_last_success_timestamp_seconds", kind="topic") is None
    assert value(found, "lockstep_reconcile_seconds_sum", phase="observe") == 0.02
    assert value(found, "lockstep_drift", kind="topic-config") == 3
    assert value(found, "lockstep_batch_rows") == 12
    assert value(found, "lockstep_build_info", version="1.2.3") == 1


def test_changes_are_counted_by_outcome_and_refusals_by_kind(metrics: Metrics) -> None:
    found = samples(metrics)
    assert value(found, "lockstep_changes_total", kind="topic", op="create", result="applied") == 1
    assert value(found, "lockstep_changes_total", kind="topic", op="create", result="failed") == 1
    assert value(found, "lockstep_changes_total", kind="topic-config", op="create", result="failed") == 1
    assert value(found, "lockstep_refused_total", kind="topic-config") == 1
    assert value(found, "lockstep_refused_total", kind="topic") is None


def test_one_state_of_a_kind_is_1_and_the_others_0(metrics: Metrics) -> None:
    found = samples(metrics)
    states = {task: value(found, "lockstep_task_state", kind="topic", state=task.value) for task in Task}
    assert states == dict.fromkeys(Task, 0) | {Task.PAUSED: 1}


def test_undecodable_records_of_a_topic_add_up_over_reasons(metrics: Metrics) -> None:
    assert value(samples(metrics), "lockstep_undecodable_total", topic="a.heartbeats") == 3


def test_two_jobs_in_one_process_do_not_mix() -> None:
    one, other = Metrics("1"), Metrics("1")
    one.count_request("b", "CreateTopics", "ok")
    assert value(samples(other), "lockstep_admin_requests_total", cluster="b", api="CreateTopics", result="ok") is None


def test_heartbeat_that_never_came_has_no_age() -> None:
    built = Metrics("1")
    built.status(FlowStatus(FLOW, FlowState.NO_HEARTBEAT))
    assert value(samples(built), "lockstep_flow_heartbeat_age_seconds") is None


def test_worst_error_bounds_are_shown_and_a_group_that_is_no_longer_among_them_is_not(metrics: Metrics) -> None:
    name = "lockstep_offset_error_bound_records"
    bounds = {f"g{number}": number for number in range(1, 1003)}
    metrics.report(Report(Plan(FLOW), groups=GroupSummary({Verdict.PENDING: 2}, bounds)))
    found = samples(metrics)
    assert value(found, name, group="g1002") == 1002
    assert [value(found, name, group=group) for group in ("g1", "g2", "late")] == [None] * 3
    assert value(found, "lockstep_offset_verdicts", verdict="PENDING") == 2


def test_only_the_topics_that_differ_most_are_shown_and_none_that_does_not_any_more(metrics: Metrics) -> None:
    name, many = "lockstep_verify_differences", {(f"t{number}", "MISSING"): number for number in range(1, 200)}
    metrics.status(FlowStatus(FLOW, FlowState.LIVE, verify=VerifyStatus(differences=many)))
    shown = {dict(labels)["topic"] for one, labels in samples(metrics) if one == name}
    assert shown == {f"t{number}" for number in range(200 - WORST_ROWS, 200)}
    metrics.status(FlowStatus(FLOW, FlowState.LIVE))
    assert not any(one.startswith("lockstep_verif") for one, _ in samples(metrics))


def test_every_metric_has_its_text() -> None:
    assert [family.text for family in FAMILIES if len(family.text.split()) < 4] == []
