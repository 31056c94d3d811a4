"""Records of a window that differs, matched: which is missing, doubled, changed, out of order. Pure.

Records with the same content, as often on both sides, come as *runs* of successive offsets; the others come each with
all its offsets (`Content`). What lies between two runs that are in order is a *gap*: there a record of the source and
one of the target that have a field in common are one record that was changed.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sinks.kinds.offsets.exact_runs import Run, joined_runs
from sinks.verify.alignment import Alignment, split_by_order
from sinks.verify.changes import CERTAIN, TELLING_LIKENESS, changed_fields, pair_up
from sinks.verify.differences import Difference, Fields, FoundDifference, joined_findings
from streaming.mm2.records import MAX_INT64


@dataclass(frozen=True, slots=True)
class Content:
    """A content that is not as often on one side as on the other: its offsets on both, rising, and its fields."""

    upstreams: Sequence[int]
    downstreams: Sequence[int]
    fields: Fields


class Edges(NamedTuple):
    """What is known of a window's edges. `ends_open`: the target may not be so far yet.

    `source_lost`, `target_lost`: this side's log has lost its start, so that what only the other one has may be old.
    """

    ends_open: bool = False
    source_lost: bool = False
    target_lost: bool = False


@dataclass(frozen=True)
class Matched:
    """Of a window: pairs of equal records as runs, differences, and records of the source still to be copied.

    `expired`: records that one side has deleted. `left`: records without a counterpart, for other windows to have one.
    """

    runs: list[Run]
    findings: list[FoundDifference]
    pending: list[int] = field(default_factory=list)
    expired: int = 0
    unmatched_source: Mapping[int, Fields] = field(default_factory=dict)
    unmatched_target: Mapping[int, Fields] = field(default_factory=dict)


def match(runs: Iterable[Run], contents: Iterable[Content], edges: Edges = Edges()) -> Matched:  # noqa: B008 - a value
    """Names every record of the window that is not in its place."""
    in_order, moved = split_by_order(list(runs))
    alignment, rows = Alignment(in_order), list(contents)
    findings = [FoundDifference(Difference.REORDERED, run.upstream, run.downstream, run.length) for run in moved]
    missing, extra = _put_in_gaps(rows, alignment, edges, findings)
    for upstream, downstream, fields in _changed(missing, extra, alignment, edges):
        findings.append(
            FoundDifference(Difference.CHANGED, upstream, downstream, 1, fields, missing.pop(upstream).timestamp)
        )
        del extra[downstream]
        alignment.put(upstream, downstream)
    pending, expired = _at_edges(missing, extra, alignment, edges, findings)
    lost = {offset: fields for offset, fields in missing.items() if offset not in pending}
    findings += [
        FoundDifference(Difference.MISSING, offset, None, 1, (), fields.timestamp) for offset, fields in lost.items()
    ]
    findings += [
        FoundDifference(Difference.EXTRA, None, offset, 1, (), fields.timestamp) for offset, fields in extra.items()
    ]
    changed = {finding.upstream for finding in findings if finding.difference is Difference.CHANGED}
    equal = [run for run in alignment.runs if run.upstream not in changed]
    return Matched(joined_runs([*equal, *moved]), joined_findings(findings), pending, expired, lost, extra)


Records = dict[int, Fields]


def _put_in_gaps(
    rows: Sequence[Content], alignment: Alignment, edges: Edges, findings: list[FoundDifference]
) -> tuple[Records, Records]:
    """What is on one side alone, by offset. The first copy in its place counts, others are duplicates."""
    free = [list(row.upstreams) for row in rows]
    copies: list[list[int]] = [[] for _ in rows]
    placed = sorted((offset, number) for number, row in enumerate(rows) for offset in row.downstreams)
    # Where a side has lost its start, the last of equal records are those that both still have.
    before = alignment.runs[0].downstream if alignment.runs else MAX_INT64
    old = [one for one in placed if one[0] < before] if edges.source_lost or edges.target_lost else []
    for downstream, number in [*reversed(old), *placed[len(old) :]]:
        gap = alignment.between(alignment.gap_at_downstream(downstream))
        is_old = bool(old) and downstream < before
        at = bisect_left(free[number], gap.end) - 1 if is_old else bisect_left(free[number], gap.start)
        if 0 <= at < len(free[number]) and gap.start <= free[number][at] < gap.end:
            alignment.put(free[number].pop(at), downstream)
        else:
            insort(copies[number], downstream)
    first = alignment.runs[0].downstream if edges.source_lost and alignment.runs else 0
    return _left(zip(rows, free, copies, strict=True), first, findings)


def _left(
    rows: Iterable[tuple[Content, list[int], list[int]]], first: int, findings: list[FoundDifference]
) -> tuple[Records, Records]:
    """What is left of each content on both sides; copies before the target's offset `first` may be old."""
    missing: Records = {}
    extra: Records = {}
    for row, upstreams, downstreams in rows:
        gone = bisect_left(downstreams, first)
        extra |= dict.fromkeys(downstreams[:gone], row.fields)
        del downstreams[:gone]
        both = min(len(upstreams), len(downstreams))
        for upstream, downstream in zip(upstreams, downstreams, strict=False):
            findings.append(FoundDifference(Difference.REORDERED, upstream, downstream, 1, (), row.fields.timestamp))
        missing |= dict.fromkeys(upstreams[both:], row.fields)
        if row.upstreams:
            findings += [_duplicate(row, downstream) for downstream in downstreams[both:]]
        else:
            extra |= dict.fromkeys(downstreams, row.fields)
    return missing, extra


