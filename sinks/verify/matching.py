"""Matches the records of a window that differs: which are missing, doubled, changed, out of order. Pure.

Contents that are as often on both sides come as *runs* of successive offsets. Other contents come with all their
offsets (`ContentRow`). Between two runs in order lies a *gap*. If a record of the source and one of the target in the
same gap have enough fields in common, they are one record that was changed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import NamedTuple

from sinks.kafka.ports.groups import LogRange
from sinks.kinds.offsets.exact_runs import Run, joined_runs
from sinks.verify.partition_verdicts import Difference, FoundDifference, joined_findings
from streaming.mm2.records import MAX_INT64
from streaming.verify.rows import ContentRow, Fields, PairSums, RecordRows, RunRow, Surplus


class Edges(NamedTuple):
    """What is known of a window's edges. `ends_open`: MM2 may still have to copy its end.

    `source_lost`: the source's log lost its start, so records on the target alone may be old.
    `target_lost`: the reverse.
    """

    ends_open: bool = False
    source_lost: bool = False
    target_lost: bool = False


@dataclass(frozen=True)
class Matched:
    """What a window has: pairs of equal records as runs, differences, and source records that are still to be copied.

    `expired`: how many records one side has deleted. `unmatched_*`: records without a counterpart; another window may
    have it. `uncounted`: how many differences are not named. `order_unknown`: more records may be out of order.
    """

    runs: list[Run]
    findings: list[FoundDifference]
    pending: list[int] = field(default_factory=list)
    expired: int = 0
    unmatched_source: Mapping[int, Fields] = field(default_factory=dict)
    unmatched_target: Mapping[int, Fields] = field(default_factory=dict)
    uncounted: Mapping[Difference, int] = field(default_factory=dict)
    order_unknown: bool = False


def match(runs: Iterable[Run], contents: Iterable[ContentRow], edges: Edges = Edges()) -> Matched:  # noqa: B008 - a value
    """Names every record of the window that is not in its place."""
    in_order, moved = split_by_order(list(runs))
    alignment, rows = Alignment(in_order), list(contents)
    findings = [FoundDifference(Difference.REORDERED, run.upstream, run.downstream, run.length) for run in moved]
    missing, extra = _put_in_gaps(rows, alignment, edges, findings)
    for upstream, downstream, fields in _changed(missing, extra, alignment, edges):
        findings.append(replace(_one(Difference.CHANGED, missing.pop(upstream), upstream, downstream), fields=fields))
        del extra[downstream]
        alignment.put(upstream, downstream)
    pending, expired = _at_edges(missing, extra, alignment, edges, findings)
    lost = {offset: fields for offset, fields in missing.items() if offset not in pending}
    findings += [_one(Difference.MISSING, fields, upstream=offset) for offset, fields in lost.items()]
    findings += [_one(Difference.EXTRA, fields, downstream=offset) for offset, fields in extra.items()]
    changed = {finding.upstream for finding in findings if finding.difference is Difference.CHANGED}
    equal = [run for run in alignment.runs if run.upstream not in changed]
    return Matched(joined_runs([*equal, *moved]), joined_findings(findings), pending, expired, lost, extra)


Records = dict[int, Fields]


def _put_in_gaps(
    rows: Sequence[ContentRow], alignment: Alignment, edges: Edges, findings: list[FoundDifference]
) -> tuple[Records, Records]:
    """Returns what is on one side only, by offset. The first copy in its place counts; others are duplicates."""
    free = [list(row.upstreams) for row in rows]
    copies: list[list[int]] = [[] for _ in rows]
    placed = sorted((offset, number) for number, row in enumerate(rows) for offset in row.downstreams)
    # If a side lost its start, the last of equal records are those that both sides still have.
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
    rows: Iterable[tuple[ContentRow, list[int], list[int]]], first: int, findings: list[FoundDifference]
) -> tuple[Records, Records]:
    """Returns the records without a counterpart, of source and target. Copies before the target's offset `first` may be
    old."""
    missing: Records = {}
    extra: Records = {}
    for row, upstreams, downstreams in rows:
        gone = bisect_left(downstreams, first)
        extra |= dict.fromkeys(downstreams[:gone], row.fields)
        del downstreams[:gone]
        both = min(len(upstreams), len(downstreams))
        for upstream, downstream in zip(upstreams, downstreams, strict=False):
            findings.append(_one(Difference.REORDERED, row.fields, upstream, downstream))
        missing |= dict.fromkeys(upstreams[both:], row.fields)
        if row.upstreams:
            first_up = row.upstreams[0]
            findings += [_one(Difference.DUPLICATE, row.fields, first_up, offset) for offset in downstreams[both:]]
        else:
            extra |= dict.fromkeys(downstreams, row.fields)
    return missing, extra


def _changed(
    missing: Records, extra: Records, alignment: Alignment, edges: Edges
) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Yields both offsets of each record that was changed, and the fields that differ."""
    ours: dict[int, list[int]] = {}
    for upstream in sorted(missing):
        ours.setdefault(alignment.gap_at_upstream(upstream), []).append(upstream)
    theirs: dict[int, list[int]] = {}
    for downstream in sorted(extra):
        theirs.setdefault(alignment.gap_at_downstream(downstream), []).append(downstream)
    # Before the first pair each side may have old records that the other one has deleted. Behind the last pair the
    # source may have pending records. A wrong pair there would call all that lies before it missing.
    old = edges.source_lost or edges.target_lost
    unsure = {0} if old else set[int]()
    unsure |= {len(alignment.runs)} if edges.ends_open else set()
    found = [
        (upstream, downstream)
        for gap in ours.keys() & theirs.keys()
        for upstream, downstream in pair_up(
            [(offset, missing[offset]) for offset in ours[gap]],
            [(offset, extra[offset]) for offset in theirs[gap]],
            CERTAIN if gap in unsure else TELLING_LIKENESS,
        )
    ]
    for upstream, downstream in found:
        yield upstream, downstream, changed_fields(missing[upstream], extra[downstream])


