"""Reads records at scattered places of many partitions at once, as matching needs them.

One consumer is kept, in no group; all partitions are assigned together, and each is read in one pass forward.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterable, Mapping

import confluent_kafka as rd

from sinks.faults import ItemFault, Observed, broker_text
from sinks.kafka.jvm.jvm_groups import JvmGroups
from sinks.kafka.jvm.jvm_topics import JvmTopics
from sinks.kafka.ports.groups import LogRange
from sinks.kafka.ports.record_reader import Ending, PartitionTime, Record, Span, Stamp, Why
from sinks.kafka.records.error_codes import UNREACHABLE, error_of, raised
from sinks.kafka.records.rd_clients import RdClients
from sinks.kafka.records.rd_logs import READING
from sinks.kafka.sweep import Sweep, sweeps_of, within_logs
from streaming.mm2.records import TopicPartition

FETCH_TIMEOUT = 0.01
"""Seconds that librdkafka waits for MESSAGES_AT_ONCE messages, however many there are already."""

MESSAGES_AT_ONCE = 1000
"""Most messages that are taken from the client together."""

STAMPS: Mapping[int, Stamp] = {
    rd.TIMESTAMP_NOT_AVAILABLE: Stamp.NONE,
    rd.TIMESTAMP_CREATE_TIME: Stamp.CREATE,
    rd.TIMESTAMP_LOG_APPEND_TIME: Stamp.APPEND,
}

HERE_AND_THERE: dict[str, str | int] = {
    "enable.partition.eof": "true",
    "allow.auto.create.topics": "false",
    # One partition at its end must not keep the others waiting; few records are wanted from each place.
    "fetch.wait.max.ms": 10,
    "fetch.message.max.bytes": 65536,
    "fetch.error.backoff.ms": 50,
    "queued.max.messages.kbytes": 16384,
    "fetch.queue.backoff.ms": 10,
}


def _first(log: LogRange) -> int | None:
    return log.start if log.start < log.end else None


class KafkaRecords:
    """The records of one cluster, read by a consumer of its own. Java's Admin knows where their logs end.

    `isolation`: how MM2 reads its source, which is the flow's `consumer.isolation.level`. If MM2 copied records of
    aborted transactions, they have offsets on the target; if not, they must not be looked for. A count of records on
    the target reads committed records only. A search for offsets reads all.
    """

    def __init__(
        self,
        alias: str,
        clients: RdClients,
        ends: JvmGroups,
        topics: JvmTopics,
        isolation: str = "read_uncommitted",
    ) -> None:
        self.alias, self._logs, self._topics = alias, ends, topics
        self._clients, self._isolation = clients, isolation
        # confluent-kafka frees a consumer on `close` while another thread is in it, which ends the process.
        self._using = threading.Lock()
        self._consumer: rd.Consumer | None = None

    def ends(self, partitions: Collection[TopicPartition]) -> Observed[TopicPartition, LogRange]:
        return self._logs.ends(partitions)

    def latest(self, partitions: Collection[TopicPartition]) -> Observed[TopicPartition, int]:
        return self._logs.latest(partitions)

    def readable(self, partitions: Collection[TopicPartition]) -> Observed[TopicPartition, LogRange]:
        return self._logs.ends(partitions, committed=self._isolation == "read_committed")

    def offsets_for_times(self, times: Collection[PartitionTime]) -> Observed[PartitionTime, int | None]:
        seen = self._logs.for_times([one for one in times if one.timestamp >= 0])
        # To a broker -1 is the end of a log, -2 its start, -3 its newest record; and to us all records are younger.
        early = [one for one in times if one.timestamp < 0]
        logs = self.ends({one.where for one in early})
        first = {one: _first(logs.items[one.where]) for one in early if one.where in logs.items}
        unseen = {one: logs.errors[one.where] for one in early if one not in first}
        return Observed({**seen.items, **first}, {**seen.errors, **unseen})

    def compacted(self, topics: Collection[str]) -> set[str]:
        seen = self._topics.describe_topic_configs(sorted(topics))
        compacted = {
            topic for topic, configs in seen.items.items() if "compact" in (configs["cleanup.policy"].value or "")
        }
        return compacted | set(seen.errors)

    def scan(self, spans: Collection[Span], seconds: float) -> dict[Span, Ending]:
        deadline = time.monotonic() + seconds
        logs = self.ends({span.where for span in spans})
        left, endings = within_logs(spans, logs)
        if seconds <= 0:
            endings |= {span: Ending(Why.TIME, span.start) for span in left}
        elif left:
            with self._using:
                endings |= self._scan(left, logs.items, deadline)
        return endings

    def _scan(
        self, spans: Iterable[Span], logs: Mapping[TopicPartition, LogRange], deadline: float
    ) -> dict[Span, Ending]:
        sweeps = sweeps_of(spans)
        try:
            consumer = self._opened()
            begins = {at: max(sweep.position, logs[at].start) for at, sweep in sweeps.items()}
            consumer.assign([rd.TopicPartition(at.topic, at.partition, offset) for at, offset in begins.items()])
            self._run(consumer, sweeps, deadline)
            consumer.unassign()
        except rd.KafkaException as exception:
            self._discard()
            error = error_of(exception)
            if error is None:
                raise
            raise raised(self.alias, "reading records", error) from exception
        endings = {span: ending for sweep in sweeps.values() for span, ending in sweep.endings.items()}
        if all(ending.why is Why.TIME for ending in endings.values()):
            # It may have lost its way to a broker that restarted; another finds it.
            self._discard()
        return endings

    def _opened(self) -> rd.Consumer:
        if self._consumer is None:
            self._consumer = self._clients.made(
                rd.Consumer, {**READING, **HERE_AND_THERE, "isolation.level": self._isolation}
            )
        return self._consumer

    def _run(self, consumer: rd.Consumer, sweeps: Mapping[TopicPartition, Sweep], deadline: float) -> None:
        # Messages come with both apart, and to make one of each, which is checked, would take longer than all the rest.
        busy = {(at.topic, at.partition): sweep for at, sweep in sweeps.items()}
        while busy and (left := deadline - time.monotonic()) > 0:
            for message in consumer.consume(MESSAGES_AT_ONCE, timeout=min(FETCH_TIMEOUT, left)):
                _take(message, busy)
            done = [at for at, sweep in busy.items() if sweep.done]
            for at in done:
                del busy[at]
            if done:
                # A pause would be remembered beyond the assignment, and the next start be late by a second.
                consumer.incremental_unassign([rd.TopicPartition(*at) for at in done])
            for at, sweep in busy.items():
                if (offset := sweep.jump()) is not None:
                    consumer.seek(rd.TopicPartition(*at, offset))
        for sweep in busy.values():
            sweep.finish(Ending(Why.TIME, sweep.position))

    def close(self) -> None:
        """Wait for a scan that is under way. The next scan begins with a new client."""
        with self._using:
            self._discard()

    def _discard(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None


def _take(message: rd.Message, busy: Mapping[tuple[str, int], Sweep]) -> None:
    """Give a message to its partition's sweep. Raises KafkaException for an error that concerns the whole cluster."""
    error = message.error()
    if error is not None and error.code() in UNREACHABLE | {rd.KafkaError._AUTHENTICATION, rd.KafkaError._SSL}:
        if error.code() == rd.KafkaError._ALL_BROKERS_DOWN or error.code() not in UNREACHABLE:
            raise rd.KafkaException(error)
        return
    topic, partition = message.topic(), message.partition()
    if topic is None or partition is None:
        return
    sweep = busy.get((topic, partition))
    if sweep is None:
        return
    if error is None:
        sweep.take(_record(message))
    elif error.code() == rd.KafkaError._PARTITION_EOF:
        sweep.end(message.offset() or 0)
    else:
        fault = ItemFault(error.name(), broker_text(error.str()))
        sweep.finish(Ending(Why.FAULT, sweep.position, fault))


def _record(message: rd.Message) -> Record:
    stamp, timestamp = message.timestamp()
    return Record(message.offset() or 0, timestamp, STAMPS[stamp], message.key(), message.value())