def _duplicate(row: Content, downstream: int) -> FoundDifference:
    return FoundDifference(Difference.DUPLICATE, row.upstreams[0], downstream, 1, (), row.fields.timestamp)


def _changed(
    missing: Records, extra: Records, alignment: Alignment, edges: Edges
) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Offsets on both sides of records that were changed, and the fields that differ."""
    ours: dict[int, list[int]] = {}
    for upstream in sorted(missing):
        ours.setdefault(alignment.gap_at_upstream(upstream), []).append(upstream)
    theirs: dict[int, list[int]] = {}
    for downstream in sorted(extra):
        theirs.setdefault(alignment.gap_at_downstream(downstream), []).append(downstream)
    # Before the first pair records may be old on both sides, each others.
    old = edges.source_lost or edges.target_lost
    found = [
        (upstream, downstream)
        for gap in ours.keys() & theirs.keys()
        for upstream, downstream in pair_up(
            [(offset, missing[offset]) for offset in ours[gap]],
            [(offset, extra[offset]) for offset in theirs[gap]],
            CERTAIN if old and not gap else TELLING_LIKENESS,
        )
    ]
    for upstream, downstream in found:
        yield upstream, downstream, changed_fields(missing[upstream], extra[downstream])


def _at_edges(
    missing: Records, extra: Records, alignment: Alignment, edges: Edges, findings: list[FoundDifference]
) -> tuple[list[int], int]:
    """Takes what is old on either side, and says what is still to be copied."""
    runs, expired = alignment.runs, 0
    if edges.target_lost:
        old = sorted(offset for offset in missing if not runs or offset < runs[0].upstream)
        old = [] if not runs and edges.ends_open and not extra else old
        findings += [_expired(upstream=offset, fields=missing.pop(offset)) for offset in old]
        expired += len(old)
    if edges.source_lost:
        old = sorted(offset for offset in extra if not runs or offset < runs[0].downstream)
        findings += [_expired(downstream=offset, fields=extra.pop(offset)) for offset in old]
        expired += len(old)
    if not edges.ends_open:
        return [], expired
    last = runs[-1].upstream_end if runs else 0
    return sorted(offset for offset in missing if offset >= last), expired


def _expired(fields: Fields, upstream: int | None = None, downstream: int | None = None) -> FoundDifference:
    return FoundDifference(Difference.UNVERIFIABLE, upstream, downstream, 1, (), fields.timestamp)
