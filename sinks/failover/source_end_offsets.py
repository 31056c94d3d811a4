"""The ends of the source's logs as they were seen last, kept in the ledger for a failover without the source."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Any

import orjson

from sinks.background import begun
from sinks.engine.ledger import Ledger
from sinks.engine.ledger_entries import Entry, EntryKey
from sinks.engine.ledger_topic import TOPIC_GONE
from sinks.engine.model import Key
from sinks.failover.kept_end_offsets import UNSEEN, KeptEndOffsets, renewed_all
from sinks.kafka.ports.groups import LogRange
from sinks.kafka.ports.record_reader import RecordReader
from sinks.kinds.absence import Absence
from sinks.kinds.controller import PassContext
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition

log = logging.getLogger(__name__)

PARTITIONS_IN_AN_ENTRY = 4000
"""Partitions in one entry: about 80 kB."""

AT_LEAST_EVERY = 60.0
"""Seconds: so often the time is renewed where no end moved."""

EndOffsets = Mapping[str, Sequence[int]]
"""By topic, the end of each partition in order; UNSEEN where it was not."""


@dataclass(frozen=True, slots=True)
class SeenEndOffsets:
    """`ends`, and when the oldest of them were seen, in ms since the epoch."""

    ends: EndOffsets
    at_ms: int


def kept_end_offsets(ledger: Ledger) -> dict[str, KeptEndOffsets]:
    """What the ledger has of each topic. Raises LockstepError for what cannot be read."""
    kept: dict[str, KeptEndOffsets] = {}
    for text in ledger.values(Entry.SOURCE_ENDS).values():
        try:
            found = orjson.loads(text)
            at = int(found["at"])
            kept |= {str(topic): KeptEndOffsets(tuple(map(int, ends)), at) for topic, ends in found["ends"].items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise LockstepError(f"the source's ends in {ledger.topic} cannot be read: {error}") from error
    return kept


def known_end_offsets(ledger: Ledger) -> SeenEndOffsets | None:
    """What the ledger knows; None where no job ever kept it. Raises LockstepError for what cannot be read."""
    kept = kept_end_offsets(ledger)
    ends = {topic: one.ends for topic, one in kept.items()}
    return SeenEndOffsets(ends, min(one.at_ms for one in kept.values())) if kept else None


def end_offsets_by_topic(seen: Mapping[TopicPartition, LogRange], counts: Mapping[str, int]) -> dict[str, list[int]]:
    """By topic, in the order of its partitions."""
    return {
        topic: [
            seen[where].end if (where := TopicPartition(topic, number)) in seen else UNSEEN
            for number in range(partitions)
        ]
        for topic, partitions in counts.items()
    }


class DaemonExecutor(Executor):
    """A thread for each piece of work; a process that ends waits for none of them, as it does for a pool's."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Never blocks; the future has the result, or what was raised."""
        return begun(lambda: fn(*args, **kwargs), "lockstep-source-ends")


