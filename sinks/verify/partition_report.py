"""Makes the report of a partition from all that its check has found. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from sinks.kinds.offsets.exact_runs import joined_runs
from sinks.verify.matching import Matched
from sinks.verify.partition_check import PartitionCheck, PartitionPlan
from sinks.verify.partition_verdicts import (
    Difference,
    FoundDifference,
    PartitionReport,
    PartitionVerdict,
    joined_findings,
)
from streaming.message_words import number_of
from streaming.verify.rows import Fields

MOST_FINDINGS = 1000
"""Most findings of a partition that are named; more are only counted."""

ORDER_UNKNOWN = "too many records of a window lie apart to tell whether all are in order"

NOTHING_LEFT = "each side has deleted what the other one still has: nothing is left to compare"


def report(check: PartitionCheck) -> PartitionReport:
    """Returns the report, after all digests and matches were taken."""
    plan, results = check.plan, check.results
    matches = [result.matched for result in results if result.matched]
    findings = _across_windows(matches, check.copies)
    counts = sum((Counter(one.uncounted) for one in matches), Counter[Difference]())
    for finding in findings:
        counts[finding.difference] += finding.count
    unnamed = sum(result.differs and result.matched is None for result in results)
    compared = [result for result in results if result.records or result.differs]
    different = unnamed or any(kind is not Difference.UNVERIFIABLE for kind, count in counts.items() if count)
    expired = sum(result.expired for result in results)
    verdict, reason = _verdict(check, bool(different), unnamed, bool(compared), expired)
    through_ms = [result.last_ms for result in results if result.last_ms is not None]
    through = [result.through for result in results if result.through is not None]
    return PartitionReport(
        plan.where,
        plan.remote.topic,
        verdict,
        reason,
        start=min((result.first for result in results if result.first is not None), default=None),
        through=max(through, default=plan.source.end),
        through_ms=max(through_ms, default=None),
        records=sum(result.records for result in results),
        pending=check.pending,
        pending_ms=check.pending_ms,
        differences={kind: counts[kind] for kind in Difference if counts[kind]},
        findings=findings[:MOST_FINDINGS],
        times=not any(result.appended for result in results),
        runs=joined_runs(run for result in results if not result.differs for run in result.runs),
        notes=tuple(_notes(check, findings, expired)),
    )


def _verdict(
    check: PartitionCheck, different: bool, unnamed: int, compared: bool, expired: int
) -> tuple[PartitionVerdict, str | None]:
    order = ORDER_UNKNOWN if any(result.matched and result.matched.order_unknown for result in check.results) else None
    if different:
        other = f"{number_of(unnamed, 'window has', 'windows have')} other records on the target" if unnamed else None
        return PartitionVerdict.DIFFERENT, other or order
    if order:
        return PartitionVerdict.UNVERIFIABLE, order
    if not compared and (expired or (check.pending and check.plan.may_have_expired)):
        return PartitionVerdict.UNVERIFIABLE, NOTHING_LEFT
    return PartitionVerdict.VERIFIED, None


def _notes(check: PartitionCheck, findings: list[FoundDifference], expired: int) -> Iterable[str]:
    yield from check.plan.notes
    if any(result.appended for result in check.results):
        yield "timestamps are left out: the target's brokers give them (LogAppendTime)"
    if expired:
        left = number_of(expired, "record or offset", "records or offsets")
        yield f"retention left {left} on one side only, before the compared ones"
    if (left_out := len(findings) - MOST_FINDINGS) > 0:
        yield f"left out: {number_of(left_out, 'more finding')}"
    if check.pending:
        deleted = (
            ", or deleted since"
            if check.plan.may_have_expired and not any(one.records for one in check.results)
            else ""
        )
        yield f"{number_of(check.pending, 'record is', 'records are')} not copied yet{deleted}"


def _across_windows(matched: list[Matched], copies: Mapping[Fields, int]) -> list[FoundDifference]:
    """Returns the findings of all windows together.

    A record that is missing in one window and found in another is out of order. A record that only the target has in a
    window, and the source elsewhere, came twice.
    """
    lost: dict[Fields, list[int]] = {}
    surplus: dict[Fields, list[int]] = {}
    for one in matched:
        for offset, fields in one.unmatched_source.items():
            lost.setdefault(fields, []).append(offset)
        for offset, fields in one.unmatched_target.items():
            surplus.setdefault(fields, []).append(offset)
    moved: dict[int, int] = {}
    for fields in lost.keys() & surplus.keys():
        moved |= dict(zip(sorted(lost[fields]), sorted(surplus[fields]), strict=False))
    doubled = {offset: copies[fields] for fields in surplus.keys() & copies.keys() for offset in surplus[fields]}
    return joined_findings(
        renamed
        for one in matched
        for finding in one.findings
        for single in _single(finding)
        if (renamed := _renamed(single, moved, doubled)) is not None
    )


def _single(finding: FoundDifference) -> Iterable[FoundDifference]:
    """Splits a finding of several records without a counterpart into one for each."""
    if finding.difference not in (Difference.MISSING, Difference.EXTRA):
        yield finding
        return
    for number in range(finding.count):
        upstream, downstream = finding.upstream, finding.downstream
        yield replace(
            finding,
            upstream=None if upstream is None else upstream + number,
            downstream=None if downstream is None else downstream + number,
            count=1,
        )


def _renamed(finding: FoundDifference, moved: Mapping[int, int], doubled: Mapping[int, int]) -> FoundDifference | None:
    """Returns a finding as REORDERED or DUPLICATE if other windows show that; None if another finding covers it.

    `moved`: the target's offset by that of the source. `doubled`: the source's offset by that of the target.
    """
    if finding.difference is Difference.MISSING and finding.upstream is not None and finding.upstream in moved:
        return replace(finding, difference=Difference.REORDERED, downstream=moved[finding.upstream])
    if finding.difference is not Difference.EXTRA or finding.downstream is None:
        return finding
    if finding.downstream in moved.values():
        return None
    if finding.downstream in doubled:
        return replace(finding, difference=Difference.DUPLICATE, upstream=doubled[finding.downstream])
    return finding


def counted(plan: PartitionPlan, target_markers: bool) -> PartitionReport:
    """Returns the report that offsets alone allow. The target's end was read first. So it has no more than the source
    at an open end.

    `target_markers`: MM2's own transactions (exactly once) take offsets there too.
    """
    surplus = sum(
        max(0, (window.downstream_end - window.downstream) - (window.upstream_end - window.upstream))
        for window in plan.windows
        if not window.begins_open
    )
    last = plan.windows[-1] if plan.windows else None
    behind = 0
    if last is not None and last.ends_open:
        behind = max(0, (last.upstream_end - last.upstream) - (last.downstream_end - last.downstream))
    doubled = bool(surplus) and not target_markers
    return PartitionReport(
        plan.where,
        plan.remote.topic,
        PartitionVerdict.DIFFERENT if doubled else PartitionVerdict.CONSISTENT,
        f"the target has {number_of(surplus, 'offset')} more than the source since an offset-sync: records are "
        "there twice, or another client writes there"
        if doubled
        else None,
        start=plan.windows[0].upstream if plan.windows else plan.source.start,
        through=plan.source.end - behind,
        pending=behind,
        notes=plan.notes,
    )
