"""The query against real brokers: what comes late, what is broken, what is stopped and started again."""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from app.local.ports import free_ports
from app.local.waiting import wait_for
from streaming import source
from streaming.mm2 import codec
from streaming.mm2.records import Checkpoint, Heartbeat, TopicPartition
from streaming.query import start, stop_gently, trace_of
from streaming.query_plan import ClusterSource
from streaming.query_restarts import root_cause
from tests.conftest import Clusters
from tests.kafka.streamed import FLOW, WITHIN, Noted, Record, Topics, running


@pytest.fixture
def topics(clusters: Clusters, unique: str) -> Topics:
    return Topics(clusters, f"stream-{unique}")


def test_a_missing_topic_is_waited_for_and_read_from_its_first_record_on_and_no_topic_of_a_similar_name(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    sink = Noted()
    with running(spark, topics.plan(tmp_path), sink):
        wait_for(lambda: len(sink.hints) >= 3, WITHIN, "batches of the clock alone")
        assert sink.rows == 0
        for like in (f"x{topics.syncs}", f"{topics.syncs}x", topics.syncs.replace(".", "-")):
            topics.create(topics.clusters.a, like)
            topics.write(topics.clusters.a, like, (b"not", b"read"))
        topics.create(topics.clusters.a, topics.syncs)
        topics.write_syncs("orders", "bills")
        wait_for(lambda: sorted(sink.topics) == ["bills", "orders"], WITHIN, "the records of a topic that came late")
    assert sink.rows == 2, "topics of similar names were read, too"


def test_broken_records_are_counted_and_the_query_goes_on(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    on, sink = topics.clusters.b, Noted()
    topics.create(on, topics.checkpoints)
    key, value = codec.encode_record(Checkpoint("g", TopicPartition("a.t", 0), 5, 5, ""))
    broken: list[Record] = [
        (key, None),
        (None, value),
        (key, value[:-1]),
        (key, b"\0\1" + value[2:]),
        (b"\0\1\xff", value),
    ]
    topics.write(on, topics.checkpoints, *broken, (key, value))
    with running(spark, topics.plan(tmp_path), sink):
        wait_for(lambda: sink.rows == 6, WITHIN, "six records")
        topics.write(on, topics.checkpoints, (key, value))
        wait_for(lambda: sink.rows == 7, WITHIN, "the record after the broken ones")
    counted = {reason: count for hints in sink.hints for (_, reason), count in hints.undecodable.items()}
    assert counted == {
        codec.TOMBSTONE: 1,
        codec.NO_KEY: 1,
        codec.SHORT_VALUE: 1,
        codec.UNKNOWN_VERSION: 1,
        codec.SHORT_KEY: 1,
    }
    assert {seen.group for hints in sink.hints for seen in hints.checkpoints.get(FLOW, ())} == {"g"}


def test_a_heartbeat_says_how_old_it_is(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    on, sink = topics.clusters.b, Noted()
    topics.create(on, topics.heartbeats)
    with running(spark, topics.plan(tmp_path), sink):
        wait_for(lambda: len(sink.hints) >= 2, WITHIN, "the first batches")
        emitted = time.time_ns() // 1_000_000
        topics.write(on, topics.heartbeats, codec.encode_record(Heartbeat("b", "a", emitted)))
        wait_for(lambda: sink.rows == 1, WITHIN, "the heartbeat")
    (seen,) = [hints.heartbeats[FLOW] for hints in sink.hints if hints.heartbeats]
    assert seen.timestamp_ms == emitted
    assert seen.latency_ms is not None
    assert 0 <= seen.latency_ms < WITHIN * 1000


def test_a_restart_goes_on_where_the_checkpoint_ends_and_a_lost_checkpoint_starts_over(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    plan = topics.plan(tmp_path)
    topics.create(topics.clusters.a, topics.syncs)
    topics.write_syncs("first")
    for expected in (["first"], ["second"]):
        sink = Noted()
        with running(spark, plan, sink):
            wait_for(lambda sink=sink: sink.rows >= 1, WITHIN, f"the topic {expected}")
            batches = len(sink.hints)
            wait_for(lambda sink=sink, n=batches: len(sink.hints) >= n + 2, WITHIN, "two more batches")
        assert sink.topics == expected
        topics.write_syncs("second")
    shutil.rmtree(plan.checkpoint)
    sink = Noted()
    with running(spark, plan, sink):
        wait_for(lambda: sink.rows == 3, WITHIN, "all records again")
    assert set(sink.topics) == {"first", "second"}


def test_a_topic_made_anew_does_not_end_the_query(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    on, sink = topics.clusters.a, Noted()
    topics.create(on, topics.syncs)
    topics.write_syncs("first", "first", "first")
    with running(spark, topics.plan(tmp_path), sink) as query:
        wait_for(lambda: sink.rows == 3, WITHIN, "the first topic's records")
        topics.delete(on, topics.syncs)
        batches = len(sink.hints)
        wait_for(lambda: len(sink.hints) >= batches + 2, WITHIN, "batches without the topic")
        topics.create(on, topics.syncs)
        wait_for(lambda: _is_at_start_of(query, topics.syncs), WITHIN, "the query to see that the topic is a new one")
        topics.write_syncs("second")
        wait_for(lambda: "second" in sink.topics, WITHIN, "the new topic's record")


def _is_at_start_of(query: StreamingQuery, topic: str) -> bool:
    progress = query.lastProgress
    ends = [source["endOffset"] for source in json.loads(progress.json)["sources"]] if progress else []
    return {topic: {"0": 0}} in ends


@pytest.mark.parametrize("busy", [0.0, 0.7], ids=["idle", "in the middle of a batch"])
def test_stopping_gently_lets_the_batch_end_and_leaves_no_error(
    spark: SparkSession, topics: Topics, tmp_path: Path, busy: float
) -> None:
    for turn in range(4):
        sink = Noted(busy)
        query = start(spark, topics.plan(tmp_path / str(turn)), sink)
        assert sink.inside.wait(WITHIN), "no batch began"
        sink.stopping = True
        stop_gently(query, WITHIN)
        assert trace_of(query) is None
        assert not query.isActive
        assert len(sink.hints) == sink.begun
        assert not sink.inside.is_set(), "the batch was cut off"


def test_batches_start_a_trigger_interval_apart(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    sink, interval = Noted(), 1.5
    with running(spark, topics.plan(tmp_path, interval), sink) as query:
        wait_for(lambda: len(sink.hints) >= 5, WITHIN, "five batches")
        starts = [_start_of(progress) for progress in query.recentProgress[1:]]
    # Spark begins a batch at a whole multiple of the interval since the epoch, or late after it.
    assert len(starts) >= 3
    assert starts[-1] - starts[0] > (len(starts) - 2) * interval, starts


def _start_of(progress: Any) -> float:
    return datetime.fromisoformat(progress["timestamp"].replace("Z", "+00:00")).timestamp()


def test_once_reads_what_there_is_with_the_clock_and_ends(
    spark: SparkSession, topics: Topics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = Noted()
    topics.create(topics.clusters.a, topics.syncs)
    topics.write_syncs("one", "two", "three")
    plan = topics.plan(tmp_path)
    monkeypatch.setattr(source, "MAX_OFFSETS", 2)
    query = start(spark, plan, sink, once=True)
    assert query.awaitTermination(WITHIN)
    assert trace_of(query) is None
    assert set(sink.topics) == {"one", "two", "three"}
    again = Noted()
    assert start(spark, plan, again, once=True).awaitTermination(WITHIN)
    assert (len(again.hints), again.rows) == (1, 0), "the clock alone makes one batch"


def test_a_cluster_that_does_not_answer_ends_the_query_with_its_reason(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    (nobody,) = free_ports(1)
    options = {
        "bootstrap.servers": f"127.0.0.1:{nobody}",
        "default.api.timeout.ms": "2000",
        "request.timeout.ms": "1000",
    }
    whole = topics.plan(tmp_path)
    silent = ClusterSource("a", options, whole.sources[0].topics)
    query = start(spark, replace(whole, sources=(silent, whole.sources[1])), Noted())
    wait_for(lambda: not query.isActive, WITHIN, "the query to give up")
    trace = trace_of(query)
    assert trace is not None
    assert "TimeoutException" in root_cause(trace)
    without = replace(whole, sources=tuple(one for one in whole.sources if one.alias != "a"))
    sink = Noted()
    with running(spark, without, sink):
        wait_for(lambda: len(sink.hints) >= 2, WITHIN, "batches without the cluster that is away")
