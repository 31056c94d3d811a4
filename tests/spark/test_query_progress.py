"""What the listener of Spark's queries hands to the metrics."""

from __future__ import annotations

import time
from pathlib import Path

from pyspark.sql import SparkSession

from app.job.running_job import listening
from app.local.waiting import wait_for
from streaming.query import start, stop_gently
from streaming.query_plan import QueryPlan

WITHIN = 180.0


class Told:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.runs: list[tuple[str, bool]] = []
        self.batches: list[tuple[str, int, int, float]] = []

    def query_runs(self, target: str, runs: bool) -> None:
        self.runs.append((target, runs))

    def query_batch(self, target: str, number: int, rows: int, seconds: float) -> None:
        self.batches.append((target, number, rows, seconds))


def test_each_batch_of_a_query_is_told_and_that_it_began_and_ended(spark: SparkSession, tmp_path: Path) -> None:
    told = Told()
    with listening(spark, told):
        query = start(spark, QueryPlan("b", (), 0.2, tmp_path), lambda batch, number: time.sleep(0.05))
        wait_for(lambda: len(told.batches) >= 3, WITHIN, "three batches told")
        assert told.runs == [("b", True)]
        stop_gently(query, WITHIN)
        wait_for(lambda: len(told.runs) == 2, WITHIN, "the end told")
    assert told.runs == [("b", True), ("b", False)]
    numbers = [number for _, number, _, _ in told.batches]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert {(target, rows) for target, _, rows, _ in told.batches} == {("b", 0)}
    assert all(0.05 <= seconds < WITHIN for *_, seconds in told.batches)


def test_queries_of_others_are_left_alone(spark: SparkSession) -> None:
    told = Told()
    with listening(spark, told):
        source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
        query = source.writeStream.queryName("other").foreachBatch(lambda batch, number: None).start()
        wait_for(lambda: query.lastProgress is not None, WITHIN, "a batch of the other query")
        stop_gently(query, WITHIN)
    assert (told.runs, told.batches) == ([], [])
