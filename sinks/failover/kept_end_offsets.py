"""The ends of the source's logs, from reading to reading: what cannot be seen now stays as it was seen last. Pure.

A source that is dying loses its brokers one by one. Were the ends of their partitions forgotten, or those of topics
that a listing lacks, nobody could tell any more what a failover loses there, and it would look like nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

UNSEEN = -1
"""In place of an end that was never seen."""


@dataclass(frozen=True, slots=True)
class KeptEndOffsets:
    """Of one topic: the end of each partition in order, UNSEEN where none is known; `at_ms`: when the oldest of them
    was seen, in ms since the epoch."""

    ends: tuple[int, ...]
    at_ms: int


def renewed(before: KeptEndOffsets | None, seen: Sequence[int], at_ms: int) -> KeptEndOffsets:
    """With what was `seen` at that time of all partitions that there are, UNSEEN where an end could not be."""
    known = before.ends if before else ()
    ends = [known[number] if end == UNSEEN and number < len(known) else end for number, end in enumerate(seen)]
    is_older = before is not None and ends != list(seen)
    return KeptEndOffsets(tuple(ends), min(at_ms, before.at_ms) if before and is_older else at_ms)


def renewed_all(
    known: Mapping[str, KeptEndOffsets], seen: Mapping[str, Sequence[int]], at_ms: int
) -> dict[str, KeptEndOffsets]:
    """Of all topics that were asked for; the others are wanted no more."""
    return {topic: renewed(known.get(topic), ends, at_ms) for topic, ends in seen.items()}
