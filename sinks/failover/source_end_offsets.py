"""The ends of the source's logs as they were seen last, kept in the ledger for a failover without the source."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Any

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

PARTITIONS_IN_AN_ENTRY = 4000
"""Partitions in one entry: about 80 kB."""

AT_LEAST_EVERY = 60.0
"""Seconds: so often the time is renewed where no end moved."""

EndOffsets = Mapping[str, Sequence[int]]
"""By topic, the end of each partition in order; -1 where it was not seen."""


@dataclass(frozen=True, slots=True)
class SeenEndOffsets:
    """`ends`, and when the oldest of them were seen, in ms since the epoch."""

    ends: EndOffsets
    at_ms: int


def known_end_offsets(ledger: Ledger) -> SeenEndOffsets | None:
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
    return SeenEndOffsets(ends, min(times)) if times else None


def end_offsets_by_topic(seen: Mapping[TopicPartition, LogRange], counts: Mapping[str, int]) -> dict[str, list[int]]:
    """By topic, in the order of its partitions."""
    return {
        topic: [
            seen[where].end if (where := TopicPartition(topic, number)) in seen else -1 for number in range(partitions)
        ]
        for topic, partitions in counts.items()
    }


class DaemonExecutor(Executor):
    """A thread for each piece of work; a process that ends waits for none of them, as it does for a pool's."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Never blocks; the future has the result, or what was raised."""
        future: Future[Any] = Future()

        def work() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except Exception as error:  # noqa: BLE001 - whoever takes the result gets it
                future.set_exception(error)

        threading.Thread(target=work, name="lockstep-source-ends", daemon=True).start()
        return future


@dataclass(frozen=True, slots=True)
class _Reading:
    """Ends that are being read since `at_ms`."""

    at_ms: int
    ends: Future[dict[str, list[int]]]


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
        self._looked: float | None = None
        self._reading: _Reading | None = None
        self._kept: dict[Key, tuple[float, object]] = {}

    def keep(self, context: PassContext) -> None:
        """Reads where it is time, and writes what moved. What goes wrong is logged: nothing depends on it now."""
        try:
            self._write_what_was_read(context)
            if self._reading is None and (self._looked is None or context.now - self._looked >= self._interval):
                self._looked = context.now
                counts = {topic: context.listed.source[topic] for topic in sorted(context.listed.desired.remote)}
                self._reading = _Reading(int(self._now_ms()), self._executor.submit(self._read, counts))
                self._write_what_was_read(context)
        except LockstepError as error:
            log.warning("the source's ends are not kept for now: %s", error)

    def _read(self, counts: Mapping[str, int]) -> dict[str, list[int]]:
        where = [TopicPartition(topic, number) for topic, count in counts.items() for number in range(count)]
        return end_offsets_by_topic(self._source.ends(where).items, counts)

    def _write_what_was_read(self, context: PassContext) -> None:
        reading = self._reading
        if reading is None or not reading.ends.done():
            return
        self._reading = None
        entries: dict[EntryKey, str | None] = {}
        chunks = dict(_chunks(reading.ends.result()))
        for key, chunk in chunks.items():
            kept_at, kept = self._kept.get(key, (0.0, None))
            if chunk != kept or context.now - kept_at >= AT_LEAST_EVERY:
                entries[Entry.SOURCE_ENDS, key] = orjson.dumps({"at": reading.at_ms, "ends": chunk}).decode()
                self._kept[key] = (context.now, chunk)
        gone = context.ledger.values(Entry.SOURCE_ENDS).keys() - chunks.keys()
        context.ledger.put(entries | {(Entry.SOURCE_ENDS, key): None for key in gone})

    def close(self) -> None:
        """Lets go of the reader; what is being read is not waited for."""
        self._executor.shutdown(wait=False, cancel_futures=True)
        self._source.close()


def _chunks(ends: Mapping[str, list[int]]) -> Iterator[tuple[Key, dict[str, list[int]]]]:
    number, chunk, partitions = 0, dict[str, list[int]](), 0
    for topic, of_one in ends.items():
        if chunk and partitions + len(of_one) > PARTITIONS_IN_AN_ENTRY:
            yield (str(number),), chunk
            number, chunk, partitions = number + 1, {}, 0
        chunk[topic] = of_one
        partitions += len(of_one)
    if chunk:
        yield (str(number),), chunk
