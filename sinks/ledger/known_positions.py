"""How far a partition was copied at one moment: the base for counting a loss without the source. Pure.

Two things tell it. MM2's offset-syncs: a record of the source has a place on the target. MM2 keeps the order, so all
records before it are there. And a count with both clusters, as a preflight makes it. Both stay true when MM2 resends.
From then on the source gets records, and the target gets some of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class KnownPosition(NamedTuple):
    """When the target's log ended at `target`, it had all of the source's records before `source`, except at most
    `missing`."""

    source: int
    target: int
    missing: int = 0

    @property
    def ahead(self) -> int:
        """Larger means that less is left to copy."""
        return self.source - self.missing


FAR = 100_000
"""Offsets on the target. A failover does not read more than these of a partition."""


class LatestSync(NamedTuple):
    """The last offset-sync of a partition. `resending`: MM2 was restarted, and may not have reached its old position
    yet. `gap`: between the sync before it and this one the source has offsets without records."""

    upstream: int
    downstream: int
    resending: bool = False
    gap: bool = False

    @property
    def position(self) -> KnownPosition:
        """The position behind the synced record: everything up to that record is copied."""
        return KnownPosition(self.upstream + 1, self.downstream + 1)


def furthest(known: KnownPosition | None, found: Iterable[KnownPosition]) -> KnownPosition | None:
    """Returns the position from which the least is left. Of equal ones the farthest count wins, then the last.

    A position far behind on the target loses in any case.
    """
    for one in found:
        is_ahead = known is None or (one.ahead, one.source) >= (known.ahead, known.source)
        if known is None or is_ahead or one.target - known.target > FAR:
            known = one
    return known


def most_missing(position: KnownPosition | None, end: int, new_copies: int) -> int:
    """Upper bound of the records that may be missing before `end` of the source. Some may be transaction markers.

    `new_copies`: records that came to the target since `position` and were not there before. Without a position all may
    be missing.
    """
    if position is None:
        return end
    return max(0, position.missing + max(0, end - position.source) - new_copies)
