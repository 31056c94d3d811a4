"""Keeps the last seen end offsets of the source's logs in the ledger. An end that cannot be read now keeps its last
value. Pure.

A dying source loses its brokers one by one. The last seen ends of such partitions stay, and so do the ends of topics
that one listing lacks. Without them the loss of a failover would be unknown, and look like zero.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import orjson

from sinks.ledger.ledger import Ledger
from sinks.ledger.ledger_entries import Entry
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition

# How far a partition was copied at one moment: the base for counting a loss without the source. Pure.
#
# Two things tell it. MM2's offset-syncs: a record of the source has a place on the target. MM2 keeps the order, so all
# records before it are there. And a count with both clusters, as a preflight makes it. Both stay true when MM2 resends.
# From then on the source gets records, and the target gets some of them.


class KnownPosition(NamedTuple):
    """A point up to which a partition was copied. When the target's log ended at `target`, it had all records of the
    source before `source`, except at most `missing`."""

    source: int
    target: int
    missing: int = 0

    @property
    def ahead(self) -> int:
        """Returns the source offset minus the missing records. Larger means that less is left to copy."""
        return self.source - self.missing


FAR = 100_000
"""Most offsets on the target that a failover reads of a partition."""


class LatestSync(NamedTuple):
    """The last offset-sync of a partition."""

    upstream: int
    """Offset of the synced record on the source."""
    downstream: int
    """Offset of its copy on the target."""
    resending: bool = False
    """MM2 was restarted, and may not have reached its old position yet."""
    gap: bool = False
    """The source has offsets without records between the sync before it and this one."""

    @property
    def position(self) -> KnownPosition:
        """The position behind the synced record: everything up to that record is copied."""
        return KnownPosition(self.upstream + 1, self.downstream + 1)


def furthest(known: KnownPosition | None, found: Iterable[KnownPosition]) -> KnownPosition | None:
    """Returns the position with the least left to copy. Of equal positions the larger source offset wins, then the last
    one.

    A position more than FAR behind on the target always loses.
    """
    for one in found:
        is_ahead = known is None or (one.ahead, one.source) >= (known.ahead, known.source)
        if known is None or is_ahead or one.target - known.target > FAR:
            known = one
    return known


def most_missing(position: KnownPosition | None, end: int, new_copies: int) -> int:
    """Returns an upper bound of the records that may be missing before the source's `end`. Some may be transaction
    markers.

    `new_copies`: records that came to the target since `position` and were not there before. Without a position all may
    be missing.
    """
    if position is None:
        return end
    return max(0, position.missing + max(0, end - position.source) - new_copies)


UNSEEN_END = -1
"""Stands for an end that Lockstep never saw."""

PARTITIONS_IN_AN_ENTRY = 2000
"""Most partitions in one ledger entry: about 80 kB."""


ABSENT_IN_AN_ENTRY = 1000
"""Names in one entry: with the longest ones a broker takes it still. Copies of further topics count as never seen."""


V = TypeVar("V")

CopiedTo = tuple[KnownPosition | None, ...]
"""How far each partition of a topic was copied; None where that is unknown."""


@dataclass(frozen=True, slots=True)
class KeptEndOffsets:
    """End offsets of one topic on the source."""

    ends: tuple[int, ...]
    """End offsets by partition, in order; UNSEEN_END where unknown."""
    at_ms: int
    """When the oldest of them was seen, in ms since the epoch."""
    positions: CopiedTo | None = None
    """None in entries of an old version."""


def renewed(before: KeptEndOffsets | None, seen: Sequence[int], at_ms: int) -> KeptEndOffsets:
    """Returns an entry with the ends `seen` at `at_ms` for all partitions. A partition with UNSEEN_END keeps its last
    value."""
    known = before.ends if before else ()
    ends = [known[number] if end == UNSEEN_END and number < len(known) else end for number, end in enumerate(seen)]
    is_older = before is not None and ends != list(seen)
    return KeptEndOffsets(tuple(ends), min(at_ms, before.at_ms) if before and is_older else at_ms)


def with_ends(kept: KeptEndOffsets, seen: Sequence[int]) -> KeptEndOffsets:
    """Returns `kept` with the ends that were `seen` since. A partition with UNSEEN_END keeps its value."""
    count = max(len(kept.ends), len(seen))
    before, now = ([*ends, *[UNSEEN_END] * (count - len(ends))] for ends in (kept.ends, seen))
    return replace(kept, ends=tuple(old if new == UNSEEN_END else new for old, new in zip(before, now, strict=True)))


def renewed_all(
    known: Mapping[str, KeptEndOffsets],
    seen: Mapping[str, Sequence[int]],
    at_ms: int,
    positions: Mapping[str, CopiedTo],
) -> dict[str, KeptEndOffsets]:
    """Returns the entries of all topics in `seen`, and drops others. `positions`: of the same topics."""
    return {
        topic: replace(renewed(known.get(topic), ends, at_ms), positions=positions[topic])
        for topic, ends in seen.items()
    }


def by_topic(found: Mapping[TopicPartition, V], counts: Mapping[str, int], unknown: V) -> dict[str, tuple[V, ...]]:
    """Returns the found values by topic, one per partition in order. `counts`: number of partitions by topic.
    `unknown`: for partitions without a value."""
    return {
        topic: tuple(found.get(TopicPartition(topic, number), unknown) for number in range(count))
        for topic, count in counts.items()
    }


def by_partition(
    kept: Mapping[str, KeptEndOffsets],
) -> tuple[dict[TopicPartition, KnownPosition], dict[TopicPartition, int]]:
    """Returns the known positions and the known ends, by partition."""
    positions, ends = dict[TopicPartition, KnownPosition](), dict[TopicPartition, int]()
    for topic, one in kept.items():
        for number, position in enumerate(one.positions or ()):
            if position is not None:
                positions[TopicPartition(topic, number)] = position
        for number, end in enumerate(one.ends):
            if end != UNSEEN_END:
                ends[TopicPartition(topic, number)] = end
    return positions, ends


def chunks(kept: Mapping[str, KeptEndOffsets]) -> Iterator[dict[str, KeptEndOffsets]]:
    """Splits the topics into parts of at most PARTITIONS_IN_AN_ENTRY partitions, one ledger entry each."""
    chunk, partitions = dict[str, KeptEndOffsets](), 0
    for topic, of_one in kept.items():
        if chunk and partitions + len(of_one.ends) > PARTITIONS_IN_AN_ENTRY:
            yield chunk
            chunk, partitions = {}, 0
        chunk[topic] = of_one
        partitions += len(of_one.ends)
    if chunk:
        yield chunk


def to_text(chunk: Mapping[str, KeptEndOffsets], absent: Collection[str] = ()) -> str:
    """Returns an entry's text. `absent`: topics that the target has copies of, and that the source does not have."""
    # Unknown positions are left out: there may be many.
    known = {topic: one.positions if one.positions and any(one.positions) else () for topic, one in chunk.items()}
    return orjson.dumps(
        {
            "at": min(one.at_ms for one in chunk.values()),
            "ends": {topic: one.ends for topic, one in chunk.items()},
            "copied": {topic: [one and tuple(one) for one in of_topic] for topic, of_topic in known.items()},
            "absent": sorted(absent)[:ABSENT_IN_AN_ENTRY],
        }
    ).decode()


