"""Which records of a partition were compared and found on the target: stretches of offsets of the source. Pure.

A stretch holds until a record of it is found missing, changed, out of order, or preceded by a foreign one. Records
that are there twice do not end it, for MM2 copies at least once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sinks.kafka.ports.groups import LogRange

MOST_STRETCHES = 100
"""Of a partition: the oldest, behind which nothing is left out, and the newest. Others are compared once more."""


class Stretch(NamedTuple):
    """Offsets of the source, [`start`, `end`)."""

    start: int
    end: int


class Checked(NamedTuple):
    """A stretch that was compared. `whole`: whether all of its records are on the target, in order, unchanged."""

    stretch: Stretch
    whole: bool


def joined_stretches(stretches: Iterable[Stretch]) -> list[Stretch]:
    """Sorted, without empty ones; what overlaps or touches in one."""
    found: list[Stretch] = []
    for one in sorted(one for one in stretches if one.start < one.end):
        if found and one.start <= found[-1].end:
            found[-1] = Stretch(found[-1].start, max(found[-1].end, one.end))
        else:
            found.append(one)
    return found


def without(stretches: Iterable[Stretch], gone: Stretch) -> list[Stretch]:
    """What is left of them."""
    left = [
        piece
        for one in stretches
        for piece in (Stretch(one.start, min(one.end, gone.start)), Stretch(max(one.start, gone.end), one.end))
    ]
    return joined_stretches(left)


def with_checked(known: Sequence[Stretch], checked: Iterable[Checked]) -> Sequence[Stretch]:
    """What is verified after these comparisons, in their order."""
    found = list(known)
    for stretch, whole in checked:
        found = joined_stretches([*found, stretch]) if whole else without(found, stretch)
    return (*found[:1], *found[1:][-MOST_STRETCHES + 1 :])


def unverified_from(log: LogRange, known: Sequence[Stretch], last: int, *, whole: bool = False) -> int:
    """The first offset of the log that is to be compared, so that all is verified from the first known stretch on, and
    of the `last` offsets in any case; what lies before both was never asked for.

    `whole`: everything was asked for, as where the job compares. Then what no stretch covers may be a difference that
    was found, wherever it lies.
    """
    first = log.start if whole and known else min([log.end - last, *(one.start for one in known[:1])])
    at = max(log.start, first)
    for one in known:
        if one.start <= at:
            at = max(at, one.end)
    return min(at, log.end)
