"""What Prometheus sees, under the names that dashboards rely on. The library does the counting; this is the list."""

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

FLOW_LABELS = ("source", "target")

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
"""Histogram bounds in seconds: a poll takes hundredths, a first comparison of a large cluster a minute."""

WORST = 1000
"""Groups whose error bound is shown: those with the largest."""


@dataclass(frozen=True, slots=True)
class Family:
    """A metric as Prometheus shows it; `type` is `counter`, `gauge` or `histogram`."""

    type: str
    name: str
    text: str
    labels: tuple[str, ...]


class Metrics:
    """All metrics of one job, in a registry of their own. `families` lists them, written or not."""

    def __init__(self, version: str, now_ms: Callable[[], float] = lambda: time.time() * 1000) -> None:
        self._now_ms = now_ms
        self.registry = CollectorRegistry()
        self.families: list[Family] = []
        self._heartbeat_age = self.gauge("flow_heartbeat_age_seconds", *FLOW_LABELS)
        self._latency = self.gauge("replication_latency_seconds", *FLOW_LABELS)
        self._drift = self.gauge("drift", *FLOW_LABELS, "kind")
        self._state = self.gauge("flow_state", *FLOW_LABELS, "state")
        self._task = self.gauge("task_state", *FLOW_LABELS, "kind", "state")
        self._last = self.gauge("last_success_timestamp_seconds", *FLOW_LABELS, "kind")
        self._leads = self.gauge("leader", *FLOW_LABELS)
        self._changes = self.counter("changes", *FLOW_LABELS, "kind", "op", "result")
        self._passes = self.counter("passes", *FLOW_LABELS, "reason")
        self._refusals = self.counter("refused", *FLOW_LABELS, "kind")
        self._requests = self.counter("admin_requests", "cluster", "api", "result")
        self._listeners = self.counter("listener_calls", *FLOW_LABELS, "listener", "result")
        self._reporters = self.counter("reporter_failures", "reporter")
        self._undecodable = self.counter("undecodable", "topic")
        self._failures = self.counter("pass_failures", *FLOW_LABELS, "error")
        self._reconcile = self._histogram("reconcile_seconds", *FLOW_LABELS, "phase")
        self._batch_seconds = self._histogram("batch_seconds")
        self._batch_rows = self.gauge("batch_rows")
        self._query_state = self.gauge("query_state", "target", "state")
        self._restarts = self.counter("query_restarts", "target")
        self._restarted: dict[str, int] = {}
        self._query_runs = self.gauge("query_active", "target")
        self._query_batch = self.gauge("query_batch", "target")
        self._query_rows = self.counter("query_rows", "target")
        self._query_seconds = self.gauge("query_batch_seconds", "target")
        self._query_seen = self.gauge("query_batch_timestamp_seconds", "target")
        self._groups = GroupMetrics(self)
        self._failover = FailoverMetrics(self)
        self._verify = VerifyMetrics(self)
        self._file = self.gauge("file_rejected")
        self._file.set(0)
        self.gauge("build_info", "version").labels(version).set(1)

    def gauge(self, name: str, *labels: str) -> Gauge:
        return Gauge(*self._family("gauge", name, "", labels), registry=self.registry)

    def counter(self, name: str, *labels: str) -> Counter:
        return Counter(*self._family("counter", name, "_total", labels), registry=self.registry)

    def _histogram(self, name: str, *labels: str) -> Histogram:
        return Histogram(*self._family("histogram", name, "", labels), registry=self.registry, buckets=BOUNDS)

    def _family(self, of_type: str, name: str, end: str, labels: tuple[str, ...]) -> tuple[str, str, tuple[str, ...]]:
        found = Family(of_type, f"lockstep_{name}{end}", METRIC_TEXTS[name], labels)
        self.families.append(found)
        return found.name, found.text, labels

    def count_request(self, alias: str, api: str, result: str) -> None:
        self._requests.labels(alias, api, result).inc()

    def count_listener(self, flow: Flow, listener: str, result: str) -> None:
        self._listeners.labels(flow.source, flow.target, listener, result).inc()

    def count_reporter(self, reporter: str) -> None:
        self._reporters.labels(reporter).inc()

    def file(self, rejected: bool) -> None:
        """Whether the running job's properties file has mistakes. The job then keeps its former settings."""
        self._file.set(rejected)

    def count_failure(self, flow: Flow, error: Exception) -> None:
        self._failures.labels(flow.source, flow.target, type(error).__name__).inc()

    def passed(self, flow: Flow, reasons: Collection[Reason]) -> None:
        for reason in reasons:
            self._passes.labels(flow.source, flow.target, reason.value).inc()

    def batch(self, seconds: float, rows: int, undecodable: Mapping[tuple[str, str], int]) -> None:
        """Count one micro-batch, and the work since the batch before it. `undecodable`: counts by (topic, reason)."""
        self._batch_seconds.observe(seconds)
        self._batch_rows.set(rows)
        self.undecodable(undecodable)

    def undecodable(self, counts: Mapping[tuple[str, str], int]) -> None:
        """Count records that Lockstep could not decode, by (topic, reason)."""
        for (topic, _), count in counts.items():
            self._undecodable.labels(topic).inc(count)

    def query(self, target: str, status: QueryStatus) -> None:
        for state in QueryState:
            self._query_state.labels(target, state.value).set(state is status.state)
        self._restarts.labels(target).inc(status.restarts - self._restarted.get(target, 0))
        self._restarted[target] = status.restarts

    def query_runs(self, target: str, runs: bool) -> None:
        self._query_runs.labels(target).set(runs)

    def query_batch(self, target: str, number: int, rows: int, seconds: float) -> None:
        self._query_batch.labels(target).set(number)
        self._query_rows.labels(target).inc(rows)
        self._query_seconds.labels(target).set(seconds)
        self._query_seen.labels(target).set_to_current_time()

    def report(self, report: Report) -> None:
        flow = report.plan.flow
        if report.groups is not None:
            self._groups.show(flow, report.groups)
        for phase, seconds in report.seconds.items():
            self._reconcile.labels(flow.source, flow.target, phase).observe(seconds)
        for outcome in report.outcomes:
            kind, op = outcome.change.kind.value, outcome.change.op.value
            self._changes.labels(flow.source, flow.target, kind, op, outcome.result).inc()
            if outcome.error and not outcome.error.retriable:
                self._refusals.labels(flow.source, flow.target, kind).inc()

    def status(self, status: FlowStatus) -> None:
        flow = (status.flow.source, status.flow.target)
        if status.heartbeat_age_seconds is not None:
            self._heartbeat_age.labels(*flow).set(status.heartbeat_age_seconds)
        if status.replication_latency_ms is not None:
            self._latency.labels(*flow).set(status.replication_latency_ms / 1000)
        for state in STATES_IN_A_JOB:
            self._state.labels(*flow, state.value).set(state is status.state)
        self._failover.show(status, self._now_ms())
        self._verify.show(status.flow, status.verify)
        self._leads.labels(*flow).set(status.leader is not None and status.leader.here)
        effective = status.effective
        self._drift.labels(*flow, EFFECTIVE).set(
            math.nan if effective is None else sum(group.configs for group in effective)
        )
        for kind, of_kind in status.kinds.items():
            for task in Task:
                self._task.labels(*flow, kind.value, task.value).set(task is of_kind.task)
            self._drift.labels(*flow, kind.value).set(math.nan if of_kind.drift is None else of_kind.drift)
            if of_kind.last_success is not None:
                self._last.labels(*flow, kind.value).set(of_kind.last_success.timestamp())

    def preflight(self, status: FlowStatus) -> None:
        self._failover.preflight(status, self._now_ms())


