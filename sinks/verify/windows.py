"""Which records of source and target should be the same: windows between offset-syncs. Pure.

Two syncs (u, d) and (u', d') say that the records at [u, u') of the source are those at [d, d') of the target: a
*closed* window. Before the first sync and behind the last one a window is *open*: one log may have lost its start, and
what is not copied yet is no difference.

A restart of MM2 lies inside one window: from the sync before it to the first one at which MM2 sends what it had never
sent. In between each record may be there twice, and no sync tells which copies lie before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sinks.kafka.ports.groups import LogRange
from sinks.kinds.offsets.history import Pair, Restart

LEAST_WINDOW = 10_000
"""Offsets of a window on the source; neighbours are joined until they have so many."""

CELL = 1_000_000
"""Offsets of a cell: a longer window is compared in cells, as far as both sides have as many offsets in it."""


@dataclass(frozen=True, slots=True)
class Window:
    """Source offsets [`upstream`, `upstream_end`) and target offsets [`downstream`, `downstream_end`).

    `begins_open`, `ends_open`: no sync is known there. `resent`: MM2 was restarted inside.
    """

    upstream: int
    upstream_end: int
    downstream: int
    downstream_end: int
    begins_open: bool = False
    ends_open: bool = False
    resent: bool = False

    @property
    def closed(self) -> bool:
        """Whether syncs say where it begins and ends."""
        return not (self.begins_open or self.ends_open)

    @property
    def is_even(self) -> bool:
        """Whether both sides have as many offsets: most likely each record then lies at the same distance."""
        return self.upstream_end - self.upstream == self.downstream_end - self.downstream

    @property
    def is_empty(self) -> bool:
        """Whether neither side has an offset in it."""
        return self.upstream == self.upstream_end and self.downstream == self.downstream_end

    def even_core(self, since: int = 0) -> Window:
        """What of an open window would be the same if each record lay at the same distance from the known sync.

        From the end of one that begins open, else from its beginning. `since`: no earlier offset of the source.
        """
        length = min(self.upstream_end - self.upstream, self.downstream_end - self.downstream)
        if self.begins_open and not self.ends_open:
            length = min(length, max(0, self.upstream_end - since))
            bounds = (self.upstream_end - length, self.upstream_end, self.downstream_end - length, self.downstream_end)
        else:
            bounds = (self.upstream, self.upstream + length, self.downstream, self.downstream + length)
        return Window(*bounds, self.begins_open, self.ends_open, self.resent)


def cut(
    pairs: Iterable[Pair],
    restarts: Sequence[Restart],
    source: LogRange,
    target: LogRange,
    since: int = 0,
    least: int = LEAST_WINDOW,
) -> list[Window]:
    """The windows of a partition, in order, from the last sync at or before the source's offset `since` on.

    `source`, `target`: what can be read. `pairs`: as `History.pairs` has them. Both logs are covered but for what
    lies before the first window; empty logs have no window.
    """
    usable = [
        pair
        for pair in pairs
        if source.start <= pair.upstream <= source.end
        and target.start <= pair.downstream <= target.end
        and not _inside_restart(pair, restarts)
    ]
    usable = _strictly_rising(usable)
    before = [at for at, pair in enumerate(usable) if pair.upstream <= since]
    # All that the source has: also what the target has before it.
    first = before[-1] if before and since > source.start else None
    windows = []
    if first is None:
        head = usable[0] if usable else None
        windows.append(_head(head, source, target, since))
    bounds = _joined(usable[first or 0 :], least)
    for one, other in pairwise(bounds):
        resent = any(one.downstream <= restart.downstream <= other.downstream for restart in restarts)
        windows.append(Window(one.upstream, other.upstream, one.downstream, other.downstream, resent=resent))
    if bounds:
        last = bounds[-1]
        resent = any(restart.downstream >= last.downstream for restart in restarts)
        windows.append(Window(last.upstream, source.end, last.downstream, target.end, ends_open=True, resent=resent))
    return [window for window in windows if not window.is_empty]


def _head(first: Pair | None, source: LogRange, target: LogRange, since: int) -> Window:
    """What lies before the first sync; all there is without one. Both logs whole from 0 on begin together."""
    open_start = (source.start, target.start) != (0, 0)
    if first is None:
        return Window(source.start, source.end, target.start, target.end, open_start, ends_open=True)
    return Window(source.start, first.upstream, target.start, first.downstream, begins_open=True)


def _inside_restart(pair: Pair, restarts: Sequence[Restart]) -> bool:
    """Whether records behind the pair lie before it on the target as well, since MM2 sent them before its restart."""
    return any(
        (pair.downstream >= restart.downstream or restart.several) and pair.upstream < restart.was_at
        for restart in restarts
    )


def _strictly_rising(pairs: Sequence[Pair]) -> list[Pair]:
    """Of pairs at one offset of the source the last one: what lies before it are copies that came twice."""
    return [pair for at, pair in enumerate(pairs) if at + 1 == len(pairs) or pairs[at + 1].upstream > pair.upstream]


def _joined(pairs: Sequence[Pair], least: int) -> list[Pair]:
    """The first and the last pair, and of those between as many as leave windows of at least so many offsets."""
    found: list[Pair] = []
    for at, pair in enumerate(pairs):
        if at in (0, len(pairs) - 1) or pair.upstream - found[-1].upstream >= least:
            found.append(pair)
    return found


def cells(window: Window, size: int = CELL) -> Iterator[Window]:
    """The window in pieces that are compared one by one; whole where its sides have different lengths."""
    length = window.upstream_end - window.upstream
    if not window.is_even or length <= size:
        yield window
        return
    for at in range(0, length, size):
        end = min(at + size, length)
        yield Window(window.upstream + at, window.upstream + end, window.downstream + at, window.downstream + end)
