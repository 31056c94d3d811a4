"""Compares the records of source and target of one flow. Commands, job and failover call `verify_flow`."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from app.settings import Settings
from app.verify.spark_jobs import record_jobs, refuse_transforms
from app.wiring import both_clusters, guard, ledger
from sinks.failover.cut_reader import AsItWas
from sinks.failover.lost_before_copying import LostRecords, lost_by_now, unacknowledged
from sinks.flow_settings import FlowSettings
from sinks.kinds.offsets.exact_runs import remember
from sinks.kinds.offsets.memory import OffsetMemory
from sinks.kinds.offsets.mirror_reading import read_memory
from sinks.kinds.offsets.mirror_records import mirror_topics
from sinks.kinds.shared_listings import list_both
from sinks.ledger.ledger import Ledger
from sinks.verify.partition_check import PartitionPlan
from sinks.verify.partition_report import counted
from sinks.verify.partition_verdicts import FlowReport, PartitionReport, PartitionVerdict, VerifyLevel
from sinks.verify.record_checks import compare_records
from sinks.verify.what_to_compare import ComparisonScope, SurveyedSide, changed_meanwhile, survey_logs
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition
from streaming.verify.rows import SOURCE, TARGET, DifferingRecord, PartitionRead

if TYPE_CHECKING:
    from streaming.verify.jobs import Session, SparkJobs

OpenSession = Callable[[int], "Session"]
"""Opens Spark. The argument: how many offsets of both sides together will be read."""

log = logging.getLogger(__name__)

COMPARISON_TRIES = 3
"""Tries for a partition whose oldest records are deleted while they are read."""

EXACTLY_ONCE = "exactly.once.source.support"


def verify_flow(
    settings: Settings,
    flow: FlowSettings,
    scope: ComparisonScope,
    spark: OpenSession,
    ends: Mapping[TopicPartition, int] | None = None,
) -> FlowReport:
    """Compares the records of both sides. Writes only exact offsets into the flow's ledger, if there is one.

    `spark`: called if records must be read. `ends`: offsets that count as the ends of the target's partitions, because
    clients may have written there since. Raises NotComparable, ClusterUnreachable, RightsMissing, WrongCluster,
    LedgerUntrusted.
    """
    began = time.monotonic()
    refuse_transforms(settings, flow)
    with (
        both_clusters(settings, flow) as clusters,
        closing(clusters.source.records(flow.isolation)) as ours,
        closing(clusters.target.records("read_committed")) as theirs,
    ):
        guarded = guard(flow, clusters.source, clusters.target)
        opened = guarded.open(partial(ledger, flow, clusters.target, to_write=True))
        sides = SurveyedSide(clusters.source, ours), SurveyedSide(clusters.target, theirs)
        check = _FlowCheck(settings, flow, scope, spark, *sides)
        reports, lost = check.run(opened, ends or {}), check.lost(opened)
    reports.sort(key=attrgetter("where"))
    return FlowReport(flow.flow, scope.level, reports, time.monotonic() - began, lost)


def verify_rest(
    settings: Settings,
    flow: FlowSettings,
    spark: OpenSession,
    topics: Sequence[str] = (),
    ends: Mapping[TopicPartition, int] | None = None,
) -> FlowReport:
    """Compares the records that neither the job nor a command has verified yet, before clients are switched over.
    Raises as `verify_flow`.

    For a partition that the ledger does not know, compares the last 100,000 offsets. Compares earlier differences
    again, with everything after them. `topics`: of the source; empty: all replicated ones. `ends`: see `verify_flow`.
    """
    return verify_flow(
        settings, flow, ComparisonScope(tuple(topics), unverified=True, whole=flow.verifying.enabled), spark, ends
    )


@dataclass(frozen=True)
class _FlowCheck:
    settings: Settings
    flow: FlowSettings
    scope: ComparisonScope
    spark: OpenSession
    source: SurveyedSide
    target: SurveyedSide

    def run(self, opened: Ledger, ends: Mapping[TopicPartition, int]) -> list[PartitionReport]:
        """Surveys and compares. Compares partitions that lost records meanwhile once more. `ends`: see
        `verify_flow`.
        """
        reports: list[PartitionReport] = []
        scope, source, target = self.scope, self.source.reader, self.target.reader
        sides = self.source, SurveyedSide(target, AsItWas(self.target.records, ends))
        only: set[TopicPartition] | None = None
        for _ in range(COMPARISON_TRIES):
            listed = list_both(self.flow, source, target)
            memory = read_memory(opened, mirror_topics(self.flow, source, target))
            found = survey_logs(self.flow, *sides, listed, memory, scope)
            if only is None:
                reports += found.reports
            plans = [plan for plan in found.plans if only is None or plan.where in only]
            done = self._compare(plans)
            read = scope.level is not VerifyLevel.COUNTS
            only = changed_meanwhile(plans, *sides, found.ids) if read else set()
            stayed = [one for one in done if one.where not in only]
            reports += stayed
            _remember(opened, stayed, memory)
            if not only:
                return reports
        return reports + [_expires_too_fast(one) for one in plans if one.where in (only or ())]

    def lost(self, opened: Ledger) -> LostRecords:
        """Returns the records of the compared topics that the source lost before MM2 copied them."""
        remote = list_both(self.flow, self.source.reader, self.target.reader).desired.remote
        names = self.scope.topics or remote.keys()
        wanted = {topic: remote[topic] for topic in names if topic in remote}
        now_ms = round(time.time() * 1000)
        found = lost_by_now(opened, self.source.records, self.target.records, wanted, now_ms)
        return {where: one for where, one in unacknowledged(found).items() if where.topic in wanted}

    def _compare(self, plans: Sequence[PartitionPlan]) -> Iterable[PartitionReport]:
        if self.scope.level is VerifyLevel.COUNTS:
            markers = self.settings.plugin_properties[self.flow.flow].get(EXACTLY_ONCE, "") == "enabled"
            return [counted(plan, markers) for plan in plans]
        return compare_records(plans, self.scope.level, partial(self._jobs, _offsets(plans)))

    def _jobs(self, offsets: int) -> SparkJobs:
        return record_jobs(self.settings, self.flow, self.spark(offsets))


def _offsets(plans: Iterable[PartitionPlan]) -> int:
    ends = [(plan.windows[0], plan.windows[-1]) for plan in plans if plan.windows]
    return sum(last.upstream_end - first.upstream + last.downstream_end - first.downstream for first, last in ends)


def _remember(opened: Ledger, reports: Iterable[PartitionReport], memory: OffsetMemory) -> None:
    """Stores what was compared, and exact offsets of windows without a difference. Does nothing without a ledger."""
    found = list(reports)
    verified = [(one.where, one.runs) for one in found if one.runs]
    checked = {one.where: [one.checked] for one in found if one.checked}
    if not (verified or checked) or not opened.exists:
        return
    try:
        # What the job has found since this began must not be written over.
        opened.refresh()
        memory.histories.exact.renew(opened)
        remember(opened, verified, memory.histories.exact, memory.histories.position, checked)
    except LockstepError as error:
        log.warning("exact offsets were not stored: %s", error)


def _expires_too_fast(plan: PartitionPlan) -> PartitionReport:
    reason = "its records are deleted faster than they are read: compare fewer of them, with --last or --since"
    return PartitionReport(plan.where, plan.remote.topic, PartitionVerdict.UNVERIFIABLE, reason)


# `lockstep verify --export`: the records that differ, as Parquet.


def export_records(
    settings: Settings, flow: FlowSettings, report: FlowReport, spark: Callable[[int], Session], folder: str
) -> str | None:
    """Exports the records that a report names, a row for each record and side, for their owner alone. Returns the
    flow's folder below `folder`; None if nothing differs.

    `folder` exists (`make_new_folder`). Raises Spark's errors, also if the flow's folder exists.
    """
    found = [one for one in report.partitions if one.findings]
    if not found:
        return None
    # A second of imports, only for exports.
    from streaming.verify.jobs import write_differing

    path = f"{folder.rstrip('/')}/{flow.flow.source}-{flow.flow.target}"
    sides = []
    for side in (SOURCE, TARGET):
        records = [record for number, one in enumerate(found) for record in _records(number, one, side)]
        reads = [_read(number, one, side, records) for number, one in enumerate(found)]
        sides.append((side, [read for read in reads if read is not None], records))
    write_differing(record_jobs(settings, flow, spark(0)), sides, path)
    return path


def _records(number: int, one: PartitionReport, side: int) -> Iterator[DifferingRecord]:
    for finding in one.findings:
        first = finding.upstream if side == SOURCE else finding.downstream
        if first is not None:
            for offset in range(first, first + finding.count):
                yield DifferingRecord(number, offset, finding.difference.value, ", ".join(finding.fields))


def _read(number: int, one: PartitionReport, side: int, records: list[DifferingRecord]) -> PartitionRead | None:
    offsets = [record.offset for record in records if record.id == number]
    if not offsets:
        return None
    topic = one.where.topic if side == SOURCE else one.remote
    return PartitionRead(number, topic, one.where.partition, [min(offsets), max(offsets) + 1])