def _at_edges(
    missing: Records, extra: Records, alignment: Alignment, edges: Edges, findings: list[FoundDifference]
) -> tuple[list[int], int]:
    """Drops records that the other side has deleted. Returns the source records still to be copied, and how many were
    dropped."""
    runs, expired = alignment.runs, 0
    if edges.target_lost:
        old = sorted(offset for offset in missing if not runs or offset < runs[0].upstream)
        old = [] if not runs and edges.ends_open and not extra else old
        findings += [_one(Difference.UNVERIFIABLE, missing.pop(offset), upstream=offset) for offset in old]
        expired += len(old)
    if edges.source_lost:
        old = sorted(offset for offset in extra if not runs or offset < runs[0].downstream)
        findings += [_one(Difference.UNVERIFIABLE, extra.pop(offset), downstream=offset) for offset in old]
        expired += len(old)
    if not edges.ends_open:
        return [], expired
    last = runs[-1].upstream_end if runs else 0
    return sorted(offset for offset in missing if offset >= last), expired


def _one(
    difference: Difference, fields: Fields, upstream: int | None = None, downstream: int | None = None
) -> FoundDifference:
    return FoundDifference(difference, upstream, downstream, timestamp=fields.timestamp)


# Whether two records are one record that was changed on its way.


MOST_COMPARED = 250_000
"""Most pairs of records in one gap that are all compared. In a larger gap only neighbours are."""

Placed = Sequence[tuple[int, Fields]]
"""Offsets and fields, by offset."""

NULL = 0
"""The digest of a key or a value that is null."""


def changed_fields(ours: Fields, theirs: Fields) -> tuple[str, ...]:
    return tuple(name for name in Fields._fields if not _same(getattr(ours, name), getattr(theirs, name)))


def _same(one: int | None, other: int | None) -> bool:
    return one is None or other is None or one == other


def likeness(ours: Fields, theirs: Fields) -> int:
    """Returns how much two records have in common: the sum of a weight for each equal field."""
    alike = 0
    if ours.timestamp is not None and ours.timestamp == theirs.timestamp:
        alike += 3
    if ours.value == theirs.value != NULL:
        alike += 3
    if ours.key == theirs.key != NULL:
        alike += 2
    return alike + (ours.headers == theirs.headers)


