"""Records that differ, read once more and written as Parquet, both sides of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's own guides use

from streaming.verify.jobs import SparkJobs
from streaming.verify.rows import SOURCE, TARGET, DifferingRecord, PartitionRead

DIFFERENCE_COLUMNS = "id int, offset bigint, difference string, fields string"


def write_differing(
    jobs: SparkJobs, sides: Sequence[tuple[int, Sequence[PartitionRead], Sequence[DifferingRecord]]], folder: str
) -> None:
    """A row for each record that differs and side that has it. `sides`: source or target, what is read of it, and the
    records. Raises what Spark raises, also where the folder is there already. Who may read the files the folder around
    it says: Spark gives them the modes of any file."""
    frames = [frame for side, reads, found in sides if (frame := _rows(jobs, side, reads, found)) is not None]
    if frames:
        jobs.spark.sparkContext.setJobDescription("lockstep verify: records that differ")
        reduce(DataFrame.unionByName, frames).coalesce(1).write.mode("error").parquet(folder)


def _rows(
    jobs: SparkJobs, side: int, reads: Sequence[PartitionRead], found: Sequence[DifferingRecord]
) -> DataFrame | None:
    frame = jobs.cells(side, reads)
    if frame is None:
        return None
    named = F.broadcast(jobs.spark.createDataFrame([tuple(one) for one in found], DIFFERENCE_COLUMNS))
    content = ("partition", "offset", "timestamp", "key", "value", "headers")
    side_name = {SOURCE: "source", TARGET: "target"}[side]
    return frame.join(named, ["id", "offset"]).select(
        "difference", "fields", F.lit(side_name).alias("side"), "topic", *content
    )
