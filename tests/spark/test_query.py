"""The query without any cluster, and the sum of a batch."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from app.job.flow_passes import FlowPasses
from app.job.running_job import Batch
from app.local.waiting import wait_for
from sinks.engine.metrics import Metrics
from streaming.decode import DECODED_SCHEMA
from streaming.flow import Flow
from streaming.hints import CheckpointSeen, Hints
from streaming.query import collect_hints, start, stop_gently, summarize, trace_of
from streaming.query_plan import QueryPlan
from streaming.query_restarts import root_cause

WITHIN = 180.0
AB = Flow("a", "b")


def clock_alone(folder: Path, trigger_interval: float = 0.3) -> QueryPlan:
    return QueryPlan("b", (), trigger_interval, folder)


def batch_of(spark: SparkSession, rows: int) -> DataFrame:
    def row(number: int) -> tuple[object, ...]:
        at = ("b", "a.checkpoints.internal", "checkpoint", "a", "b", False)
        return (*at, f"g{number % 3}", "a.t", number, 1, 2, None, "", 5, 40 + number, None)

    beat = ("b", "a.heartbeats", "heartbeat", "a", "b", True, None, None, None, None, None, 70, None, 90, 7, None)
    older = (*beat[:11], 60, None, 80, 6, None)
    broken = ("b", "a.heartbeats", "heartbeat", "a", "b", True, *(None,) * 7, 80, 8, "tombstone")
    return spark.createDataFrame([beat, older, broken, *map(row, range(rows))], DECODED_SCHEMA)


def test_a_batch_is_summed_up_without_a_shuffle_in_one_partition(spark: SparkSession) -> None:
    summary = summarize(batch_of(spark, 50).repartition(4).cache())
    assert "Exchange" not in summary._jdf.queryExecution().executedPlan().toString().split("InMemoryRelation")[0]
    assert summary.rdd.getNumPartitions() == 1


def test_the_hints_of_a_batch_are_what_its_rows_say(spark: SparkSession) -> None:
    hints = collect_hints(batch_of(spark, 50))
    expected = [CheckpointSeen(40 + number, f"g{number % 3}", "a.t", number, 1, 2) for number in range(50)]
    assert hints.checkpoints == {AB: expected}
    assert (hints.heartbeats[AB].timestamp_ms, hints.heartbeats[AB].latency_ms) == (70, 20)
    assert hints.undecodable == {("a.heartbeats", "tombstone"): 1}
    assert hints.rows == 53


def test_the_clock_makes_a_batch_at_every_trigger_with_no_row(spark: SparkSession, tmp_path: Path) -> None:
    seen: list[Hints] = []
    query = start(spark, clock_alone(tmp_path), lambda batch, _: seen.append(collect_hints(batch)))
    wait_for(lambda: len(seen) >= 4, WITHIN, "four batches of the clock")
    assert query.name == "lockstep-b"
    stop_gently(query, WITHIN)
    assert trace_of(query) is None
    assert seen == [Hints()] * len(seen)


def test_once_is_one_batch_of_the_clock_even_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    numbers: list[int] = []
    for _ in range(2):
        query = start(spark, clock_alone(tmp_path), lambda _, number: numbers.append(number), once=True)
        assert query.awaitTermination(WITHIN)
        assert trace_of(query) is None
    assert numbers == [0, 1]


def test_jobs_of_a_batch_carry_its_description(spark: SparkSession, tmp_path: Path) -> None:
    store = spark.sparkContext._jsc.sc().statusStore()

    def a_job(batch: DataFrame, _: int) -> None:
        batch.sparkSession.range(3).collect()

    query = start(spark, clock_alone(tmp_path), a_job, once=True)
    assert query.awaitTermination(WITHIN)
    expected = "Some(lockstep-b, batch 0: what MM2 says of no cluster that answers)"

    def is_described() -> bool:
        jobs = store.jobsList(None)
        return expected in {jobs.apply(i).description().toString() for i in range(jobs.size())}

    # Spark tells its store of jobs in a thread of its own.
    wait_for(is_described, WITHIN, "the job with its description")


def test_the_work_of_a_batch_is_told_with_the_number_of_that_batch(spark: SparkSession, tmp_path: Path) -> None:
    metrics = Metrics("1")
    passes = FlowPasses(metrics, 0.0)
    batch = Batch(passes, metrics, 0.01)
    query = start(spark, replace(clock_alone(tmp_path), target="told"), batch)
    store = spark.sparkContext._jsc.sc().statusStore()

    def described() -> list[str]:
        jobs = store.jobsList(None)
        found = [jobs.apply(i).description().toString() for i in range(jobs.size())]
        return sorted(text for text in found if "lockstep-told" in text)

    wait_for(lambda: len(described()) >= 2, WITHIN, "two batches")
    batch.stop()
    stop_gently(query, WITHIN)
    passes.close()
    first, second = described()[:2]
    assert "batch 0: what MM2 says of no cluster that answers; before it: 0 passes" in first
    assert "batch 1: what MM2 says of no cluster that answers; batch 0 had: 0 passes" in second


def test_a_sink_that_raises_ends_the_query_and_says_why(spark: SparkSession, tmp_path: Path) -> None:
    def broken(batch: DataFrame, number: int) -> None:
        raise RuntimeError("the sink is broken")

    query = start(spark, clock_alone(tmp_path), broken)
    wait_for(lambda: not query.isActive, WITHIN, "the query to end")
    assert root_cause(trace_of(query) or "") == "RuntimeError: the sink is broken"


def test_stopping_waits_for_the_batch_that_runs(spark: SparkSession, tmp_path: Path) -> None:
    inside, go_on, left = threading.Event(), threading.Event(), threading.Event()

    def slow(batch: DataFrame, number: int) -> None:
        inside.set()
        assert go_on.wait(WITHIN)
        left.set()

    query = start(spark, clock_alone(tmp_path), slow)
    assert inside.wait(WITHIN)
    stopping = _in_a_thread(lambda: stop_gently(query, WITHIN))
    assert query.isActive
    go_on.set()
    stopping.join(WITHIN)
    assert left.is_set()
    assert not query.isActive
    assert trace_of(query) is None


def test_batch_that_does_not_end_in_time_is_broken_off_in_one_line(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    inside = threading.Event()

    def long(batch: DataFrame, number: int) -> None:
        inside.set()
        batch.sparkSession.range(1).selectExpr("java_method('java.lang.Thread', 'sleep', id + 5000)").collect()

    query = start(spark, clock_alone(tmp_path), long)
    assert inside.wait(WITHIN)
    stop_gently(query, 0.5)
    assert not query.isActive
    assert [record.getMessage() for record in caplog.records] == [
        "lockstep-b: the running batch did not end within 0.5 s, and is interrupted"
    ]


def _in_a_thread(call: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=call)
    thread.start()
    return thread