TELLING_LIKENESS = 3
"""Least likeness that tells one record from most others: timestamp or value are the same."""

CERTAIN = 5
"""Least likeness that hardly two records have: timestamp and key, timestamp and value, or value and key are the
same."""


def pair_up(ours: Placed, theirs: Placed, least: int) -> list[tuple[int, int]]:
    """Returns offsets of records that are most likely the same, in order on both sides, each in one pair at most.

    `least`: likeness of those that are paired.
    """
    if len(ours) == len(theirs) or len(ours) * len(theirs) > MOST_COMPARED:
        neighbours = zip(ours, theirs, strict=False)
        pairs = [(one[0], other[0]) for one, other in neighbours if likeness(one[1], other[1]) >= least]
        if len(pairs) == len(ours) or len(ours) * len(theirs) > MOST_COMPARED:
            return pairs
    return _most_alike(ours, theirs, least)


def _most_alike(ours: Placed, theirs: Placed, least: int) -> list[tuple[int, int]]:
    """Returns the pairs with the greatest sum of likeness: as in an edit distance, by a table of best sums from the
    end."""
    rows, columns = len(ours), len(theirs)
    best = [[0] * (columns + 1) for _ in range(rows + 1)]
    for row in range(rows - 1, -1, -1):
        for column in range(columns - 1, -1, -1):
            alike = likeness(ours[row][1], theirs[column][1])
            paired = best[row + 1][column + 1] + alike if alike >= least else 0
            best[row][column] = max(paired, best[row + 1][column], best[row][column + 1])
    pairs = []
    row = column = 0
    while row < rows and column < columns:
        if best[row][column] == best[row + 1][column]:
            row += 1
        elif best[row][column] == best[row][column + 1]:
            column += 1
        else:
            pairs.append((ours[row][0], theirs[column][0]))
            row, column = row + 1, column + 1
    return pairs


# Which runs of equal records are in order on both sides, and what lies between them.


def split_by_order(runs: Sequence[Run]) -> tuple[list[Run], list[Run]]:
    """Splits runs into those in the same order on both sides, with most records, and the rest; both by upstream offset.

    The longest increasing subsequence, weighted with lengths: O(n log n) by a Fenwick tree of best predecessors.
    """
    ordered = sorted(runs)
    ranks = {downstream: rank for rank, downstream in enumerate(sorted(run.downstream for run in ordered), 1)}
    best: list[tuple[int, int]] = [(0, -1)] * (len(ordered) + 1)
    before: list[int] = []
    top = (0, -1)
    for at, run in enumerate(ordered):
        rank = ranks[run.downstream]
        weight, previous = _best_below(best, rank - 1)
        before.append(previous)
        reached = (weight + run.length, at)
        top = max(top, reached, key=_weight)
        _raise(best, rank, reached)
    chosen = set()
    at = top[1]
    while at >= 0:
        chosen.add(at)
        at = before[at]
    return (
        [run for at, run in enumerate(ordered) if at in chosen],
        [run for at, run in enumerate(ordered) if at not in chosen],
    )


def _weight(reached: tuple[int, int]) -> int:
    return reached[0]


def _best_below(best: Sequence[tuple[int, int]], rank: int) -> tuple[int, int]:
    found = (0, -1)
    while rank > 0:
        found = max(found, best[rank], key=_weight)
        rank -= rank & -rank
    return found


def _raise(best: list[tuple[int, int]], rank: int, reached: tuple[int, int]) -> None:
    while rank < len(best):
        best[rank] = max(best[rank], reached, key=_weight)
        rank += rank & -rank


