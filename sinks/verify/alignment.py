"""Which runs of equal records are in order on both sides, and what lies between them. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence

from sinks.kafka.ports.groups import LogRange
from sinks.kinds.offsets.exact_runs import Run


def split_by_order(runs: Sequence[Run]) -> tuple[list[Run], list[Run]]:
    """Those with most records that are in the same order on both sides, and the others. Both by upstream offset.

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
    """Runs in order on both sides, and the gaps between them. It grows by single records that are put into gaps."""

    def __init__(self, runs: Sequence[Run]) -> None:
        """`runs`: in order on both sides, as `split_by_order` has them first."""
        self._up = [run.upstream for run in runs]
        self._down = [run.downstream for run in runs]
        self._runs = list(runs)

    @property
    def runs(self) -> list[Run]:
        """All of them, by offset."""
        return self._runs

    def gap_at_downstream(self, offset: int) -> int:
        """The number of the gap in which the target's offset lies: that of runs before it."""
        return bisect_right(self._down, offset)

    def gap_at_upstream(self, offset: int) -> int:
        """The same of the source's offset."""
        return bisect_right(self._up, offset)

    def between(self, gap: int) -> LogRange:
        """The source's offsets in a gap: behind the run before it, before the next one."""
        start = self._runs[gap - 1].upstream_end if gap else 0
        return LogRange(start, self._up[gap] if gap < len(self._up) else 2**63 - 1)

    def put(self, upstream: int, downstream: int) -> None:
        """A record that lies in one gap on both sides."""
        at = bisect_left(self._up, upstream)
        self._runs.insert(at, Run(upstream, downstream, 1))
        insort(self._up, upstream)
        insort(self._down, downstream)
