"""Writes more records than a producer's buffer holds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from confluent_kafka import Producer

WITHIN: Final = 1800.0


class PlainRecord(NamedTuple):
    """`timestamp`: milliseconds since the epoch; 0 is now."""

    key: bytes
    value: bytes
    partition: int = 0
    timestamp: int = 0


def produce_all(bootstrap: str, topic: str, records: Iterable[PlainRecord]) -> None:
    """Returns when all are acknowledged. Raises TimeoutError."""
    batches = {"linger.ms": 20, "batch.size": 500_000, "enable.idempotence": True}
    producer = Producer({"bootstrap.servers": bootstrap, "queue.buffering.max.messages": 500_000, **batches})
    for number, (key, value, partition, timestamp) in enumerate(records):
        while True:
            try:
                producer.produce(topic, value, key, partition, timestamp=timestamp)
                break
            except BufferError:
                producer.poll(0.05)
        if number % 10_000 == 0:
            producer.poll(0)
    if left := producer.flush(WITHIN):
        raise TimeoutError(f"{left} records were not written to {topic} on {bootstrap} within {WITHIN:g} s")
