"""The arrays of an offset history: what they may hold, and which pairs of older histories stay."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple

from sinks.kinds.offsets.offset_slots import SLOTS, WIDTH
from streaming.mm2.records import MAX_INT64

RESTART_FIELDS = 3
"""Of a restart: the downstream offset it began to write at, the most records that were sent again, and the upstream
offset that MM2 was to send next before it."""

NOTHING: array[int] = array("q")


class Pair(NamedTuple):
    """An upstream offset and the downstream offset that its record has."""

    upstream: int
    downstream: int


class Restart(NamedTuple):
    """MM2 began to write again at `downstream`; before, it had sent no upstream offset at or behind `was_at`.

    `several`: restarts before this one are in it, and nothing tells where they were.
    """

    downstream: int
    was_at: int
    several: bool = False


def thinned_pairs(pairs: list[Pair], upstream: int) -> array[int]:
    """One pair for each power of two of the distance to `upstream`, and the earliest: 64 at the most."""
    thinned: list[Pair] = []
    for pair in reversed(pairs):
        nearer = (upstream - thinned[-1].upstream).bit_length() if thinned else 0
        if (upstream - pair.upstream).bit_length() > nearer:
            thinned.append(pair)
    if pairs and thinned[-1] != pairs[0]:
        thinned[-1] = pairs[0]
    return array("q", [number for pair in reversed(thinned) for number in pair]) if thinned else NOTHING


def well_formed(live: Sequence[int], older: Sequence[int], restarts: Sequence[int]) -> bool:
    if not live:
        # After a truncation only one number counts: how far MM2 had sent the source.
        return (
            not older and len(restarts) in (0, RESTART_FIELDS) and all(0 <= number <= MAX_INT64 for number in restarts)
        )
    if len(live) % WIDTH or len(older) % 2 or len(restarts) % RESTART_FIELDS or live[-1] != SLOTS:
        return False
    upstreams, downstreams = [*older[::2], *live[-3::-3]], [*older[1::2], *live[-2::-3]]
    return (
        all(0 <= number <= MAX_INT64 for number in (*live, *older, *restarts))
        and upstreams == sorted(upstreams)
        and downstreams == sorted(set(downstreams))
        and list(live[2::3]) == sorted(set(live[2::3]))
    )
