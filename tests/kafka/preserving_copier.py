"""A copier that preserves offsets, for tests: topics keep their names and records their offsets.

It produces what it consumed, in order. So logs without gaps come out with the same offsets; it stops at any other log.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

from confluent_kafka import Consumer, Producer, TopicPartition

from app.local.local_cluster import LocalCluster
from app.wiring import open_cluster
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.kafka.ports.cluster import TopicSpec

PAUSE_S = 0.1


@dataclass
class PreservingCopier:
    """Copies topics whose names begin with one of these words."""

    source: LocalCluster
    target: LocalCluster
    words: tuple[str, ...]
    failure: BaseException | None = None
    _stop: threading.Event = field(default_factory=threading.Event)
    _paused: bool = False
    _round_ends: threading.Lock = field(default_factory=threading.Lock)
    _next: dict[tuple[str, int], int] = field(default_factory=dict)

    def run(self) -> None:
        """Until it is stopped."""
        servers = {"bootstrap.servers": self.source.bootstrap}
        consumer = Consumer(servers | {"group.id": "preserving-copier", "enable.auto.commit": False})
        producer = Producer({"bootstrap.servers": self.target.bootstrap, "linger.ms": 1})
        with (
            closing(open_cluster("source", servers)) as here,
            closing(open_cluster("target", {"bootstrap.servers": self.target.bootstrap})) as there,
            closing(consumer),
        ):
            try:
                while not self._stop.wait(PAUSE_S):
                    with self._round_ends:
                        if not self._paused:
                            self._round(here, there, consumer, producer)
            except BaseException as failure:
                self.failure = failure
                raise

    def pause(self) -> None:
        """Copies nothing any more. Returns when the round that has begun is over."""
        with self._round_ends:
            self._paused = True

    def _round(self, here: KafkaCluster, there: KafkaCluster, consumer: Consumer, producer: Producer) -> None:
        wanted = {name: count for name, count in here.list_topics().items() if name.startswith(self.words)}
        lacking = {name: TopicSpec(count, 1) for name, count in wanted.items() if name not in there.list_topics()}
        if lacking:
            assert not any(there.create_topics(lacking).values())
            return
        for name, count in wanted.items():
            for number in range(count):
                self._copy(name, number, consumer, producer)

    def _copy(self, name: str, number: int, consumer: Consumer, producer: Producer) -> None:
        start, end = consumer.get_watermark_offsets(TopicPartition(name, number), timeout=10)
        at = self._next.get((name, number), start)
        if at >= end:
            return
        consumer.assign([TopicPartition(name, number, at)])
        while at < end and not self._stop.is_set():
            message = consumer.poll(1.0)
            if message is None or message.error():
                continue
            assert message.offset() == at, f"{name}-{number} has a gap at {at}: this copier cannot keep its offsets"
            producer.produce(name, message.value(), message.key(), number, timestamp=message.timestamp()[1])
            at += 1
        assert producer.flush(30) == 0
        self._next[name, number] = at

    def stop(self) -> None:
        """The next round is the last one."""
        self._stop.set()


@contextmanager
def preserving_copier(source: LocalCluster, target: LocalCluster, *words: str) -> Iterator[PreservingCopier]:
    """One that copies for as long as this lasts. Raises at the end what it failed with."""
    copier = PreservingCopier(source, target, words)
    thread = threading.Thread(target=copier.run, name="preserving-copier")
    thread.start()
    try:
        yield copier
    finally:
        copier.stop()
        thread.join()
    assert copier.failure is None, copier.failure
