"""What a job keeps of the source's logs, reading by reading: what cannot be seen now stays as it was seen last. Pure.

A source that is dying loses its brokers one by one. Were the ends of their partitions forgotten, or those of topics
that a listing lacks, nobody could tell any more what a failover loses there, and it would look like nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import orjson

from sinks.ledger.known_positions import KnownPosition
from sinks.ledger.ledger import Ledger
from sinks.ledger.ledger_entries import Entry
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition

UNSEEN = -1
"""In place of an end that was never seen."""

PARTITIONS_IN_AN_ENTRY = 2000
"""Partitions in one entry: about 80 kB."""


CopiedTo = tuple[KnownPosition | None, ...]
"""How far each partition of a topic was copied, as far as that is known."""


@dataclass(frozen=True, slots=True)
class KeptEndOffsets:
    """Of one topic: the end of each partition in order, UNSEEN where none is known; `at_ms`: when the oldest of them
    was seen, in ms since the epoch. `positions`: None as a version kept it that knew of none."""

    ends: tuple[int, ...]
    at_ms: int
    positions: CopiedTo | None = None


def renewed(before: KeptEndOffsets | None, seen: Sequence[int], at_ms: int) -> KeptEndOffsets:
    """With what was `seen` at that time of all partitions that there are, UNSEEN where an end could not be."""
    known = before.ends if before else ()
    ends = [known[number] if end == UNSEEN and number < len(known) else end for number, end in enumerate(seen)]
    is_older = before is not None and ends != list(seen)
    return KeptEndOffsets(tuple(ends), min(at_ms, before.at_ms) if before and is_older else at_ms)


def with_ends(kept: KeptEndOffsets, seen: Sequence[int]) -> KeptEndOffsets:
    """With the ends that were `seen` since, in place of older ones; UNSEEN is none."""
    count = max(len(kept.ends), len(seen))
    before, now = ([*ends, *[UNSEEN] * (count - len(ends))] for ends in (kept.ends, seen))
    return replace(kept, ends=tuple(old if new == UNSEEN else new for old, new in zip(before, now, strict=True)))


def renewed_all(
    known: Mapping[str, KeptEndOffsets],
    seen: Mapping[str, Sequence[int]],
    at_ms: int,
    positions: Mapping[str, CopiedTo],
) -> dict[str, KeptEndOffsets]:
    """Of all topics that were asked for; the others are wanted no more. `positions`: of the same topics."""
    return {
        topic: replace(renewed(known.get(topic), ends, at_ms), positions=positions[topic])
        for topic, ends in seen.items()
    }


def end_offsets_by_topic(seen: Mapping[TopicPartition, int], counts: Mapping[str, int]) -> dict[str, list[int]]:
    """By topic, in the order of its partitions."""
    return {
        topic: [seen.get(TopicPartition(topic, number), UNSEEN) for number in range(partitions)]
        for topic, partitions in counts.items()
    }


def positions_by_topic(
    positions: Mapping[TopicPartition, KnownPosition], counts: Mapping[str, int]
) -> dict[str, CopiedTo]:
    """Of so many partitions of each topic, in order."""
    return {
        topic: tuple(positions.get(TopicPartition(topic, number)) for number in range(count))
        for topic, count in counts.items()
    }


def by_partition(
    kept: Mapping[str, KeptEndOffsets],
) -> tuple[dict[TopicPartition, KnownPosition], dict[TopicPartition, int]]:
    """Positions and ends that are known."""
    positions = {
        TopicPartition(topic, number): position
        for topic, one in kept.items()
        for number, position in enumerate(one.positions or ())
        if position is not None
    }
    ends = {
        TopicPartition(topic, number): end
        for topic, one in kept.items()
        for number, end in enumerate(one.ends)
        if end != UNSEEN
    }
    return positions, ends


def chunks(kept: Mapping[str, KeptEndOffsets]) -> Iterator[dict[str, KeptEndOffsets]]:
    """What is kept together in one entry of the ledger."""
    chunk, partitions = dict[str, KeptEndOffsets](), 0
    for topic, of_one in kept.items():
        if chunk and partitions + len(of_one.ends) > PARTITIONS_IN_AN_ENTRY:
            yield chunk
            chunk, partitions = {}, 0
        chunk[topic] = of_one
        partitions += len(of_one.ends)
    if chunk:
        yield chunk


def to_text(chunk: Mapping[str, KeptEndOffsets]) -> str:
    """As the ledger keeps it."""
    # Without the many that are not known at all.
    known = {topic: one.positions if one.positions and any(one.positions) else () for topic, one in chunk.items()}
    return orjson.dumps(
        {
            "at": min(one.at_ms for one in chunk.values()),
            "ends": {topic: one.ends for topic, one in chunk.items()},
            "copied": {topic: [one and tuple(one) for one in of_topic] for topic, of_topic in known.items()},
        }
    ).decode()


def from_text(text: str) -> dict[str, KeptEndOffsets]:
    """What `to_text` made, or a version before it. Raises ValueError, KeyError, TypeError, AttributeError."""
    found = orjson.loads(text)
    at, copied = int(found["at"]), found.get("copied", {})
    return {
        str(topic): KeptEndOffsets(tuple(map(int, ends)), at, _positions(copied[topic]) if topic in copied else None)
        for topic, ends in found["ends"].items()
    }


def kept_end_offsets(ledger: Ledger) -> dict[str, KeptEndOffsets]:
    """What the ledger has of each topic. Raises LockstepError for what cannot be read."""
    kept: dict[str, KeptEndOffsets] = {}
    for text in ledger.values(Entry.SOURCE_ENDS).values():
        try:
            kept |= from_text(text)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise LockstepError(f"the source's ends in {ledger.topic} cannot be read: {error}") from error
    return kept


def _positions(found: Sequence[Sequence[int] | None]) -> CopiedTo:
    return tuple(None if one is None else KnownPosition(*map(int, one)) for one in found)