class Alignment:
    """Runs in order on both sides, and the gaps between them. Single records are put into gaps."""

    def __init__(self, runs: Sequence[Run]) -> None:
        """`runs`: in order on both sides, as `split_by_order` returns them first."""
        self.runs = list(runs)

    def gap_at_downstream(self, offset: int) -> int:
        """The number of the gap with this target offset: how many runs lie before it."""
        return bisect_right(self.runs, offset, key=attrgetter("downstream"))

    def gap_at_upstream(self, offset: int) -> int:
        return bisect_right(self.runs, offset, key=attrgetter("upstream"))

    def between(self, gap: int) -> LogRange:
        """The source offsets in a gap."""
        start = self.runs[gap - 1].upstream_end if gap else 0
        return LogRange(start, self.runs[gap].upstream if gap < len(self.runs) else MAX_INT64)

    def put(self, upstream: int, downstream: int) -> None:
        """Puts in a record by its offsets, which lie in one gap on both sides."""
        insort(self.runs, Run(upstream, downstream, 1))


# What the rows prove that jobs bring of a window: matched, and counted where they were cut off. Pure.


CellKey = tuple[int, int]
"""Id of the read, and number of the cell."""


@dataclass(frozen=True)
class CellRows:
    sums: PairSums
    surplus: Surplus | None
    contents: Sequence[ContentRow]
    runs: Sequence[RunRow]

    @property
    def cut_off(self) -> bool:
        """Whether the job brought only some of the runs."""
        return self.sums.records > sum(row.length for row in self.runs)

    @property
    def cut_surplus(self) -> Surplus | None:
        """The surplus if the job brought only some of its contents; None: it brought all."""
        surplus = self.surplus
        return surplus if surplus is not None and surplus.contents > len(self.contents) else None

    @property
    def appended(self) -> bool:
        """Whether the target's broker set the timestamp of a record without a counterpart."""
        return any(row.appended for row in self.contents)


def of_cell(rows: RecordRows, cell: CellKey) -> CellRows:
    return CellRows(
        next((one for one in rows.sums if (one.id, one.cell) == cell), PairSums(*cell, 0, 0, None)),
        next((one for one in rows.surplus if (one.id, one.cell) == cell), None),
        [row for row in rows.contents if (row.id, row.cell) == cell],
        [row for row in rows.runs if (row.id, row.cell) == cell],
    )


def matched_rows(rows: CellRows, edges: Edges) -> Matched:
    """Matches the rows of a cell, and counts what was cut off. Between the runs that came and the last pair, the place
    of contents that are more often on one side is unknown."""
    runs, known = _known_runs(rows), edges
    uncounted = Counter[Difference]()
    if rows.cut_off and rows.sums.descents:
        # It is unknown which of them are in order, so no record is proven to be only late, or too old.
        uncounted[Difference.REORDERED], known = rows.sums.descents, Edges()
    matched = match(runs, rows.contents, known)
    if (surplus := rows.cut_surplus) is not None:
        seen = [(_more(one.upstreams, one.downstreams), _more(one.downstreams, one.upstreams)) for one in rows.contents]
        uncounted[Difference.MISSING] = surplus.source - sum(ours for ours, _ in seen)
        uncounted[Difference.EXTRA] = surplus.target - sum(theirs for _, theirs in seen)
    return replace(matched, uncounted=uncounted, order_unknown=rows.cut_off and _may_hide_order(rows))


def _known_runs(rows: CellRows) -> list[Run]:
    """Returns the runs that came. If the rest is in order, also the first and the last pair of the rest."""
    runs = [Run(row.upstream, row.downstream, row.length) for row in rows.runs]
    sums = rows.sums
    if not rows.cut_off or sums.descents:
        return runs
    pairs = {(sums.first_upstream, sums.first_downstream), (sums.last_upstream, sums.last_downstream)}
    ends = [Run(*pair, 1) for pair in pairs]
    return runs + [one for one in ends if not any(run.upstream <= one.upstream < run.upstream_end for run in runs)]


def _may_hide_order(rows: CellRows) -> bool:
    if rows.cut_surplus is not None:
        return True
    ours = max((row.upstream + row.length for row in rows.runs), default=0)
    theirs = max((row.downstream + row.length for row in rows.runs), default=0)
    return any(
        row.upstreams and row.downstreams and (row.upstreams[-1] >= ours or row.downstreams[-1] >= theirs)
        for row in rows.contents
    )


def _more(ours: Sequence[int], theirs: Sequence[int]) -> int:
    return max(0, len(ours) - len(theirs))
