"""The reading of a log ends where the log ended when it began, and holds no more at once than a chunk."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pytest
from confluent_kafka import KafkaError, Message
from hypothesis import given
from hypothesis import strategies as st

from sinks.kafka.ports.cluster import CHUNK, CHUNK_BYTES, LogChunk, Placed, in_chunks
from sinks.kafka.records.rd_logs import Log

MANY = 100_000
"""Records that a reader that stops at the end does not read."""


class Writing:
    """A consumer of a log that has records at these offsets; `end`: where it ended when that was asked for."""

    def __init__(self, end: int, offsets: range, value: bytes) -> None:
        self._end, self._left, self._value = end, iter(offsets), value
        self.handed = 0

    def get_watermark_offsets(self, partition: object, timeout: float) -> tuple[int, int]:
        """As librdkafka's consumer does."""
        return 0, self._end

    def assign(self, partitions: object) -> None:
        """Always to the first record."""

    def poll(self, timeout: float) -> Message:
        """The next record; without one, that this is the end."""
        self.handed += 1
        offset = next(self._left, None)
        if offset is None:
            return Message(topic="x", partition=0, error=KafkaError(KafkaError._PARTITION_EOF))
        return Message(topic="x", partition=0, offset=offset, key=b"k", value=self._value)

    def consume(self, num_messages: int, timeout: float) -> list[Message]:
        """As librdkafka's consumer does."""
        return [self.poll(timeout) for _ in range(10)]

    def close(self) -> None:
        """Nothing is open."""


class Reads(Log):
    """Of a log with these records."""

    def __init__(self, end: int, offsets: range, value: bytes = b"v") -> None:
        super().__init__("a", {}, 5.0)
        self.consumer = Writing(end, offsets, value)

    def _consumer(self) -> Any:
        return self.consumer


def positions(chunks: list[LogChunk]) -> list[int]:
    return [placed.position for chunk in chunks for placed in chunk.records]


def test_who_writes_faster_than_a_log_is_read_does_not_keep_its_reading_from_ending() -> None:
    log = Reads(end=100, offsets=range(MANY))
    assert positions(list(log.read_in_chunks("x", 0))) == list(range(100))
    assert log.consumer.handed < 200


@pytest.mark.parametrize("offsets", [range(0, MANY, 7), range(100, MANY), range(103, MANY)])
def test_reading_ends_at_the_first_record_behind_the_end_where_compaction_took_the_last_before_it(
    offsets: range,
) -> None:
    log = Reads(end=100, offsets=offsets)
    assert positions(list(log.read_in_chunks("x", 0))) == [at for at in offsets[:100] if at < 100]
    assert log.consumer.handed < 200


def test_reading_ends_where_the_log_has_no_record_before_its_end() -> None:
    assert positions(list(Reads(end=100, offsets=range(90)).read_in_chunks("x", 0))) == list(range(90))
    assert list(Reads(end=100, offsets=range(0)).read_in_chunks("x", 0)) == [LogChunk([], whole=True)]


def test_chunk_of_large_records_is_handed_on_before_the_next_ones_are_read() -> None:
    log = Reads(end=606, offsets=range(606), value=b"v" * 1_000_000)
    first = next(iter(log.read_in_chunks("x", 0)))
    assert len(first.records) == CHUNK_BYTES // 1_000_001
    assert log.consumer.handed < 30


@given(st.lists(st.sampled_from([0, 1, CHUNK_BYTES // 3, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1]), max_size=12))
def test_chunks_have_all_records_in_order_and_none_is_larger_than_what_may_be_held(sizes: list[int]) -> None:
    records = [Placed(at, b"", b"v" * size) for at, size in enumerate(sizes)]
    chunks = list(in_chunks(records))
    assert [record for chunk in chunks for record in chunk] == records
    for chunk in chunks:
        assert len(chunk) == 1 or sum(sizes[record.position] for record in chunk) <= CHUNK_BYTES
    assert [] not in chunks or chunks == [[]]


def test_chunk_has_no_more_records_than_may_be_held() -> None:
    records = [Placed(at, b"", None) for at in range(2 * CHUNK + 1)]
    assert [len(chunk) for chunk in in_chunks(records)] == [CHUNK, CHUNK, 1]


class Clients:
    """Gives no client, and keeps what each was asked to be."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def made(self, kind: object, own: dict[str, Any]) -> Any:
        """As RdClients does."""
        self.asked.append(dict(own))
        return MagicMock()


def test_open_transaction_of_another_writer_hides_nothing_behind_it() -> None:
    clients = Clients()
    log = Log("a", clients, 5.0)
    log._consumer()
    log.follow("x", 0)
    assert [asked["isolation.level"] for asked in clients.asked] == ["read_uncommitted"] * 2
