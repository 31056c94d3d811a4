"""The checks of partitions whose records are read: what jobs bring of them, and what it proves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sinks.verify.digest_rules import NONE, Digest
from sinks.verify.last_records import last_records
from sinks.verify.matched_rows import matched_rows, of_cell
from sinks.verify.partition_check import PartitionCheck, PartitionPlan, Reread
from sinks.verify.partition_report import report
from sinks.verify.partition_verdicts import PartitionReport, VerifyLevel
from sinks.verify.record_jobs import RecordJobs
from streaming.mm2.records import TopicPartition
from streaming.verify.rows import PartitionRead, SoughtRecord

MOST_ROWS = 50_000
"""Contents, and runs, of all windows that are read again together, that come to the driver: of each as many."""


@dataclass(frozen=True)
class _Window:
    """A window that is read again, and the number of its partition among the checks."""

    check: int
    reread: Reread


class RecordChecks:
    """Compares partitions of one flow."""

    def __init__(self, level: VerifyLevel, open_jobs: Callable[[], RecordJobs], most: int = MOST_ROWS) -> None:
        """`open_jobs` is called if there is something to read. `most`: rows of a kind that they bring at once."""
        self._level, self._open_jobs, self._most = level, open_jobs, most

    def run(
        self, plans: Sequence[PartitionPlan], compacted: Collection[str], notes: Mapping[TopicPartition, Sequence[str]]
    ) -> list[PartitionReport]:
        """A report of each partition. `compacted`: topics of which the last record of each key counts."""
        if not any(plan.windows for plan in plans):
            return [report(PartitionCheck(plan), notes[plan.where]) for plan in plans]
        jobs = self._open_jobs()
        checks = [PartitionCheck(plan) for plan in plans if plan.where.topic not in compacted]
        self._read(jobs, checks)
        found = [report(check, notes[check.plan.where]) for check in checks]
        keyed = [plan for plan in plans if plan.where.topic in compacted]
        return found + (last_records(jobs, keyed, notes, self._most) if keyed else [])

    def _read(self, jobs: RecordJobs, checks: Sequence[PartitionCheck]) -> None:
        due = [one for one in self._digests(jobs, checks) if self._is_due(one.reread)]
        for times in (True, False):
            if chosen := [one for one in due if one.reread.times is times]:
                due += self._match(jobs, checks, chosen, times)
        self._find_copies(jobs, checks)

    def _is_due(self, reread: Reread) -> bool:
        """Digests alone cannot tell the order of records, nor where an open window ends."""
        return self._level is VerifyLevel.RECORDS or not reread.differs or not reread.window.closed

    def _digests(self, jobs: RecordJobs, checks: Sequence[PartitionCheck]) -> list[_Window]:

        ours, theirs = [], []
        for number, check in enumerate(checks):
            up, down = check.bounds()
            ours.append(PartitionRead(number, check.plan.where.topic, check.plan.where.partition, up))
            theirs.append(PartitionRead(number, check.plan.remote.topic, check.plan.remote.partition, down))
        found: list[dict[int, list[Digest]]] = [{} for _ in checks]
        for row in jobs.digests(ours, theirs):
            found[row.id].setdefault(row.cell, [NONE, NONE])[row.side] = Digest(*row[3:])
        return [
            _Window(number, reread)
            for number, check in enumerate(checks)
            for reread in check.take_digests({cell: (one, other) for cell, (one, other) in found[number].items()})
        ]

    def _find_copies(self, jobs: RecordJobs, checks: Sequence[PartitionCheck]) -> None:
        """Records of the target alone that the source has in another place: MM2 sent them again, unseen by a sync."""
        wanted = {
            SoughtRecord(number, *fields): (check, fields)
            for number, check in enumerate(checks)
            for fields in check.unmatched_on_target()
        }
        if not wanted:
            return
        plans = [(number, checks[number].plan) for number in sorted({one.id for one in wanted})]
        reads = [
            PartitionRead(number, plan.where.topic, plan.where.partition, [plan.source.start, plan.source.end])
            for number, plan in plans
        ]
        for one, offset in jobs.find_on_source(reads, list(wanted)).items():
            check, fields = wanted[one]
            check.copies[fields] = offset

    def _match(
        self, jobs: RecordJobs, checks: Sequence[PartitionCheck], windows: Sequence[_Window], times: bool
    ) -> list[_Window]:
        """Those to be matched once more without timestamps, which the target's brokers turn out to give."""
        of_check: dict[int, list[_Window]] = {}
        for one in windows:
            of_check.setdefault(one.check, []).append(one)
        ours, theirs = [], []
        for number, found in of_check.items():
            found.sort(key=lambda one: one.reread.window.upstream)
            up, down = _alternating(found)
            plan = checks[number].plan
            ours.append(PartitionRead(number, plan.where.topic, plan.where.partition, up))
            theirs.append(PartitionRead(number, plan.remote.topic, plan.remote.partition, down))
        rows = jobs.pairs(ours, theirs, times, self._most)
        untimed: list[_Window] = []
        for number, found in of_check.items():
            for at, one in enumerate(found):
                brought = of_cell(rows, (number, 2 * at))
                if times and brought.appended:
                    untimed.append(replace(one, reread=replace(one.reread, times=False)))
                    continue
                checks[number].take_match(one.reread, matched_rows(brought, one.reread.edges, times))
        return untimed


def _alternating(windows: Iterable[_Window]) -> tuple[list[int], list[int]]:
    """Bounds of cells of which the even ones are the windows, the odd ones what lies between."""
    up: list[int] = []
    down: list[int] = []
    for one in windows:
        window = one.reread.window
        up += [window.upstream, window.upstream_end]
        down += [window.downstream, window.downstream_end]
    return up, down
