"""Which records of source and target should be the same: windows between offset-syncs. Pure.

Two syncs (u, d) and (u', d') say that [u, u') of the source and [d, d') of the target have the same records: a *closed*
window. Before the first sync and behind the last one a window is *open*. One log may have lost its start, and what MM2
has still to copy is no difference.

A restart of MM2 lies inside one window. The window goes from the sync before the restart to the first sync at which MM2
sends what it had never sent. In between each record may be there twice, and no sync says which copy is which.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sinks.kafka.ports.groups import LogRange
from sinks.kinds.offsets.sync_history import Pair, Restart

LEAST_WINDOW = 10_000
"""Least source offsets of a window; smaller neighbours are joined."""

CELL = 1_000_000
"""Offsets of a cell. A longer window is compared in cells if both sides have as many offsets."""


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
        return self.upstream == self.upstream_end and self.downstream == self.downstream_end

    def even_core(self, since: int = 0) -> Window:
        """The part of an open window that is equal if each record lies at the same distance from the known sync.

        It is counted from the end of a window that begins open, else from the start. `since`: least source offset.
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
    """Returns the windows of a partition, in order, from the last sync at or before the source offset `since` on.

    `source`, `target`: what can be read. `pairs`: as of `History.pairs`. The windows cover both logs behind the start
    of the first one. Empty logs have no window.
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
    # To compare all that the source has, what the target has before it counts as well.
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
    """Returns the window before the first sync, or all if there is none. Logs that both start at 0 begin together."""
    open_start = (source.start, target.start) != (0, 0)
    if first is None:
        return Window(source.start, source.end, target.start, target.end, open_start, ends_open=True)
    return Window(source.start, first.upstream, target.start, first.downstream, begins_open=True)


def _inside_restart(pair: Pair, restarts: Sequence[Restart]) -> bool:
    """Whether records behind the pair lie before it on the target too, because MM2 sent them before its restart."""
    return any(
        (pair.downstream >= restart.downstream or restart.several) and pair.upstream < restart.was_at
        for restart in restarts
    )


def _strictly_rising(pairs: Sequence[Pair]) -> list[Pair]:
    """Keeps the last of several pairs at one source offset. The copies before it came twice."""
    return [pair for at, pair in enumerate(pairs) if at + 1 == len(pairs) or pairs[at + 1].upstream > pair.upstream]


def _joined(pairs: Sequence[Pair], least: int) -> list[Pair]:
    """Returns the first and the last pair, and pairs between them that leave windows of at least `least` offsets."""
    found: list[Pair] = []
    for at, pair in enumerate(pairs):
        if at in (0, len(pairs) - 1) or pair.upstream - found[-1].upstream >= least:
            found.append(pair)
    return found


def cells(window: Window, size: int = CELL) -> Iterator[Window]:
    """Yields the window in pieces that are compared one by one; whole if its sides have different lengths."""
    length = window.upstream_end - window.upstream
    if not window.is_even or length <= size:
        yield window
        return
    for at in range(0, length, size):
        end = min(at + size, length)
        yield Window(window.upstream + at, window.upstream + end, window.downstream + at, window.downstream + end)
