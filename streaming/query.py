"""Starts and stops the streaming query of one target cluster, and sums up its batches."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's own guides use
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import LongType

from streaming.decode import decode
from streaming.errors import LockstepError
from streaming.hints import NUMBERS, Hints, Summary, hints_of
from streaming.query_plan import QueryPlan
from streaming.source import read_all

log = logging.getLogger(__name__)

Sink = Callable[[DataFrame, int], None]
"""A function for `foreachBatch`: the decoded rows of a micro-batch (`decode.DECODED_SCHEMA`) and its number."""

STOP_WITHIN = 60.0
"""Seconds that a running batch may take to end when the query is stopped."""

_POLL_SECONDS = 0.01


def start(spark: SparkSession, plan: QueryPlan, sink: Sink, once: bool = False) -> StreamingQuery:
    """Start the query. With `once` it reads what there is now, in one or more batches, and ends.

    While the sink runs, Spark's job description is the batch's. A job may add to it.
    """

    def described(batch: DataFrame, number: int) -> None:
        batch.sparkSession.sparkContext.setJobDescription(plan.description(number))
        sink(batch, number)

    writer = (
        decode(read_all(spark, plan))
        .writeStream.queryName(plan.name)
        .option("checkpointLocation", str(plan.checkpoint))
        .foreachBatch(described)
    )
    if once:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{round(plan.trigger_interval * 1000)} milliseconds").start()


def describe_jobs(batch: DataFrame, more: str) -> None:
    """Add `more` to the description that Spark's UI shows for the batch's further jobs."""
    context = batch.sparkSession.sparkContext
    context.setJobDescription(f"{context.getLocalProperty('spark.job.description')}; {more}")


def summarize(batch: DataFrame) -> DataFrame:
    """Returns one row for all rows of a batch with the same content (`hints.Summary`), with their offsets.

    All rows are brought to one partition first. A batch is small, and one task without a shuffle costs less than any
    exchange between two.
    """
    tells = F.col("error").isNull() & F.col("subject_topic").isNotNull()
    # Plain numbers come over to Python far cheaper than rows do.
    numbers = F.array(*[F.col(name).cast(LongType()) for name in NUMBERS])
    name = F.coalesce("group", "subject_topic").alias("name")
    by: list[Column | str] = ["record", "source", "target", "replicated", "topic", name, "error"]
    return (
        batch.coalesce(1)
        .groupBy(*by)
        .agg(
            F.count("*").alias("rows"),
            F.max("timestamp_ms").alias("newest_ms"),
            F.max("appended_ms").alias("appended_ms"),
            F.flatten(F.collect_list(F.when(tells, numbers))).alias("numbers"),
            F.collect_list(F.when(tells & F.col("group").isNotNull(), F.col("subject_topic"))).alias("topics"),
        )
    )


def collect_hints(batch: DataFrame) -> Hints:
    """Returns the hints of a batch, by one Spark job of one task."""
    read_ms = time.time_ns() // 1_000_000
    return hints_of([Summary(*row) for row in summarize(batch).collect()], read_ms)


def trace_of(query: StreamingQuery) -> str | None:
    """Returns the stack trace of the query's failure with all causes; None while it runs or if it was stopped."""
    exception = query.exception()
    if exception is None:
        return None
    # `str` of the exception shows a plan and two frames; its cause has the full trace.
    cause = getattr(exception, "_cause", None)
    return str(getattr(cause, "_stackTrace", None) or exception)


def stop_gently(query: StreamingQuery, timeout: float) -> None:
    """Stop the query between two batches.

    Stopping interrupts Spark's stream thread. Inside `foreachBatch` that thread waits for Python, and Spark 4.0 ends
    the query with a StackOverflowError. It matches a regular expression against py4j's nested trace to find out whether
    the interruption was meant. So the sink must first refuse more work. The running batch then ends within moments, and
    this function waits for it, at most `timeout` seconds.
    """
    limit = time.monotonic() + timeout
    while query.isActive and query.status["isTriggerActive"] and time.monotonic() < limit:
        time.sleep(_POLL_SECONDS)
    if query.isActive and query.status["isTriggerActive"]:
        log.warning("%s: the running batch did not end within %g s, and is interrupted", query.name, timeout)
        with _unsaid():
            query.stop()
    else:
        query.stop()


@contextmanager
def _unsaid() -> Iterator[None]:
    """Keep py4j from logging a trace because its call was interrupted."""
    py4j = logging.getLogger("py4j.clientserver")
    before = py4j.level
    py4j.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        py4j.setLevel(before)


class QueryRefused(LockstepError):
    """Spark did not start a query. The message is the stack trace."""


class RunningQuery(Protocol):
    """A query that was started."""

    def is_active(self) -> bool:
        """Whether the query runs; False once it ended, for whatever reason."""

    def trace(self) -> str | None:
        """The stack trace of its failure; None while it runs or if it was stopped."""

    def stop(self, timeout: float) -> None:
        """Let the running batch end, for at most so many seconds, and stop."""


StartQuery = Callable[[QueryPlan, Sink, bool], RunningQuery]
"""Starts a query: `start_query` with a Spark session already given."""


def start_query(spark: SparkSession, plan: QueryPlan, sink: Sink, once: bool) -> SparkQuery:
    """Start a query as `start` does. Raises QueryRefused."""
    try:
        return SparkQuery(start(spark, plan, sink, once))
    except Exception as error:
        # Java's error arrives as an exception of py4j, which is not imported here.
        raise QueryRefused(str(error)) from error


class SparkQuery:
    """A `RunningQuery` of Spark's."""

    def __init__(self, query: StreamingQuery) -> None:
        self._query = query

    def is_active(self) -> bool:
        return self._query.isActive

    def trace(self) -> str | None:
        return trace_of(self._query)

    def stop(self, timeout: float) -> None:
        stop_gently(self._query, timeout)
