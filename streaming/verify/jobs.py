"""The Spark jobs of a comparison: both sides read, and plain rows brought to the driver."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's own guides use

from streaming.verify.bounded_read import SideRead, read_cells
from streaming.verify.last_values import key_row, key_sums, last_of_each
from streaming.verify.record_digests import digest_cells, field_digests
from streaming.verify.record_pairs import by_content, first_of_each, identified, run_sums, runs, unequal
from streaming.verify.rows import (
    SOURCE,
    TARGET,
    ContentRow,
    DigestRow,
    KeyRow,
    KeySums,
    PairSums,
    PartitionRead,
    RecordRows,
    RunRow,
    SoughtRecord,
    Surplus,
)

Session = SparkSession
"""For those who hand one on and know nothing else of Spark."""

TASKS_PER_CORE = 4
"""A long partition is read by several tasks, so that no core waits for the last one."""

OFFSETS_A_TASK = 100_000
"""What is shorter is not split: a task costs as much as reading some ten thousand records."""

SOUGHT = "id int, key_digest bigint, value_digest bigint, headers_digest bigint, wanted_ms bigint"


def own_session(spark: SparkSession) -> SparkSession:
    """Another session of the same Spark, whose settings are nobody else's."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    return session


@dataclass(frozen=True)
class SparkJobs:
    """`sinks.verify.record_jobs.RecordJobs` on Spark. `spark`: a session of its own. `source`, `target`: how they are
    read."""

    spark: SparkSession
    source: SideRead
    target: SideRead

    def cells(self, side: int, partitions: Sequence[PartitionRead]) -> DataFrame | None:
        """The records of these partitions of one side, as `read_cells` has them."""
        read = self.source if side == SOURCE else self.target
        return read_cells(self.spark, read, partitions, self._tasks(partitions))

    def digests(self, source: Sequence[PartitionRead], target: Sequence[PartitionRead]) -> Iterator[DigestRow]:
        """A row for each cell and side that has records."""
        frames = [digest_cells(frame, side) for side, frame in self._both(source, target)]
        if not frames:
            return
        self._begin("digests of both sides", 1)
        # In one partition, so that both sides are read in one job, and none waits for the other.
        for row in reduce(DataFrame.unionByName, frames).coalesce(1).toLocalIterator():
            yield DigestRow(*row)

    def pairs(
        self, source: Sequence[PartitionRead], target: Sequence[PartitionRead], times: bool, most: int
    ) -> RecordRows:
        """Records of the even cells (0, 2, …) brought together."""
        frames = [
            identified(frame.where(F.col("cell") % 2 == 0), side, times) for side, frame in self._both(source, target)
        ]
        if not frames:
            return RecordRows([], [], [], [])
        self._begin("records of windows that differ", self._tasks([*source, *target]))
        contents = by_content(reduce(DataFrame.unionByName, frames)).persist()
        equal = runs(contents).persist()
        try:
            first = F.coalesce(F.get("upstreams", F.lit(0)), F.get("downstreams", F.lit(0)))
            digests = ("key_digest", "value_digest", "headers_digest", "ms", "appended")
            # Of both sides as many, so that there is what a changed record may have been.
            odd = first_of_each(unequal(contents), ["id", "cell", F.size("upstreams") > 0], first, most)
            rows = odd.select("id", "cell", "upstreams", "downstreams", *digests).collect()
            found = equal.select("id", "cell", "upstream", "downstream", "length", "last_ms")
            return RecordRows(
                [PairSums(*row) for row in run_sums(equal).collect()],
                _surplus(contents) if len(rows) == most else [],
                [ContentRow(*row) for row in rows],
                [RunRow(*row) for row in first_of_each(found, ["id", "cell"], "upstream", most).collect()],
            )
        finally:
            equal.unpersist()
            contents.unpersist()

    def find_on_source(
        self, partitions: Sequence[PartitionRead], wanted: Sequence[SoughtRecord]
    ) -> dict[SoughtRecord, int]:
        """The first offset in these partitions of each record that is there."""
        frame = self.cells(SOURCE, partitions)
        if frame is None or not wanted:
            return {}
        self._begin("records of the target that the source may have elsewhere", 1)
        digests = [column.alias(name) for name, column in field_digests().items()]
        rows = frame.select("id", "offset", F.unix_millis("timestamp").alias("ms"), *digests)
        sought = F.broadcast(self.spark.createDataFrame([tuple(one) for one in wanted], SOUGHT))
        names = ["id", "key_digest", "value_digest", "headers_digest"]
        same_time = F.col("wanted_ms").isNull() | (F.col("wanted_ms") == F.col("ms"))
        found = rows.join(sought, names).where(same_time).groupBy(*names, "wanted_ms").agg(F.min("offset"))
        return {SoughtRecord(*row[:5]): row[5] for row in found.collect()}

    def last_values(
        self, source: Sequence[PartitionRead], target: Sequence[PartitionRead], most: int
    ) -> tuple[list[KeySums], list[KeyRow]]:
        """The last record of each key, compared."""
        both = list(self._both(source, target))
        if not both:
            return [], []
        self._begin("the last record of each key of compacted topics", self._tasks([*source, *target]))
        keys = last_of_each(both).persist()
        try:
            offset = F.coalesce("ours.offset", "theirs.offset")
            odd = first_of_each(keys.where(~F.col("agrees")), ["id"], offset, most)
            return (
                [KeySums(*row) for row in key_sums(keys).collect()],
                [key_row(row) for row in odd.select("id", "ours", "theirs").collect()],
            )
        finally:
            keys.unpersist()

    def _both(
        self, source: Sequence[PartitionRead], target: Sequence[PartitionRead]
    ) -> Iterator[tuple[int, DataFrame]]:
        for side, partitions in ((SOURCE, source), (TARGET, target)):
            frame = self.cells(side, partitions)
            if frame is not None:
                yield side, frame

    def _tasks(self, partitions: Sequence[PartitionRead]) -> int:
        """Into how many reading them is split at least."""
        offsets = sum(one.bounds[-1] - one.bounds[0] for one in partitions)
        return max(1, min(TASKS_PER_CORE * self.spark.sparkContext.defaultParallelism, offsets // OFFSETS_A_TASK))

    def _begin(self, what: str, shuffled_into: int) -> None:
        """Says what the Spark UI calls the jobs that follow, and how many tasks come behind a shuffle."""
        self.spark.conf.set("spark.sql.shuffle.partitions", str(shuffled_into))
        self.spark.sparkContext.setJobDescription(f"lockstep verify: {what}")


def _surplus(contents: DataFrame) -> list[Surplus]:
    ours, theirs = F.size("upstreams"), F.size("downstreams")
    sums = unequal(contents).groupBy("id", "cell")
    found = sums.agg(
        F.sum(F.greatest(ours - theirs, F.lit(0))), F.sum(F.greatest(theirs - ours, F.lit(0))), F.count(F.lit(1))
    )
    return [Surplus(*row) for row in found.collect()]