class GroupMetrics:
    """Of the consumer groups of all flows."""

    def __init__(self, made: Metrics) -> None:
        self._verdicts = made.gauge("offset_verdicts", *FLOW_LABELS, "verdict")
        self._bounds = made.gauge("offset_error_bound_records", *FLOW_LABELS, "group")
        self._evidence = made.counter("offset_evidence_refused", *FLOW_LABELS, "evidence")
        self._summary: dict[Flow, GroupSummary] = {}
        self._shown: dict[Flow, frozenset[str]] = {}

    def show(self, flow: Flow, groups: GroupSummary) -> None:
        if self._summary.get(flow) is groups:
            return
        before = self._summary[flow].refused if flow in self._summary else {}
        for evidence, count in groups.refused.items():
            # A renewed flow counts from zero.
            more = count - before.get(evidence, 0)
            self._evidence.labels(flow.source, flow.target, evidence).inc(more if more >= 0 else count)
        self._summary[flow] = groups
        for verdict, count in groups.verdicts.items():
            self._verdicts.labels(flow.source, flow.target, verdict).set(count)
        largest = nlargest(WORST, groups.bounds.items(), key=lambda item: item[1])
        # Two names may look the same when they are escaped: the larger one's bound holds, so the smaller comes first.
        worst = {one_line(group): bound for group, bound in reversed(largest)}
        for group in self._shown.get(flow, frozenset()) - worst.keys():
            self._bounds.remove(flow.source, flow.target, group)
        for group, bound in worst.items():
            self._bounds.labels(flow.source, flow.target, group).set(bound)
        self._shown[flow] = frozenset(worst)


