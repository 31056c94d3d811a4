"""What the rows prove that jobs bring of a window: matched, and counted where they were cut off. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sinks.kinds.offsets.exact_runs import Run
from sinks.verify.differences import Difference, Fields
from sinks.verify.matching import Content, Edges, Matched, match
from streaming.verify.rows import ContentRow, PairSums, RecordRows, RunRow, Surplus

CellKey = tuple[int, int]
"""Id of the read, and number of the cell."""


@dataclass(frozen=True)
class CellRows:
    """Of one cell."""

    sums: PairSums
    surplus: Surplus | None
    contents: Sequence[ContentRow]
    runs: Sequence[RunRow]

    @property
    def cut_off(self) -> bool:
        """Whether there are more runs than came."""
        return self.sums.records > sum(row.length for row in self.runs)

    @property
    def cut_surplus(self) -> Surplus | None:
        """The surplus where it has more contents than came; None: all of them came."""
        surplus = self.surplus
        return surplus if surplus is not None and surplus.contents > len(self.contents) else None

    @property
    def appended(self) -> bool:
        """Whether the target's broker gave a record without a counterpart its timestamp."""
        return any(row.appended for row in self.contents)


@dataclass(frozen=True)
class MatchedRows:
    """`uncounted`: differences beyond those that are named. `order_unknown`: some records may be out of order all the
    same, for between the first runs and the last pair nothing tells where those lie that are not as often on both."""

    matched: Matched
    sums: PairSums
    uncounted: Mapping[Difference, int]
    order_unknown: bool = False


def of_cell(rows: RecordRows, cell: CellKey) -> CellRows:
    """What of these rows is of one cell."""
    return CellRows(
        next((one for one in rows.sums if (one.id, one.cell) == cell), PairSums(*cell, 0, 0, None)),
        next((one for one in rows.surplus if (one.id, one.cell) == cell), None),
        [row for row in rows.contents if (row.id, row.cell) == cell],
        [row for row in rows.runs if (row.id, row.cell) == cell],
    )


def matched_rows(rows: CellRows, edges: Edges, times: bool) -> MatchedRows:
    """`times`: timestamps count."""
    contents = [
        Content(row.upstreams, row.downstreams, Fields(row.key, row.value, row.headers, row.ms if times else None))
        for row in rows.contents
    ]
    runs, known = _known_runs(rows), edges
    uncounted = Counter[Difference]()
    if rows.cut_off and rows.sums.descents:
        # Nothing tells which of them are in order, so nothing proves that a record is only late, or too old.
        uncounted[Difference.REORDERED], known = rows.sums.descents, Edges()
    matched = match(runs, contents, known)
    if (surplus := rows.cut_surplus) is not None:
        seen = [(_more(one.upstreams, one.downstreams), _more(one.downstreams, one.upstreams)) for one in contents]
        uncounted[Difference.MISSING] = surplus.source - sum(ours for ours, _ in seen)
        uncounted[Difference.EXTRA] = surplus.target - sum(theirs for _, theirs in seen)
    return MatchedRows(matched, rows.sums, uncounted, rows.cut_off and _may_hide_order(rows))


def _known_runs(rows: CellRows) -> list[Run]:
    """The runs that came; and where more are all in order, the first and the last pair of those that did not."""
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
