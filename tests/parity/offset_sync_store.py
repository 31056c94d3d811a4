"""Kafka's `OffsetSyncStore` without a Kafka: made as its own tests make it, fed with records in MM2's bytes."""

from __future__ import annotations

from typing import Any

from streaming.mm2.codec import encode_record
from streaming.mm2.records import OffsetSync, TopicPartition
from tests.parity.kafka_classes import MIRROR, Kafka

WHERE = TopicPartition("orders", 0)


class OffsetSyncStore:
    """One partition in a store that has read its topic to the end."""

    def __init__(self, kafka: Kafka) -> None:
        jvm = kafka.jvm
        self._record_class = jvm.org.apache.kafka.clients.consumer.ConsumerRecord
        self._where = jvm.org.apache.kafka.common.TopicPartition(WHERE.topic, WHERE.partition)
        self._array = kafka._array
        made = jvm.java.lang.Class.forName(f"{MIRROR}OffsetSyncStore")
        constructor = made.getDeclaredConstructor(self._array("Class", []))
        constructor.setAccessible(True)
        self._store = constructor.newInstance(self._array("Object", []))
        read_to_end = made.getDeclaredField("readToEnd")
        read_to_end.setAccessible(True)
        read_to_end.set(self._store, True)
        methods = {method.getName(): method for method in made.getDeclaredMethods()}
        self._take, self._slot = methods["handleRecord"], methods["syncFor"]
        for method in (self._take, self._slot):
            method.setAccessible(True)

    def take(self, upstream: int, downstream: int) -> None:
        key, value = encode_record(OffsetSync(WHERE, upstream, downstream))
        record = self._record_class("mm2-offset-syncs.b.internal", 0, 0, bytearray(key), bytearray(value))
        self._take.invoke(self._store, self._array("Object", [record]))

    def slots(self) -> list[tuple[int, int]]:
        """Upstream and downstream offset of the sync in each of the 64 slots."""
        syncs = [self._slot.invoke(self._store, self._array("Object", [self._where, slot])) for slot in range(64)]
        return [(sync.upstreamOffset(), sync.downstreamOffset()) for sync in syncs]

    def translate(self, upstream: int) -> int:
        """-1 where the offset lies before all syncs."""
        found: Any = self._store.translateDownstream("billing", self._where, upstream)
        return int(found.getAsLong())