class FailoverMetrics:
    """Of the failovers of all flows."""

    def __init__(self, made: Metrics) -> None:
        self._state = made.gauge("failover_state", *FLOW_LABELS, "state")
        self._ready = made.gauge("failover_ready", *FLOW_LABELS)
        self._at_risk = made.gauge("failover_records_at_risk", *FLOW_LABELS)
        self._risk_age = made.gauge("failover_seconds_at_risk", *FLOW_LABELS)
        self._preflight = made.gauge("failover_preflight_seconds", *FLOW_LABELS)
        self._lost = made.gauge("lost_before_copying_records", *FLOW_LABELS)

    def show(self, status: FlowStatus, now_ms: float) -> None:
        flow, failover = (status.flow.source, status.flow.target), status.failover
        known = failover.unknown is None
        for step in State:
            self._state.labels(*flow, step.value).set(step is failover.record.state if known else math.nan)
        if failover.preflight is not None:
            self.preflight(status, now_ms)
        lost = sum(one.records or 0 for one in failover.lost.values())
        self._lost.labels(*flow).set(lost if known else math.nan)

    def preflight(self, status: FlowStatus, now_ms: float) -> None:
        """Set the result of the last preflight. NaN: there is none, or it is out of date."""
        flow, failover = status.flow, status.failover
        made = failover.preflight
        counts = made if failover.not_checked is None else None
        age = counts.seconds_at_risk(now_ms) if counts else None
        found = (status.readiness().ready, counts.records, age) if counts else (None,) * 3
        seen = (*found, made.seconds if made else None)
        gauges = (self._ready, self._at_risk, self._risk_age, self._preflight)
        for gauge, value in zip(gauges, seen, strict=True):
            gauge.labels(flow.source, flow.target).set(math.nan if value is None else value)


WORST_ROWS = 100
"""Topics and kinds of a flow that are shown: those with the most differences."""


class VerifyMetrics:
    """Of all flows. What is not known is not there."""

    def __init__(self, made: Metrics) -> None:
        self._through = made.gauge("verified_through_timestamp_seconds", *FLOW_LABELS)
        self._differences = made.gauge("verify_differences", *FLOW_LABELS, "topic", "kind")
        self._timed: set[Flow] = set()
        self._shown: dict[Flow, frozenset[tuple[str, str]]] = {}

    def show(self, flow: Flow, status: VerifyStatus | None) -> None:
        """Set the status of a flow's record comparison; None if this process does not compare records."""
        through = status.through if status else None
        if through is not None:
            self._through.labels(flow.source, flow.target).set(through.timestamp())
            self._timed.add(flow)
        elif flow in self._timed:
            self._through.remove(flow.source, flow.target)
            self._timed.discard(flow)
        rows = status.worst[:WORST_ROWS] if status else []
        now = frozenset((topic, kind) for topic, kind, _ in rows)
        for topic, kind in self._shown.get(flow, frozenset()) - now:
            self._differences.remove(flow.source, flow.target, topic, kind)
        for topic, kind, count in rows:
            self._differences.labels(flow.source, flow.target, topic, kind).set(count)
        self._shown[flow] = now