Read = tuple[dict[str, list[int]], set[str]]
"""The ends that were seen, and topics of which a broker says of every partition that there is no such."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """Ends that are being read since `at_ms`. `listed`: how many topics the source had then."""

    at_ms: int
    listed: int
    ends: Future[Read]


class SourceEndOffsetStore:
    """Of one flow in a running job; called after each pass.

    The ends are read beside the passes, for thousands of partitions take a while, and written after the next one:
    the ledger is a pass's alone.
    """

    def __init__(
        self,
        source: RecordReader,
        interval: float,
        now_ms: Callable[[], float] = lambda: time.time() * 1000,
        executor: Executor | None = None,
    ) -> None:
        """`executor`: where the ends are read; a thread of its own, unless given."""
        self._source, self._interval, self._now_ms = source, interval, now_ms
        self._executor = executor or DaemonExecutor()
        self._read_at: float | None = None
        self._reading: _Reading | None = None
        self._written: dict[Key, tuple[float, object]] = {}
        self._known: dict[str, KeptEndOffsets] | None = None
        self._absence = Absence()

    def keep(self, context: PassContext) -> None:
        """Reads where it is time, and writes what moved. What goes wrong is logged: nothing depends on it now."""
        try:
            self._write_what_was_read(context)
            if self._reading is None and (self._read_at is None or context.now - self._read_at >= self._interval):
                self._read_at = context.now
                ends = self._executor.submit(self._read, self._counts(context))
                self._reading = _Reading(int(self._now_ms()), len(context.listed.source), ends)
                self._write_what_was_read(context)
        except LockstepError as error:
            log.warning("the source's ends are not kept for now: %s", error)

    def _counts(self, context: PassContext) -> dict[str, int]:
        """The partitions to ask for, by topic. A topic that a listing lacks is not gone by that."""
        if self._known is None:
            self._known = _recalled(context.ledger)
        source, desired = context.listed.source, context.listed.desired
        # MM2 copies also what shares a name on the target.
        remote = desired.remote.keys() | desired.shared.keys()
        counts = {topic: len(one.ends) for topic, one in self._known.items() if topic in remote or topic not in source}
        return dict(sorted((counts | {topic: source[topic] or counts.get(topic, 0) for topic in remote}).items()))

    def _read(self, counts: Mapping[str, int]) -> Read:
        where = [TopicPartition(topic, number) for topic, count in counts.items() for number in range(count)]
        seen = self._source.ends(where)
        absent = {one for one, fault in seen.errors.items() if fault.code in TOPIC_GONE}
        gone = {topic for topic, count in counts.items() if {TopicPartition(topic, n) for n in range(count)} <= absent}
        return end_offsets_by_topic(seen.items, counts), gone

    def _write_what_was_read(self, context: PassContext) -> None:
        reading = self._reading
        if reading is None or not reading.ends.done():
            return
        self._reading = None
        seen, missing = reading.ends.result()
        self._absence.observe(missing - context.listed.source.keys(), reading.listed, context.now)
        for topic in self._absence.lasting(context.now):
            del seen[topic]
        self._known = renewed_all(self._known or {}, seen, reading.at_ms)
        entries: dict[EntryKey, str | None] = {}
        chunks = dict(_chunks(self._known))
        for key, chunk in chunks.items():
            ends = {topic: one.ends for topic, one in chunk.items()}
            written_at, written = self._written.get(key, (0.0, None))
            if ends != written or context.now - written_at >= AT_LEAST_EVERY:
                oldest = min(one.at_ms for one in chunk.values())
                entries[Entry.SOURCE_ENDS, key] = orjson.dumps({"at": oldest, "ends": ends}).decode()
                self._written[key] = (context.now, ends)
        gone = context.ledger.values(Entry.SOURCE_ENDS).keys() - chunks.keys()
        context.ledger.put(entries | {(Entry.SOURCE_ENDS, key): None for key in gone})

    def close(self) -> None:
        """Lets go of the reader; what is being read is not waited for."""
        self._executor.shutdown(wait=False, cancel_futures=True)
        self._source.close()


def _recalled(ledger: Ledger) -> dict[str, KeptEndOffsets]:
    """As a process before kept them; what cannot be read is read of the source anew."""
    try:
        return kept_end_offsets(ledger)
    except LockstepError as error:
        log.warning("%s", error)
        return {}


def _chunks(kept: Mapping[str, KeptEndOffsets]) -> Iterator[tuple[Key, dict[str, KeptEndOffsets]]]:
    number, chunk, partitions = 0, dict[str, KeptEndOffsets](), 0
    for topic, of_one in kept.items():
        if chunk and partitions + len(of_one.ends) > PARTITIONS_IN_AN_ENTRY:
            yield (str(number),), chunk
            number, chunk, partitions = number + 1, {}, 0
        chunk[topic] = of_one
        partitions += len(of_one.ends)
    if chunk:
        yield (str(number),), chunk
