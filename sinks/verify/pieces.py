"""What of a partition the running job compares next: as many windows as it may read now, or a slice of one. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sinks.verify.windows import Window


@dataclass(frozen=True, slots=True)
class Piece:
    """Successive windows that are compared together.

    `is_slice`: a piece of one window, as if each record lay at the same distance from its edge: if both sides are equal
    there, that is proven; if not, nothing is. `too_large`: it is more than may be read at once, and cannot be sliced.
    """

    windows: tuple[Window, ...]
    is_slice: bool = False
    too_large: bool = False

    @property
    def offsets(self) -> int:
        """Of the side that has more of them."""
        first, last = self.windows[0], self.windows[-1]
        return max(last.upstream_end - first.upstream, last.downstream_end - first.downstream)

    @property
    def waits(self) -> bool:
        """Whether nothing of it is on the target."""
        return self.last.downstream_end == self.windows[0].downstream

    @property
    def last(self) -> Window:
        """Its last window."""
        return self.windows[-1]


def first_piece(windows: Sequence[Window], most: int, largest: int, *, whole: bool = False) -> Piece | None:
    """The first windows, in order, of `most` offsets together; at least one, if it has no more than `largest`.

    Of a longer one a slice of `most`, unless the `whole` of it is wanted, since a slice was not equal. None where there
    is nothing to compare.
    """
    if not windows:
        return None
    if (waiting := _waiting(windows[0], most)) is not None:
        return Piece((waiting,))
    chosen = [windows[0]]
    for window in windows[1:]:
        if Piece((*chosen, window)).offsets > most:
            break
        chosen.append(window)
    piece = Piece(tuple(chosen))
    if piece.offsets <= most:
        return piece
    if not whole and (cut := _slice(windows[0], most)) is not None:
        return Piece((cut,), is_slice=True)
    return replace(piece, too_large=piece.offsets > largest)


def _waiting(window: Window, most: int) -> Window | None:
    """Of an end of which nothing is on the target the first offsets: they say whether a record waits there at all."""
    if not window.ends_open or window.begins_open or window.downstream_end > window.downstream:
        return None
    return replace(window, upstream_end=min(window.upstream_end, window.upstream + max(1, most)))


def _slice(window: Window, most: int) -> Window | None:
    """The first `most` offsets of a window whose records may lie at one distance; None where they cannot."""
    if window.resent or (window.begins_open and window.ends_open):
        return None
    if not (window.ends_open or window.begins_open or window.is_even):
        return None
    core = window.even_core()
    length = min(most, core.upstream_end - core.upstream)
    if not length:
        return None
    return Window(core.upstream, core.upstream + length, core.downstream, core.downstream + length)
