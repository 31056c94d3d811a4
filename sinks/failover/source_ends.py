"""The ends of the source's logs as they were seen last, kept in the ledger for a failover without the source."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import orjson

from sinks.engine.ledger import Ledger
from sinks.engine.ledger_entries import Entry, EntryKey
from sinks.engine.model import Key
from sinks.kafka.ports.groups import LogRange
from sinks.kafka.ports.record_reader import RecordReader
from sinks.kinds.controller import PassContext
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition

log = logging.getLogger(__name__)

CHUNK = 4000
"""Partitions in one entry: about 80 kB."""

AT_LEAST_EVERY = 60.0
"""Seconds: so often the time is renewed where no end moved."""

Ends = Mapping[str, Sequence[int]]
"""By topic, the end of each partition in order; -1 where it was not seen."""


@dataclass(frozen=True, slots=True)
class SeenEnds:
    """`ends`, and when the oldest of them were seen, in ms since the epoch."""

    ends: Ends
    at_ms: int


def known_ends(ledger: Ledger) -> SeenEnds | None:
    """What the ledger knows; None where no job ever kept it. Raises LockstepError for what cannot be read."""
    ends: dict[str, Sequence[int]] = {}
    times = []
    for text in ledger.values(Entry.SOURCE_ENDS).values():
        try:
            found = orjson.loads(text)
            ends |= {str(topic): [int(end) for end in of_one] for topic, of_one in found["ends"].items()}
            times.append(int(found["at"]))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise LockstepError(f"the source's ends in {ledger.topic} cannot be read: {error}") from error
    return SeenEnds(ends, min(times)) if times else None


def ends_by_topic(seen: Mapping[TopicPartition, LogRange], counts: Mapping[str, int]) -> dict[str, list[int]]:
    """By topic, in the order of its partitions."""
    return {
        topic: [
            seen[where].end if (where := TopicPartition(topic, number)) in seen else -1 for number in range(partitions)
        ]
        for topic, partitions in counts.items()
    }


class SourceEndsKeeper:
    """Of one flow in a running job; called after each pass."""

    def __init__(
        self,
        source: RecordReader,
        interval: float,
        now_ms: Callable[[], float] = lambda: time.time() * 1000,
    ) -> None:
        self._source, self._interval, self._now_ms = source, interval, now_ms
        self._looked: float | None = None
        self._kept: dict[Key, tuple[float, object]] = {}

    def keep(self, context: PassContext) -> None:
        """Looks where it is time, and writes what moved. What goes wrong is logged: nothing depends on it now."""
        if self._looked is not None and context.now - self._looked < self._interval:
            return
        self._looked = context.now
        try:
            self._keep(context)
        except LockstepError as error:
            log.warning("the source's ends are not kept for now: %s", error)

    def _keep(self, context: PassContext) -> None:
        counts = {topic: context.listed.source[topic] for topic in sorted(context.listed.desired.remote)}
        where = [TopicPartition(topic, number) for topic, count in counts.items() for number in range(count)]
        ends = ends_by_topic(self._source.ends(where).items, counts)
        entries: dict[EntryKey, str | None] = {}
        chunks = dict(_chunks(ends))
        for key, chunk in chunks.items():
            kept_at, kept = self._kept.get(key, (0.0, None))
            if chunk != kept or context.now - kept_at >= AT_LEAST_EVERY:
                text = orjson.dumps({"at": int(self._now_ms()), "ends": chunk}).decode()
                entries[Entry.SOURCE_ENDS, key] = text
                self._kept[key] = (context.now, chunk)
        gone = context.ledger.values(Entry.SOURCE_ENDS).keys() - chunks.keys()
        context.ledger.put(entries | {(Entry.SOURCE_ENDS, key): None for key in gone})

    def close(self) -> None:
        """Lets go of the reader."""
        self._source.close()


def _chunks(ends: Mapping[str, list[int]]) -> Iterator[tuple[Key, dict[str, list[int]]]]:
    number, chunk, partitions = 0, dict[str, list[int]](), 0
    for topic, of_one in ends.items():
        if chunk and partitions + len(of_one) > CHUNK:
            yield (str(number),), chunk
            number, chunk, partitions = number + 1, {}, 0
        chunk[topic] = of_one
        partitions += len(of_one)
    if chunk:
        yield (str(number),), chunk
