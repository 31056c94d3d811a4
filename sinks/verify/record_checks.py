"""Compares partitions record by record: what the Spark jobs read, and what that proves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from sinks.verify.matching import matched_rows, of_cell
from sinks.verify.partition_check import NONE, PartitionCheck, PartitionPlan, Reread
from sinks.verify.partition_report import MOST_FINDINGS, NOTHING_LEFT, report
from sinks.verify.partition_verdicts import Difference, FoundDifference, PartitionReport, PartitionVerdict, VerifyLevel
from sinks.verify.record_jobs import RecordJobs
from streaming.message_words import number_of
from streaming.verify.rows import Digest, KeyRow, KeySums, LastRecord, PartitionRead, SoughtRecord

MOST_ROWS = 50_000
"""Most rows of one kind that a job brings to the driver for all windows together."""


Numbered = tuple[int, Reread]
"""The number of a partition among the checks, and a window of it that is read again."""


def compare_records(
    plans: Sequence[PartitionPlan], level: VerifyLevel, open_jobs: Callable[[], RecordJobs], most: int = MOST_ROWS
) -> list[PartitionReport]:
    """Compares partitions of one flow.

    `open_jobs`: called only if there is something to read. `most`: rows of one kind that a job brings.
    """
    if not any(plan.windows for plan in plans):
        return [report(PartitionCheck(plan)) for plan in plans]
    jobs = open_jobs()
    checks = [PartitionCheck(plan) for plan in plans if not plan.compacted]
    due = [(number, one) for number, one in _digests(jobs, checks) if _is_due(one, level)]
    for times in (True, False):
        if chosen := [(number, one) for number, one in due if one.times is times]:
            due += _match(jobs, checks, chosen, times, most)
    _find_copies(jobs, checks)
    found = [report(check) for check in checks]
    keyed = [plan for plan in plans if plan.compacted]
    return found + (last_records(jobs, keyed, most) if keyed else [])


def _is_due(reread: Reread, level: VerifyLevel) -> bool:
    """Whether a window must be matched record by record. Digests alone cannot tell the order of records, nor where an
    open window ends."""
    return level is VerifyLevel.RECORDS or not reread.differs or not reread.window.closed


def _digests(jobs: RecordJobs, checks: Sequence[PartitionCheck]) -> list[Numbered]:
    both = [check.plan.reads(number, *check.bounds()) for number, check in enumerate(checks)]
    found: list[dict[int, list[Digest]]] = [{} for _ in checks]
    for row in jobs.digests(*_sides(both)):
        found[row.id].setdefault(row.cell, [NONE, NONE])[row.side] = row.digest
    return [(number, reread) for number, check in enumerate(checks) for reread in check.take_digests(found[number])]


def _sides(both: Sequence[tuple[PartitionRead, PartitionRead]]) -> tuple[list[PartitionRead], list[PartitionRead]]:
    return [one for one, _ in both], [other for _, other in both]


def _find_copies(jobs: RecordJobs, checks: Sequence[PartitionCheck]) -> None:
    """Finds on the source what only the target has in a window. MM2 sent it again, and no sync shows that."""
    wanted = {
        SoughtRecord(number, fields): check
        for number, check in enumerate(checks)
        for fields in check.unmatched_on_target()
    }
    if not wanted:
        return
    plans = [(number, checks[number].plan) for number in sorted({one.id for one in wanted})]
    reads = [plan.reads(number, [plan.source.start, plan.source.end], [])[0] for number, plan in plans]
    for one, offset in jobs.find_on_source(reads, list(wanted)).items():
        wanted[one].copies[one.fields] = offset


def _match(
    jobs: RecordJobs, checks: Sequence[PartitionCheck], windows: Sequence[Numbered], times: bool, most: int
) -> list[Numbered]:
    """Match these windows, and take in the results.

    Returns the windows to match once more without timestamps, because the target's brokers set their own.
    """
    of_check: dict[int, list[Reread]] = {}
    for number, one in windows:
        of_check.setdefault(number, []).append(one)
    both = []
    for number, found in of_check.items():
        found.sort(key=lambda one: one.window.upstream)
        # Even cells are the windows; odd cells lie between them.
        up = [at for one in found for at in (one.window.upstream, one.window.upstream_end)]
        down = [at for one in found for at in (one.window.downstream, one.window.downstream_end)]
        both.append(checks[number].plan.reads(number, up, down))
    rows = jobs.pairs(*_sides(both), times, most)
    untimed: list[Numbered] = []
    for number, found in of_check.items():
        for at, one in enumerate(found):
            brought = of_cell(rows, (number, 2 * at))
            if times and brought.appended:
                untimed.append((number, replace(one, times=False)))
                continue
            checks[number].take_match(one, matched_rows(brought, one.edges), brought.sums)
    return untimed


# Compacted topics: what the last record of each key proves.
#
# Each side's cleaner takes records at its own time, so only the last record of a key can be compared. MM2 copies in
# order: once one record has arrived, all before it have.


def last_records(jobs: RecordJobs, plans: Sequence[PartitionPlan], most: int) -> list[PartitionReport]:
    keys, rows = _read(jobs, plans, [number for number, plan in enumerate(plans) if plan.windows], most)
    unproven = {number for number, found in keys.items() if is_unproven(plans[number], found)}
    if unproven:
        # A lost tombstone's older value may lie anywhere before, so the whole target is read for it.
        again, more = _read(jobs, plans, sorted(unproven), most, older=True)
        keys, rows = keys | again, [row for row in rows if row.id not in again] + more
        unproven -= again.keys()
    return [
        compacted_report(
            plan,
            keys.get(number, KeySums(number, 0, 0, None, 0, None)),
            [row for row in rows if row.id == number],
            unproven=number in unproven,
        )
        for number, plan in enumerate(plans)
    ]


def _read(
    jobs: RecordJobs, plans: Sequence[PartitionPlan], numbers: Sequence[int], most: int, older: bool = False
) -> tuple[dict[int, KeySums], list[KeyRow]]:
    """Returns sums by number of the partition, and the keys that differ. `numbers`: places in `plans`.

    `older`: also read what the target has before the windows.
    """
    both = []
    for number in numbers:
        plan = plans[number]
        first, last = plan.windows[0], plan.windows[-1]
        down = [plan.target.start if older else first.downstream, first.downstream, last.downstream_end]
        both.append(plan.reads(number, [first.upstream, last.upstream_end], down))
    sums, rows = jobs.last_values(*_sides(both), most)
    return {one.id: one for one in sums}, list(rows)


MAY_BE_LATE = "{} not agree; too many differ to fetch them all, so they may only be late"

UNPROVEN_DELETION = (
    "the target lacks a deletion, and has too many older records to read them now: `lockstep verify` reads them"
)


def arrived_before(plan: PartitionPlan, keys: KeySums) -> int:
    """Returns the source offset before which all records must have arrived."""
    known = max((window.upstream for window in plan.windows if not window.begins_open), default=0)
    return max(known, -1 if keys.agreed is None else keys.agreed + 1)


def is_unproven(plan: PartitionPlan, keys: KeySums) -> bool:
    """Whether a tombstone must have arrived, but the target may still have an older value that was not read."""
    reaches_back = not plan.windows or plan.windows[0].downstream <= plan.target.start
    return keys.deletion is not None and not reaches_back and keys.deletion < arrived_before(plan, keys)


def compacted_report(
    plan: PartitionPlan, keys: KeySums, odd: Iterable[KeyRow], unproven: bool = False
) -> PartitionReport:
    """Returns the report of a partition. `odd` may be cut off, and keys that were not seen prove nothing;
    `keys.different` counts all of them.

    `unproven`: tombstones prove nothing either, because the target could not be read for them (`is_unproven`).
    """
    found = _sorted_out(plan, keys, odd)
    counts = Counter(one.difference for one in found.findings)
    if found.findings:
        # Keys that were cut off are most likely of the same kinds.
        counts[Difference.CHANGED] += found.unseen
    # None: equal keys prove that all is there.
    reason = UNPROVEN_DELETION if unproven else None
    if found.unseen:
        reason = MAY_BE_LATE.format(number_of(found.unseen, "more key does", "more keys do"))
    if keys.different == keys.keys and (found.expired or (found.pending and plan.may_have_expired)):
        reason = NOTHING_LEFT
    unsure = PartitionVerdict.UNVERIFIABLE if reason else PartitionVerdict.VERIFIED
    return PartitionReport(
        plan.where,
        plan.remote.topic,
        PartitionVerdict.DIFFERENT if found.findings else unsure,
        reason,
        start=plan.windows[0].upstream if plan.windows else plan.source.start,
        through=min((one.offset for one in found.pending), default=plan.source.end),
        through_ms=keys.last_ms,
        records=keys.keys if reason is not NOTHING_LEFT else 0,
        pending=len(found.pending),
        pending_ms=min((one.ms for one in found.pending), default=None),
        differences={kind: counts[kind] for kind in Difference if counts[kind]},
        findings=found.findings[:MOST_FINDINGS],
        times=not keys.appended,
        notes=(*plan.notes, *_notes(keys, found.expired, len(found.findings) - MOST_FINDINGS)),
    )


@dataclass
class _OddKeys:
    """Keys that differ, by what is wrong with them. `unseen`: how many were not brought."""

    findings: list[FoundDifference] = field(default_factory=list)
    pending: list[LastRecord] = field(default_factory=list)
    expired: int = 0
    unseen: int = 0


def _sorted_out(plan: PartitionPlan, keys: KeySums, odd: Iterable[KeyRow]) -> _OddKeys:
    arrived, found = arrived_before(plan, keys), _OddKeys(unseen=keys.different)
    for key in odd:
        found.unseen -= 1
        if key.source is not None and (key.source.offset >= arrived or plan.resending):
            found.pending.append(key.source)
        elif plan.resending:
            continue
        elif _is_expired(plan, key):
            found.expired += 1
        else:
            found.findings.append(_finding(key, times=not keys.appended))
    return found


def _notes(keys: KeySums, expired: int, left_out: int) -> Iterator[str]:
    yield f"compacted: the last record of each of {number_of(keys.keys, 'key')} was compared"
    if keys.appended:
        yield "timestamps are left out: the target's brokers give them (LogAppendTime)"
    if expired:
        yield f"retention left {number_of(expired, 'key')} on one side only"
    if left_out > 0:
        yield f"left out: {number_of(left_out, 'more finding')}"


def _is_expired(plan: PartitionPlan, key: KeyRow) -> bool:
    """Whether one side may have deleted by retention what the other one still has (`compact,delete`)."""
    head = plan.windows[0] if plan.windows else None
    if head is None or not head.begins_open:
        return False
    if key.target is None and key.source is not None:
        return plan.target.start > 0 and key.source.offset < head.upstream_end
    return key.source is None and key.target is not None and plan.source.start > 0


def _finding(key: KeyRow, *, times: bool) -> FoundDifference:
    ours, theirs = key.source, key.target
    if ours is None or theirs is None:
        only = Difference.MISSING if theirs is None else Difference.EXTRA
        found = ours or theirs
        upstream, downstream = (ours.offset if ours else None), (theirs.offset if theirs else None)
        return FoundDifference(only, upstream, downstream, 1, (), found.ms if found else None)
    compared = ("value", "headers", "ms") if times else ("value", "headers")
    names = [name for name in compared if getattr(ours, name) != getattr(theirs, name)]
    fields = tuple("timestamp" if name == "ms" else name for name in names)
    return FoundDifference(Difference.CHANGED, ours.offset, theirs.offset, 1, fields, ours.ms)