EFFECTIVE: Final = "effective"
"""The drift of configs that are set on neither side and differ in effect, as if it were a kind."""

METRIC_TEXTS: Final[Mapping[str, str]] = {
    "flow_heartbeat_age_seconds": "Age of MM2's newest heartbeat",
    "replication_latency_seconds": "How long MM2 took to copy its newest heartbeat from source to target",
    "drift": "Differences between source and target that remain; NaN while they are not known. "
    f"Kind `{EFFECTIVE}`: configs that are set on neither side and differ in effect",
    "flow_state": "1 for the state that a flow is in, 0 for the others (commands.md)",
    "task_state": "1 for the task of a kind, 0 for the others (commands.md)",
    "last_success_timestamp_seconds": "When a pass last left a kind with no difference, in seconds since 1970",
    "failover_state": "1 for the state of the flow's failover, 0 for the others (failover.md); all NaN while the "
    "ledger cannot be read",
    "failover_ready": "1 if the flow could be cut over by its passes and its last preflight (failover.md), 0 if not, "
    "NaN if it is not known",
    "failover_records_at_risk": "Records that a failover would have lost at the last preflight, NaN if it is not known",
    "failover_seconds_at_risk": "Age now of the oldest record that a failover would have lost at the last preflight, "
    "NaN if it is not known. While the source gives no answer: upper bound, from the last preflight that it answered",
    "failover_preflight_seconds": "How long the last preflight took",
    "lost_before_copying_records": "Upper bound of records that retention deleted before MM2 copied them, or that a "
    "log lost with its tail, until `lockstep ledger acknowledge`; NaN while the ledger cannot be read",
    "leader": "1 if this process leads the flow and writes it, 0 if it stands by",
    "changes": "Changes that Lockstep tried to write to the target",
    "passes": "Passes, by the reason that made them due; one may have several",
    "refused": "Changes that the target refused and that back off",
    "admin_requests": "Requests of Kafka's admin API that Lockstep sent",
    "file_rejected": "1 while the properties file has mistakes and the job keeps what it had read before, else 0",
    "listener_calls": "Calls of topic.listener.class and group.listener.class",
    "reporter_failures": "Calls of metric.reporters that failed or took too long",
    "undecodable": "Records in MM2's internal topics that MM2 did not write",
    "pass_failures": "Passes that an error ended",
    "offset_verdicts": "Partitions of consumer groups, by their verdict (offsets.md)",
    "offset_evidence_refused": "Offset-syncs and checkpoints that cannot be true and were not used (offsets.md)",
    "offset_error_bound_records": "The most records that a group would read twice on the target",
    "reconcile_seconds": "How long each phase of a pass took",
    "batch_seconds": "Work in one micro-batch, on MM2's records and on passes",
    "batch_rows": "Records of MM2's internal topics in the last micro-batch",
    "query_state": "1 for the state that the streaming query into a target is in, 0 for the others",
    "query_restarts": "Restarts of the streaming query into a target after a failure",
    "query_active": "1 while Spark runs the streaming query into a target, else 0",
    "query_batch": "Number of the last micro-batch that Spark committed",
    "query_rows": "Records of MM2's internal topics that Spark's micro-batches read",
    "query_batch_seconds": "Duration of the last micro-batch as Spark counts it",
    "query_batch_timestamp_seconds": "When Spark last committed a micro-batch, in seconds since 1970",
    "verified_through_timestamp_seconds": "Time through which all records were compared, in seconds since 1970; only "
    "with lockstep.verify.enabled",
    "verify_differences": "Records that differ between source and target, by topic and difference; STALLED "
    "counts partitions that stand still while their source moves",
    "build_info": "Always 1; its label is the version",
}
