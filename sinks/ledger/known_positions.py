"""How far a partition was copied, as it was known at one moment: what a loss without the source is counted from. Pure.

Two things tell it. MM2's offset-syncs: a record of the source has a place on the target, and MM2 keeps the order, so
that all before that record is there. And a count with both clusters at hand, as a preflight makes it. Both stay true
whatever is sent again: from then on the source gets records, and the target gets some of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class KnownPosition(NamedTuple):
    """When the log on the target ended at `target`, it had all of the source's records before `source`, but at most
    `missing` of them."""

    source: int
    target: int
    missing: int = 0

    @property
    def ahead(self) -> int:
        """The larger, the less is left to be copied."""
        return self.source - self.missing


FAR = 100_000
"""Offsets on the target: more are rather not read of a partition in a failover."""


class LatestSync(NamedTuple):
    """The offset-sync of a partition that was taken last. `resending`: MM2 was restarted, and is not yet as far as it
    may have been before. `gap`: between the sync before it and this one the source has offsets that are no records."""

    upstream: int
    downstream: int
    resending: bool = False
    gap: bool = False

    @property
    def position(self) -> KnownPosition:
        """What it tells."""
        return KnownPosition(self.upstream + 1, self.downstream + 1)


def furthest(known: KnownPosition | None, found: Iterable[KnownPosition]) -> KnownPosition | None:
    """The position from which the least is left; of equal ones the one that counted the farthest, then the last.

    One that lies far behind on the target gives way in any case.
    """
    for one in found:
        is_ahead = known is None or (one.ahead, one.source) >= (known.ahead, known.source)
        if known is None or is_ahead or one.target - known.target > FAR:
            known = one
    return known


def most_missing(position: KnownPosition | None, end: int, new_copies: int) -> int:
    """The most records before `end` of the source that can be missing, of which nobody knows how many are records.

    `new_copies`: records that came to the target since `position`, and that it had not before. Without a position all
    can be missing.
    """
    if position is None:
        return end
    return max(0, position.missing + max(0, end - position.source) - new_copies)
