"""One-partition topics as logs: read whole, followed, and appended to with every in-sync replica's acknowledgement.

No group is used for reading.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from sinks.faults import ClusterUnreachable
from sinks.kafka.ports.cluster import UNKNOWN_OFFSET, LogChunk, Placed, Record, in_chunks
from sinks.kafka.records.error_codes import error_of, raised
from sinks.kafka.records.rd_clients import RdClients
from streaming.errors import LockstepError

FETCHED_AHEAD = 16 * 1024
"""Kilobytes that librdkafka fetches ahead of the reader; its own default is 64 MiB."""

READING: dict[str, str | int] = {
    "group.id": "lockstep-reads-without-group",
    "enable.auto.commit": "false",
    # An offset that is not there any more must be an answer, never a jump to another one.
    "auto.offset.reset": "error",
    # librdkafka would show nothing behind a transaction that any writer of the topic leaves open. Lockstep writes
    # without transactions. MM2 may write its topics in them; but a heartbeat, an offset-sync or a checkpoint is true
    # when it is written, whatever becomes of the transaction. The job's stream reads them so, too.
    "isolation.level": "read_uncommitted",
    "queued.max.messages.kbytes": FETCHED_AHEAD,
}

PASSING = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
    }
)
"""Errors that do not end the following of a log: a topic that is not there yet, and a group that is not needed."""


class LogTail:
    """Follows a one-partition topic. Thread-safe: `close` waits for a `next` that is under way."""

    def __init__(self, alias: str, consumer: Consumer, topic: str, position: int) -> None:
        self._alias, self._consumer, self._topic = alias, consumer, topic
        # confluent-kafka frees a consumer on `close` while another thread is in it, which ends the process.
        self._using, self._closed = threading.Lock(), False
        self._error: KafkaError | None = None
        consumer.assign([TopicPartition(topic, 0, position or OFFSET_BEGINNING)])

    def next(self, timeout: float) -> list[Record]:
        """Returns new records. Raises ClusterUnreachable (also after `close`), RightsMissing. Records that came before
        an error are returned first."""
        with self._using:
            if self._closed:
                raise ClusterUnreachable(
                    f"cluster {self._alias}: {self._topic} is not followed any more: its client is closed"
                )
            records = self._come(timeout)
        if self._error is not None and not records:
            error, self._error = self._error, None
            raise raised(self._alias, f"following {self._topic}", error)
        return records

    def _come(self, timeout: float) -> list[Record]:
        records: list[Record] = []
        for message in self._consumer.consume(num_messages=1000, timeout=0 if self._error else timeout):
            error = message.error()
            if error is None:
                records.append((message.key() or b"", message.value()))
            elif error.code() not in PASSING:
                self._error = error
        return records

    def close(self) -> None:
        with self._using:
            if not self._closed:
                self._closed = True
                self._consumer.close()


MESSAGES_IN_A_READ = 1000
"""Records that librdkafka hands over in one call."""

ROOM_POLL_S = 0.1
"""Seconds between two checks whether the client has room for one record more."""

AT_ONCE_WITHIN = 2.0
"""Seconds for a read with the client that is kept open. If they are not enough, a new client tries."""

Delivered = Callable[[KafkaError | None, Message], None]
"""Called with what became of a record: its error or None, and the record."""

Start = Callable[[int, int], int]
"""Returns the offset to begin to read at, from the first offset and the end of a log."""


def _from(position: int) -> Start:
    return lambda first, end: first if position > end else max(first, position)


def _come(consumer: Consumer) -> Iterator[Message]:
    """Yields the records that have come, after a wait for the first one. `consume` would wait for MESSAGES_IN_A_READ
    records."""
    if (first := consumer.poll(0.2)) is not None:
        yield first
        yield from consumer.consume(num_messages=MESSAGES_IN_A_READ, timeout=0)


def _joined(chunks: Iterable[LogChunk]) -> LogChunk:
    records: list[Placed] = []
    whole = True
    for chunk in chunks:
        records += chunk.records
        whole = chunk.whole
    return LogChunk(records, whole)


class Log:
    """Reads and appends to logs with clients of its own, which are created at their first use."""

    def __init__(self, alias: str, clients: RdClients, within: float) -> None:
        """`within`: seconds that reading may go without progress, and that an append may take."""
        self._alias, self._within = alias, within
        self._clients = clients
        self._producer: Producer | None = None
        # confluent-kafka frees a client that is closed while another thread is in it, which ends the process.
        self._reading, self._writing = threading.Lock(), threading.Lock()
        self._reader: Consumer | None = None
        self._closed = False

    def append(self, topic: str, records: Sequence[Record]) -> list[int]:
        """See Cluster.append_log. Raises ClusterUnreachable, which says how many records are missing."""
        with self._writing:
            if self._closed:
                raise ClusterUnreachable(
                    f"cluster {self._alias}: {topic} is not written any more: its client is closed"
                )
            return self._append(topic, records)

    def _append(self, topic: str, records: Sequence[Record]) -> list[int]:
        if self._producer is None:
            # A log that was deleted is not recreated by a write, with whatever the broker's defaults are.
            fixed = {"acks": "all", "enable.idempotence": True, "linger.ms": 5, "allow.auto.create.topics": False}
            self._producer = self._clients.made(Producer, fixed)
        errors, offsets = list[KafkaError](), list[int]()

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                errors.append(error)
            else:
                offset = message.offset()
                offsets.append(UNKNOWN_OFFSET if offset is None else offset)

        try:
            self._queue(self._producer, topic, records, delivered)
        except LockstepError:
            self._discard(self._producer)
            raise
        # What is left counts events of the client as well.
        missing = self._producer.flush(self._within) and len(records) - len(offsets)
        # Those that come while it is discarded only say that it was.
        failed = errors[:1]
        if failed or missing:
            self._discard(self._producer)
        if failed:
            raise raised(self._alias, f"writing {topic}", failed[0])
        if missing:
            raise self._missing(topic, missing, len(records))
        return offsets

    def _queue(self, producer: Producer, topic: str, records: Sequence[Record], delivered: Delivered) -> None:
        """Wait for room in the client's queue. Raises ClusterUnreachable, and LockstepError for a record that the
        client refuses."""
        for number, (key, value) in enumerate(records):
            until = time.monotonic() + self._within
            while not self._takes(producer, topic, key, value, delivered):
                if time.monotonic() > until:
                    left = len(producer) + len(records) - number
                    raise self._missing(topic, left, len(records))
                producer.poll(ROOM_POLL_S)

    def _takes(self, producer: Producer, topic: str, key: bytes, value: bytes | None, delivered: Delivered) -> bool:
        """Whether the client had room for the record. Raises LockstepError for a record that is too large, for
        example."""
        try:
            producer.produce(topic, key=key, value=value, partition=0, on_delivery=delivered)
        except BufferError:
            return False
        except KafkaException as exception:
            if (error := error_of(exception)) is None:
                raise
            raise raised(self._alias, f"writing {topic}", error) from exception
        producer.poll(0)
        return True

    def _missing(self, topic: str, missing: int, of: int) -> ClusterUnreachable:
        return ClusterUnreachable(
            f"cluster {self._alias}: {missing} of {of} records for {topic} were not acknowledged within "
            f"{self._within:g} s"
        )

    def _discard(self, producer: Producer) -> None:
        # After a fatal error it takes nothing any more. And what its caller was told is not written must not be
        # written later, over what is written by then.
        producer.purge()
        producer.flush(0)
        self._producer = None

    def read(self, topic: str, last: int | None = None) -> list[Record]:
        """Returns every record, or only those at the `last` offsets. Raises ClusterUnreachable if nothing comes."""

        def start(first: int, end: int) -> int:
            return first if last is None else max(first, end - last)

        return [(key, value) for _, key, value in _joined(self._chunks(topic, start)).records]

    def read_from(self, topic: str, position: int) -> LogChunk:
        """Returns every record from an offset on, or all of a log that ends before it. Raises ClusterUnreachable."""
        return _joined(self.read_in_chunks(topic, position))

    def read_in_chunks(self, topic: str, position: int) -> Iterator[LogChunk]:
        """Like `read_from`, in chunks. librdkafka fetches at most `FETCHED_AHEAD` bytes ahead of the reader."""
        return self._chunks(topic, _from(position))

    def read_soon(self, topic: str, position: int) -> LogChunk | None:
        """Like `read_from`, with two requests of a client that stays open; None if that does not succeed at once."""
        if not self._reading.acquire(blocking=False):
            return None
        try:
            if self._closed:
                return None
            if self._reader is None:
                self._reader = self._consumer()
            read = _joined(self._read(self._reader, topic, _from(position), AT_ONCE_WITHIN))
            self._reader.unassign()
            return read
        except (KafkaException, ClusterUnreachable):
            # It may know another broker than the one that leads now, or a topic that was deleted and recreated since.
            self._close_reader()
            return None
        finally:
            self._reading.release()

    def _close_reader(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

    def _consumer(self) -> Consumer:
        return self._clients.made(Consumer, {**READING, "enable.partition.eof": True, "fetch.wait.max.ms": 20})

    def _chunks(self, topic: str, start: Start) -> Iterator[LogChunk]:
        consumer = self._consumer()
        try:
            yield from self._read(consumer, topic, start, self._within)
        except KafkaException as exception:
            error = error_of(exception)
            if error is None:
                raise
            raise raised(self._alias, f"reading {topic}", error) from exception
        finally:
            consumer.close()

    def _read(self, consumer: Consumer, topic: str, start: Start, within: float) -> Iterator[LogChunk]:
        first, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=within)
        chosen = start(first, end)
        if chosen >= end:
            yield LogChunk([], whole=first == end)
            return
        # Of the first record retention may take more meanwhile: then the first one that there is counts.
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING if chosen == first else chosen)])
        for records in in_chunks(self._records(consumer, topic, end, within)):
            yield LogChunk(records, whole=chosen == first)

    def _records(self, consumer: Consumer, topic: str, end: int, within: float) -> Iterator[Placed]:
        """Returns the records before `end`. Newer records wait for the next call, so that a fast writer cannot keep
        this one from returning. `within`: seconds without progress."""
        deadline = time.monotonic() + within
        while time.monotonic() < deadline:
            for message in _come(consumer):
                error, offset = message.error(), message.offset() or 0
                if error is None:
                    if offset < end:
                        yield Placed(offset, message.key() or b"", message.value())
                        deadline = time.monotonic() + within
                    if offset >= end - 1:
                        return
                elif error.code() == KafkaError._PARTITION_EOF:
                    # Where compaction took what was before `end`, or a transaction's marker is there.
                    return
                elif error.code() == KafkaError._AUTO_OFFSET_RESET:
                    raise ClusterUnreachable(f"cluster {self._alias}: {topic} lost records while it was read")
                elif error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED:
                    # librdkafka looks for the group's coordinator, though nothing here needs one, nor rights on groups.
                    raise KafkaException(error)
        raise ClusterUnreachable(
            f"cluster {self._alias}: reading {topic}: neither a record nor the log's end came within {within:g} s"
        )

    def follow(self, topic: str, position: int) -> LogTail:
        """Follow from this offset on, or from the first record if the offset does not exist."""
        begin_anew: dict[str, str | int] = {"auto.offset.reset": "earliest", "allow.auto.create.topics": False}
        consumer = self._clients.made(Consumer, {**READING, **begin_anew})
        return LogTail(self._alias, consumer, topic, position)

    def close(self) -> None:
        """Close the clients, after the requests under way."""
        with self._writing:
            self._closed = True
            if self._producer is not None:
                self._producer.flush(self._within)
                self._producer = None
        with self._reading:
            self._close_reader()
