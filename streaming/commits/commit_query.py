"""The streaming query of one source cluster's `__consumer_offsets`: which groups committed what, as plain numbers.

It begins where the topic ends, and has no checkpoint: whoever listens reads all offsets once after it began.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from streaming.commits.commit_columns import decode_commits, last_commits
from streaming.commits.commit_record import COMMITS_TOPIC, GROUP_PREFIX, CommitBatch, Seen
from streaming.mm2.records import TopicPartition
from streaming.query import QueryRefused, RunningQuery, SparkQuery
from streaming.source import SOURCE_OPTIONS, SPARKS_OWN

MOST_OFFSETS = 1_000_000
"""Records of one batch; only the last of each group and partition comes to the driver."""

STOPS_WITHIN = 10
"""Seconds that Spark waits for the query's thread when it is stopped."""

TakeCommits = Callable[[CommitBatch], None]
"""Called with what each micro-batch brought, in the query's thread."""


@dataclass(frozen=True)
class CommitSource:
    """Where a query begins: `starts` has an offset for each partition of the topic.

    `options`: Java client properties of the cluster `alias`, perhaps secret. `trigger`: seconds between two batches.
    """

    alias: str
    options: Mapping[str, str] = field(repr=False)
    starts: Mapping[int, int]
    trigger: float

    @property
    def name(self) -> str:
        """What the Spark UI and the logs call the query."""
        return f"lockstep-commits-{self.alias}"

    def spark_options(self) -> dict[str, str]:
        """Of Spark's Kafka source.

        Committed transactions alone: an offset that is committed with one counts from its end, and one that is aborted
        never counts.
        """
        client = {f"kafka.{name}": value for name, value in self.options.items() if name not in SPARKS_OWN}
        starts = {str(number): offset for number, offset in sorted(self.starts.items())}
        return {
            **SOURCE_OPTIONS,
            **client,
            "kafka.isolation.level": "read_committed",
            "maxOffsetsPerTrigger": str(MOST_OFFSETS),
            "groupIdPrefix": GROUP_PREFIX,
            "assign": json.dumps({COMMITS_TOPIC: sorted(self.starts)}),
            "startingOffsets": json.dumps({COMMITS_TOPIC: starts}),
        }


def collect_commits(batch: DataFrame) -> CommitBatch:
    """What the records of a batch say, reduced on the executors, by one Spark job."""
    # A task for each partition of the topic would cost more than reading it.
    start = time.monotonic()
    few = batch.coalesce(max(1, batch.sparkSession.sparkContext.defaultParallelism))
    found = commit_batch(tuple(row) for row in last_commits(decode_commits(few)).collect())
    return replace(found, seconds=time.monotonic() - start)


def commit_batch(rows: Iterable[tuple[Any, ...]]) -> CommitBatch:
    """From rows of `last_commits`."""
    commits: dict[str, dict[TopicPartition, int | None]] = {}
    unread: set[str] = set()
    undecodable: dict[str, int] = {}
    count = 0
    for seen, group, topic, rows_of, numbers in rows:
        count += rows_of
        if seen == Seen.COMMIT:
            of_group = commits.setdefault(group, {})
            for partition, offset in zip(numbers[::2], numbers[1::2], strict=True):
                of_group[TopicPartition(topic, partition)] = None if offset < 0 else offset
        elif seen != Seen.OTHER:
            undecodable[seen] = undecodable.get(seen, 0) + rows_of
            if group is not None:
                unread.add(group)
    return CommitBatch(commits, frozenset(unread), undecodable, count)


class _CommitQuery(SparkQuery):
    """While its cluster is away, the connector's consumer may wait for it, for ever and with no interruption."""

    def stop(self, timeout: float) -> None:
        with suppress(Exception):  # Spark's TimeoutException; the thread that is left alone ends with the process
            super().stop(timeout)


class CommitQueries:
    """Starts such queries on a Spark session."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    @cached_property
    def _session(self) -> SparkSession:
        session = self._spark.newSession()
        # The connector's other way asks an Admin client for partitions, and leaves out those of Kafka's own topics.
        # This one asks with a consumer, which needs a group that it may READ.
        session.conf.set("spark.sql.streaming.kafka.useDeprecatedOffsetFetching", "true")
        session.conf.set("spark.sql.streaming.stopTimeout", f"{STOPS_WITHIN}s")
        return session

    def start(self, source: CommitSource, take_in: TakeCommits) -> RunningQuery:
        """Raises QueryRefused."""

        def described(batch: DataFrame, number: int) -> None:
            context = batch.sparkSession.sparkContext
            context.setJobDescription(f"{source.name}, batch {number}: what groups of {source.alias} committed")
            take_in(collect_commits(batch))

        try:
            frame = self._session.readStream.format("kafka").options(**source.spark_options()).load()
            writer = frame.writeStream.queryName(source.name).foreachBatch(described)
            return _CommitQuery(writer.trigger(processingTime=f"{round(source.trigger * 1000)} milliseconds").start())
        except Exception as error:
            # What Java raises is an exception of py4j's, which is not imported here.
            raise QueryRefused(str(error)) from error
