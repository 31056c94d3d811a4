"""What the tests of the query on real brokers share: a sink that keeps hints, and internal topics of one test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from app.local.local_cluster import LocalCluster
from app.local.waiting import wait_for
from streaming.flow import Flow
from streaming.hints import Hints
from streaming.mm2 import codec
from streaming.mm2.internal_topic_names import TopicRole
from streaming.mm2.records import OffsetSync, RecordKind, TopicPartition
from streaming.query import collect_hints, start, stop_gently, trace_of
from streaming.query_plan import ClusterSource, QueryPlan
from tests.conftest import Clusters

FLOW = Flow("a", "b")
WITHIN = 180.0

Record = tuple[bytes | None, bytes | None]


@dataclass
class Noted:
    """A sink that keeps the hints of every batch, and holds each batch up for `busy` seconds."""

    busy: float = 0.0
    begun: int = 0
    hints: list[Hints] = field(default_factory=list)
    inside: threading.Event = field(default_factory=threading.Event)
    stopping: bool = False

    def __call__(self, batch: DataFrame, _: int) -> None:
        if self.stopping:
            return
        self.begun += 1
        self.inside.set()
        self.hints.append(collect_hints(batch))
        threading.Event().wait(self.busy)
        self.inside.clear()

    @property
    def topics(self) -> list[str]:
        return [topic for hints in self.hints for topic in sorted({sync.topic for sync in hints.syncs.get(FLOW, ())})]

    @property
    def rows(self) -> int:
        return sum(hints.rows for hints in self.hints)


@dataclass
class Topics:
    """The internal topics of one test, on both clusters."""

    clusters: Clusters
    word: str

    @property
    def syncs(self) -> str:
        return f"mm2-offset-syncs.{self.word}.internal"

    @property
    def heartbeats(self) -> str:
        return f"{self.word}.heartbeats"

    @property
    def checkpoints(self) -> str:
        return f"{self.word}.checkpoints.internal"

    def create(self, on: LocalCluster, topic: str) -> None:
        admin = AdminClient({"bootstrap.servers": on.bootstrap})
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()

    def delete(self, on: LocalCluster, topic: str) -> None:
        admin = AdminClient({"bootstrap.servers": on.bootstrap})
        admin.delete_topics([topic])[topic].result()
        wait_for(lambda: topic not in admin.list_topics().topics, WITHIN, f"{topic} to be deleted")

    def write(self, on: LocalCluster, topic: str, *records: Record) -> None:
        producer = Producer({"bootstrap.servers": on.bootstrap})
        for key, value in records:
            producer.produce(topic, value, key)
        assert producer.flush(WITHIN) == 0

    def write_syncs(self, *names: str) -> None:
        syncs = [codec.encode_record(OffsetSync(TopicPartition(name, 0), 1, 1)) for name in names]
        self.write(self.clusters.a, self.syncs, *syncs)

    def plan(self, folder: Path, trigger_interval: float = 0.2) -> QueryPlan:
        on_a = {self.syncs: TopicRole(RecordKind.OFFSET_SYNC, FLOW)}
        on_b = {
            self.heartbeats: TopicRole(RecordKind.HEARTBEAT, FLOW),
            self.checkpoints: TopicRole(RecordKind.CHECKPOINT, FLOW),
        }
        sources = (
            ClusterSource("a", {"bootstrap.servers": self.clusters.a.bootstrap}, on_a),
            ClusterSource("b", {"bootstrap.servers": self.clusters.b.bootstrap}, on_b),
        )
        return QueryPlan(self.word, sources, trigger_interval, folder)


@contextmanager
def running(spark: SparkSession, plan: QueryPlan, sink: Noted) -> Iterator[StreamingQuery]:
    query = start(spark, plan, sink)
    try:
        yield query
    finally:
        sink.stopping = True
        stop_gently(query, WITHIN)
    assert trace_of(query) is None