def from_text(text: str) -> dict[str, KeptEndOffsets]:
    """Parses the text of a ledger entry. Raises ValueError, KeyError, TypeError, AttributeError."""
    found = orjson.loads(text)
    at, copied = int(found["at"]), found.get("copied", {})
    return {
        TopicPartition(topic, 0).topic: KeptEndOffsets(
            tuple(map(int, ends)), at, _positions(copied[topic]) if topic in copied else None
        )
        for topic, ends in found["ends"].items()
    }


def kept_end_offsets(ledger: Ledger) -> dict[str, KeptEndOffsets]:
    """Returns the kept ends of each topic. Raises LockstepError for an unreadable entry."""
    kept: dict[str, KeptEndOffsets] = {}
    for text in ledger.values(Entry.SOURCE_ENDS).values():
        try:
            kept |= from_text(text)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise LockstepError(f"Lockstep cannot read the source's ends in {ledger.topic}: {error}") from error
    return kept


def absent_topics(ledger: Ledger) -> set[str]:
    """Returns topics that the source did not have at the last reading, while the target had their copies. Raises
    LockstepError for an unreadable entry."""
    try:
        entries = [orjson.loads(text) for text in ledger.values(Entry.SOURCE_ENDS).values()]
        return {str(topic) for entry in entries for topic in entry.get("absent", ())}
    except (ValueError, TypeError, AttributeError) as error:
        raise LockstepError(f"the source's ends in {ledger.topic} cannot be read: {error}") from error


def _positions(found: Sequence[Sequence[int] | None]) -> CopiedTo:
    return tuple(None if one is None else KnownPosition(*map(int, one)) for one in found)
