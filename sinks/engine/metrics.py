"""The metrics that Prometheus reads, under the names that dashboards use. `FAMILIES` lists them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from heapq import nlargest
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from sinks.engine.pass_schedule import Reason
from sinks.engine.reconcile import Report
from sinks.engine.status import STATES_IN_A_JOB, FlowStatus, Task
from sinks.engine.verify_status import VerifyStatus
from sinks.every_kind.comparison import GroupSummary
from sinks.ledger.failover_record import State
from sinks.printable import one_line
from streaming.flow import Flow
from streaming.query_restarts import QueryState, QueryStatus

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
"""Histogram bounds in seconds: a poll takes hundredths, a first comparison of a large cluster a minute."""

WORST = 1000
"""Most groups whose error bound is shown: those with the largest."""

WORST_ROWS = 100
"""Most topics and kinds of a flow that are shown: those with the most differences."""

EFFECTIVE: Final = "effective"
"""The label `kind` of the drift of configs that are set on neither side and differ in effect."""


@dataclass(frozen=True, slots=True)
class Family:
    """A metric as Prometheus shows it; `type` is `counter`, `gauge` or `histogram`."""

    type: str
    name: str
    labels: tuple[str, ...]
    text: str


FAMILY_TEXTS: Final[Mapping[str, str]] = {
    "gauge flow_heartbeat_age_seconds source target": "Age of MM2's newest heartbeat",
    "gauge replication_latency_seconds source target": "How long MM2 took to copy its newest heartbeat from source "
    "to target",
    "gauge drift source target kind": "Differences between source and target that remain; NaN while they are not "
    f"known. Kind `{EFFECTIVE}`: configs that are set on neither side and differ in effect",
    "gauge flow_state source target state": "1 for the state that a flow is in, 0 for the others (commands.md)",
    "gauge task_state source target kind state": "1 for the task of a kind, 0 for the others (commands.md)",
    "gauge last_success_timestamp_seconds source target kind": "When a pass last left a kind with no difference, "
    "in seconds since 1970",
    "gauge failover_state source target state": "1 for the state of the flow's failover, 0 for the others "
    "(failover.md); all NaN while the ledger cannot be read",
    "gauge failover_ready source target": "1 if the flow could be cut over by its passes and its last preflight "
    "(failover.md), 0 if not, NaN if it is not known",
    "gauge failover_records_at_risk source target": "Records that a failover would have lost at the last "
    "preflight, NaN if it is not known",
    "gauge failover_seconds_at_risk source target": "Age now of the oldest record that a failover would have lost "
    "at the last preflight, NaN if it is not known. While the source gives no answer: upper bound, from the last "
    "preflight that it answered",
    "gauge failover_preflight_seconds source target": "How long the last preflight took",
    "gauge lost_before_copying_records source target": "Upper bound of records that retention deleted before MM2 "
    "copied them, or that a log lost with its tail, until `lockstep ledger acknowledge`; NaN while the ledger cannot "
    "be read",
    "gauge leader source target": "1 if this process leads the flow and writes it, 0 if it stands by",
    "counter changes source target kind op result": "Changes that Lockstep tried to write to the target",
    "counter passes source target reason": "Passes, by the reason that made them due; one may have several",
    "counter refused source target kind": "Changes that the target refused and that back off",
    "counter admin_requests cluster api result": "Requests of Kafka's admin API that Lockstep sent",
    "gauge file_rejected": "1 while the properties file has mistakes and the job keeps what it had read before, else 0",
    "counter listener_calls source target listener result": "Calls of topic.listener.class and group.listener.class",
    "counter reporter_failures reporter": "Calls of metric.reporters that failed or took too long",
    "counter undecodable topic": "Records in MM2's internal topics that MM2 did not write",
    "counter pass_failures source target error": "Passes that an error ended",
    "gauge offset_verdicts source target verdict": "Partitions of consumer groups, by their verdict (offsets.md)",
    "counter offset_evidence_refused source target evidence": "Offset-syncs and checkpoints that cannot be true "
    "and were not used (offsets.md)",
    "gauge offset_error_bound_records source target group": "The most records that a group would read twice on the "
    "target",
    "histogram reconcile_seconds source target phase": "How long each phase of a pass took",
    "histogram batch_seconds": "Work in one micro-batch, on MM2's records and on passes",
    "gauge batch_rows": "Records of MM2's internal topics in the last micro-batch",
    "gauge query_state target state": "1 for the state that the streaming query into a target is in, 0 for the others",
    "counter query_restarts target": "Restarts of the streaming query into a target after a failure",
    "gauge query_active target": "1 while Spark runs the streaming query into a target, else 0",
    "gauge query_batch target": "Number of the last micro-batch that Spark committed",
    "counter query_rows target": "Records of MM2's internal topics that Spark's micro-batches read",
    "gauge query_batch_seconds target": "Duration of the last micro-batch as Spark counts it",
    "gauge query_batch_timestamp_seconds target": "When Spark last committed a micro-batch, in seconds since 1970",
    "gauge verified_through_timestamp_seconds source target": "Time through which all records were compared, in "
    "seconds since 1970; only with lockstep.verify.enabled",
    "gauge verify_differences source target topic kind": "Records that differ between source and target, by topic "
    "and difference; STALLED counts partitions that stand still while their source moves",
    "gauge build_info version": "Always 1; its label is the version",
}
"""Help texts of the metrics, by type, name and labels."""


def _family(declared: str, text: str) -> Family:
    kind, name, *labels = declared.split()
    return Family(kind, f"lockstep_{name}{'_total' if kind == 'counter' else ''}", tuple(labels), text)


FAMILIES: Final = tuple(_family(declared, text) for declared, text in FAMILY_TEXTS.items())


class Metrics:
    """All metrics of one job, in a registry of their own. Methods name them without `lockstep_`."""

    def __init__(self, version: str, now_ms: Callable[[], float] = lambda: time.time() * 1000) -> None:
        self._now_ms = now_ms
        self.registry = CollectorRegistry()
        self._gauges, self._counters = dict[str, Gauge](), dict[str, Counter]()
        self._histograms = dict[str, Histogram]()
        for family in FAMILIES:
            name, declared = family.name.removeprefix("lockstep_"), (family.name, family.text, family.labels)
            if family.type == "gauge":
                self._gauges[name] = Gauge(*declared, registry=self.registry)
            elif family.type == "counter":
                self._counters[name] = Counter(*declared, registry=self.registry)
            else:
                self._histograms[name] = Histogram(*declared, registry=self.registry, buckets=BOUNDS)
        self._restarted: dict[str, int] = {}
        self._summary: dict[Flow, GroupSummary] = {}
        self._shown: dict[tuple[str, Flow], frozenset[tuple[str, ...]]] = {}
        self._set("build_info", 1, version)

    def _set(self, name: str, value: float | None, *labels: str) -> None:
        """Set a gauge. `value`: None means unknown, NaN for Prometheus."""
        gauge = self._gauges[name].labels(*labels) if labels else self._gauges[name]
        gauge.set(math.nan if value is None else value)

    def _count(self, name: str, *labels: str, by: float = 1) -> None:
        self._counters[name].labels(*labels).inc(by)

    def _show_only(self, name: str, flow: Flow, rows: Mapping[tuple[str, ...], float]) -> None:
        """Set a gauge of a flow by its further labels, and remove rows that it showed before and that `rows` lacks."""
        ends = (flow.source, flow.target)
        for labels in self._shown.get((name, flow), frozenset()) - rows.keys():
            self._gauges[name].remove(*ends, *labels)
        for labels, value in rows.items():
            self._set(name, value, *ends, *labels)
        self._shown[name, flow] = frozenset(rows)

    def count_request(self, alias: str, api: str, result: str) -> None:
        self._count("admin_requests_total", alias, api, result)

    def count_listener(self, flow: Flow, listener: str, result: str) -> None:
        self._count("listener_calls_total", flow.source, flow.target, listener, result)

    def count_reporter(self, reporter: str) -> None:
        self._count("reporter_failures_total", reporter)

    def file(self, rejected: bool) -> None:
        """Set whether the running job's properties file has mistakes. The job then keeps its former settings."""
        self._set("file_rejected", rejected)

    def count_failure(self, flow: Flow, error: Exception) -> None:
        self._count("pass_failures_total", flow.source, flow.target, type(error).__name__)

    def passed(self, flow: Flow, reasons: Collection[Reason]) -> None:
        for reason in reasons:
            self._count("passes_total", flow.source, flow.target, reason.value)

    def batch(self, seconds: float, rows: int, undecodable: Mapping[tuple[str, str], int]) -> None:
        """Count one micro-batch, and the work since the batch before it. `undecodable`: counts by (topic, reason)."""
        self._histograms["batch_seconds"].observe(seconds)
        self._set("batch_rows", rows)
        self.undecodable(undecodable)

    def undecodable(self, counts: Mapping[tuple[str, str], int]) -> None:
        """Count records that Lockstep could not decode, by (topic, reason)."""
        for (topic, _), count in counts.items():
            self._count("undecodable_total", topic, by=count)

    def query(self, target: str, status: QueryStatus) -> None:
        for state in QueryState:
            self._set("query_state", state is status.state, target, state.value)
        self._count("query_restarts_total", target, by=status.restarts - self._restarted.get(target, 0))
        self._restarted[target] = status.restarts

    def query_runs(self, target: str, runs: bool) -> None:
        self._set("query_active", runs, target)

    def query_batch(self, target: str, number: int, rows: int, seconds: float) -> None:
        self._set("query_batch", number, target)
        self._count("query_rows_total", target, by=rows)
        self._set("query_batch_seconds", seconds, target)
        self._set("query_batch_timestamp_seconds", time.time(), target)

    def report(self, report: Report) -> None:
        flow = report.plan.flow
        if report.groups is not None:
            self._groups(flow, report.groups)
        for phase, seconds in report.seconds.items():
            self._histograms["reconcile_seconds"].labels(flow.source, flow.target, phase).observe(seconds)
        for outcome in report.outcomes:
            kind, op = outcome.change.kind.value, outcome.change.op.value
            self._count("changes_total", flow.source, flow.target, kind, op, outcome.result)
            if outcome.error and not outcome.error.retriable:
                self._count("refused_total", flow.source, flow.target, kind)

    def _groups(self, flow: Flow, groups: GroupSummary) -> None:
        if self._summary.get(flow) is groups:
            return
        before = self._summary[flow].refused if flow in self._summary else {}
        for evidence, count in groups.refused.items():
            # A renewed flow counts from zero.
            more = count - before.get(evidence, 0)
            by = more if more >= 0 else count
            self._count("offset_evidence_refused_total", flow.source, flow.target, evidence, by=by)
        self._summary[flow] = groups
        for verdict, number in groups.verdicts.items():
            self._set("offset_verdicts", number, flow.source, flow.target, verdict)
        largest = nlargest(WORST, groups.bounds.items(), key=lambda item: item[1])
        # Two names may look the same when they are escaped: the larger one's bound holds, so the smaller comes first.
        worst: dict[tuple[str, ...], float] = {(one_line(group),): bound for group, bound in reversed(largest)}
        self._show_only("offset_error_bound_records", flow, worst)

    def status(self, status: FlowStatus) -> None:
        flow = (status.flow.source, status.flow.target)
        if status.heartbeat_age_seconds is not None:
            self._set("flow_heartbeat_age_seconds", status.heartbeat_age_seconds, *flow)
        if status.replication_latency_ms is not None:
            self._set("replication_latency_seconds", status.replication_latency_ms / 1000, *flow)
        for state in STATES_IN_A_JOB:
            self._set("flow_state", state is status.state, *flow, state.value)
        self._failover(status)
        self._verified(status.flow, status.verify)
        self._set("leader", status.leader is not None and status.leader.here, *flow)
        effective = status.effective
        configs = None if effective is None else sum(group.configs for group in effective)
        self._set("drift", configs, *flow, EFFECTIVE)
        for kind, of_kind in status.kinds.items():
            for task in Task:
                self._set("task_state", task is of_kind.task, *flow, kind.value, task.value)
            self._set("drift", of_kind.drift, *flow, kind.value)
            if of_kind.last_success is not None:
                self._set("last_success_timestamp_seconds", of_kind.last_success.timestamp(), *flow, kind.value)

    def _failover(self, status: FlowStatus) -> None:
        flow, failover = (status.flow.source, status.flow.target), status.failover
        known = failover.unknown is None
        for step in State:
            self._set("failover_state", step is failover.record.state if known else None, *flow, step.value)
        if failover.preflight is not None:
            self.preflight(status)
        lost = sum(one.records or 0 for one in failover.lost.values())
        self._set("lost_before_copying_records", lost if known else None, *flow)

    def preflight(self, status: FlowStatus) -> None:
        """Set the result of the last preflight. NaN: there is none, or it is out of date."""
        flow, failover = (status.flow.source, status.flow.target), status.failover
        made = failover.preflight
        counts = made if failover.not_checked is None else None
        self._set("failover_ready", status.readiness().ready if counts else None, *flow)
        self._set("failover_records_at_risk", counts.records if counts else None, *flow)
        self._set("failover_seconds_at_risk", counts.seconds_at_risk(self._now_ms()) if counts else None, *flow)
        self._set("failover_preflight_seconds", made.seconds if made else None, *flow)

    def _verified(self, flow: Flow, status: VerifyStatus | None) -> None:
        """Set the status of a flow's record comparison; None if this process does not compare records. Removes gauges
        of unknown values."""
        through = status.through if status else None
        self._show_only("verified_through_timestamp_seconds", flow, {(): through.timestamp()} if through else {})
        rows = status.worst[:WORST_ROWS] if status else []
        self._show_only("verify_differences", flow, {(topic, kind): count for topic, kind, count in rows})
