"""Records on two clusters as MM2 would have copied them, for the benchmark of `lockstep verify`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from app.local.local_mirror import mirror_properties
from bench.many_records import PlainRecord, produce_all
from streaming.mm2.codec import encode_offset_sync
from streaming.mm2.records import OffsetSync, TopicPartition

SYNCS: Final = "mm2-offset-syncs.b.internal"
SYNCS_A_PARTITION: Final = 16
VALUE: Final = b"x" * 180
"""With a key and a number in front: records of about 200 bytes, which brokers store as they are."""

WITHIN: Final = 120.0


@dataclass(frozen=True)
class WrittenLoad:
    """`records` in all, on both clusters. `config`: a properties file of the flow a->b over this topic alone."""

    topic: str
    records: int
    partitions: int
    sources: Mapping[str, str]
    config: Path

    @property
    def remote(self) -> str:
        """Its name on the target."""
        return f"a.{self.topic}"


def write_both(clusters: Mapping[str, str], records: int, partitions: int, folder: Path) -> WrittenLoad:
    """The same records on `a` and `b`, by alias their bootstrap servers, and offset-syncs as MM2 leaves them."""
    written = WrittenLoad(f"verify-{records}", records, partitions, clusters, folder / f"verify-{records}.properties")
    lines = mirror_properties(dict(clusters), ["a->b"], topics=written.topic)
    lines["lockstep.checkpoint.dir"] = str(folder / "checkpoints")
    written.config.write_text("".join(f"{name} = {value}\n" for name, value in lines.items()))
    _create(clusters["a"], {written.topic: partitions, SYNCS: 1})
    _create(clusters["b"], {written.remote: partitions})
    began = int(time.time() * 1000)
    with ThreadPoolExecutor() as pool:
        sides = ((clusters["a"], written.topic), (clusters["b"], written.remote))
        list(pool.map(lambda side: produce_all(side[0], side[1], _records(written, began)), sides))
    _write_syncs(clusters["a"], written)
    return written


def _create(bootstrap: str, topics: Mapping[str, int]) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    there = admin.list_topics(timeout=WITHIN).topics
    new = [NewTopic(name, count, 1) for name, count in topics.items() if name not in there]
    for made in admin.create_topics(new).values() if new else ():
        made.result()


def _records(written: WrittenLoad, began: int) -> Iterator[PlainRecord]:
    for number in range(written.records):
        key, at = b"%09d" % number, number % written.partitions
        yield PlainRecord(key, key + VALUE, at, began + number // 1000)


def _write_syncs(bootstrap: str, written: WrittenLoad) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    length = written.records // written.partitions
    for partition in range(written.partitions):
        where = TopicPartition(written.topic, partition)
        for number in range(SYNCS_A_PARTITION):
            offset = length * number // SYNCS_A_PARTITION
            key, value = encode_offset_sync(OffsetSync(where, offset, offset))
            producer.produce(SYNCS, value, key, 0)
    producer.flush(WITHIN)
