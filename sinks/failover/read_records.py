"""Reads stretches of partitions, and hands each record to a function of its partition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from sinks.kafka.ports.record_reader import Ending, Record, RecordReader, Span
from streaming.mm2.records import TopicPartition


class ReadLimits(NamedTuple):
    """`most`: records to read of one partition. `seconds`: for all partitions together."""

    most: int
    seconds: float


def read_records(
    reader: RecordReader,
    spans: Mapping[TopicPartition, tuple[int, int | None]],
    limits: ReadLimits,
    taker: Callable[[TopicPartition], Callable[[Record], object]],
) -> dict[TopicPartition, Ending]:
    """Returns how reading each stretch [start, stop) ended. Without a stop it ends with the log. Raises
    ClusterUnreachable."""

    def taken(where: TopicPartition) -> Callable[[Record], bool]:
        take = taker(where)

        def goes_on(record: Record) -> bool:
            take(record)
            return False

        return goes_on

    wanted = [Span(where, start, stop, limits.most, taken(where)) for where, (start, stop) in spans.items()]
    endings = reader.scan(wanted, limits.seconds) if wanted else {}
    return {span.where: ending for span, ending in endings.items()}
