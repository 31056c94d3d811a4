"""A topic of one partition that is followed, and how logs are read without a group."""

from __future__ import annotations

import threading

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from sinks.faults import ClusterUnreachable
from sinks.kafka.records.error_codes import raised

FETCHED_AHEAD = 16 * 1024
"""Kilobytes that librdkafka fetches before they are asked for; 64 MiB if nothing is said."""

READING: dict[str, str | int] = {
    "group.id": "lockstep-reads-without-group",
    "enable.auto.commit": "false",
    # An offset that is not there any more must be an answer, never a jump to another one.
    "auto.offset.reset": "error",
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
"""What does not end the following of a log: a topic that is not there yet, and a group that is not needed."""


class LogTail:
    """Follows a topic of one partition. Of several threads: `close` waits for a `next` that is under way."""

    def __init__(self, alias: str, consumer: Consumer, topic: str, position: int) -> None:
        self._alias, self._consumer, self._topic = alias, consumer, topic
        # confluent-kafka frees a consumer on `close` while another thread is in it, which ends the process.
        self._using, self._closed = threading.Lock(), False
        self._error: KafkaError | None = None
        consumer.assign([TopicPartition(topic, 0, position or OFFSET_BEGINNING)])

    def next(self, timeout: float) -> list[tuple[bytes, bytes | None]]:
        """Raises ClusterUnreachable, of one that is closed too; RightsMissing. Records that came before come first."""
        with self._using:
            if self._closed:
                raise ClusterUnreachable(f"cluster {self._alias}: {self._topic} is not followed any more")
            records = self._come(timeout)
        if self._error is not None and not records:
            error, self._error = self._error, None
            raise raised(self._alias, f"following {self._topic}", error)
        return records

    def _come(self, timeout: float) -> list[tuple[bytes, bytes | None]]:
        records: list[tuple[bytes, bytes | None]] = []
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
