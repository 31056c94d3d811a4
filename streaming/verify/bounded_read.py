"""Reading records of known offsets on two clusters, once and in bounded jobs: Spark's Kafka source as a batch."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's own guides use

from streaming.mm2.records import MAX_INT64
from streaming.source import SPARKS_OWN
from streaming.verify.rows import PartitionRead

READ_OPTIONS: Mapping[str, str] = {
    "includeHeaders": "true",
    "failOnDataLoss": "false",
    "kafka.fetch.max.wait.ms": "20",
    "kafka.max.poll.records": "10000",
    "kafka.max.partition.fetch.bytes": str(4 * 1024 * 1024),
    "kafka.default.api.timeout.ms": "30000",
    "kafkaConsumer.pollTimeoutMs": "60000",
}
"""What every read is made with; the cluster's own client properties win.

`failOnDataLoss`: retention may take records meanwhile; who reads compares the logs' starts again afterwards.
`max.poll.records`, `max.partition.fetch.bytes`: long reads of one partition after the other.
"""

BOUNDS = "topic string, partition int, id int, bounds array<bigint>"
"""Of a partition: where its cells begin, rising; filled up to a power of two."""


@dataclass(frozen=True, slots=True)
class SideRead:
    """How one cluster is read: Java client properties (perhaps secret), and MM2's `isolation.level`."""

    options: Mapping[str, str] = field(repr=False)
    isolation: str = "read_uncommitted"


def read_options(side: SideRead, partitions: Sequence[PartitionRead], tasks: int) -> dict[str, str]:
    """Returns the options of Spark's Kafka source for these partitions, split into so many tasks. None of them is
    empty."""
    client = {f"kafka.{name}": value for name, value in side.options.items() if name not in SPARKS_OWN}
    assigned: dict[str, list[int]] = {}
    starts: dict[str, dict[str, int]] = {}
    ends: dict[str, dict[str, int]] = {}
    for one in partitions:
        assigned.setdefault(one.topic, []).append(one.partition)
        starts.setdefault(one.topic, {})[str(one.partition)] = one.bounds[0]
        ends.setdefault(one.topic, {})[str(one.partition)] = one.bounds[-1]
    return {
        **READ_OPTIONS,
        **client,
        "kafka.isolation.level": side.isolation,
        "assign": json.dumps(assigned),
        "startingOffsets": json.dumps(starts),
        "endingOffsets": json.dumps(ends),
        "minPartitions": str(tasks),
    }


def read_cells(
    spark: SparkSession, side: SideRead, partitions: Sequence[PartitionRead], tasks: int
) -> DataFrame | None:
    """Returns the records of these partitions from Spark's Kafka source, with their cells (`with_cells`). None if all
    partitions are empty on this side."""
    filled = [one for one in partitions if one.bounds[-1] > one.bounds[0]]
    if not filled:
        return None
    frame = spark.read.format("kafka").options(**read_options(side, filled, tasks)).load()
    return with_cells(frame, filled)


def with_cells(frame: DataFrame, partitions: Sequence[PartitionRead]) -> DataFrame:
    """Adds `id`, `cell` and `base`, the offset at which the cell begins, to records of these partitions."""
    most = max(len(one.bounds) - 1 for one in partitions)
    size = 1 << max(0, most - 1).bit_length()
    rows = [
        (one.topic, one.partition, one.id, [*one.bounds[:-1], *[MAX_INT64] * (size - len(one.bounds) + 1)])
        for one in partitions
    ]
    bounds = frame.sparkSession.createDataFrame(rows, BOUNDS).select(_partition_hash(), "id", "bounds")
    return _with_cell(
        frame.withColumn("partition_hash", _partition_hash())
        .join(F.broadcast(bounds), "partition_hash")
        .drop("partition_hash"),
        size,
    )


def _partition_hash() -> Column:
    """Returns one number for a partition. A join by a number costs a fraction of a join by a text and a number."""
    return F.xxhash64("topic", "partition").alias("partition_hash")


def _with_cell(frame: DataFrame, size: int) -> DataFrame:
    """Add the number of the last cell that begins at or before the offset, by binary search with one column a step."""
    cell: Column = F.lit(0)
    frame = frame.withColumn("cell", cell)
    step = size // 2
    while step:
        reached = F.col("offset") >= F.get("bounds", F.col("cell") + step)
        frame = frame.withColumn("cell", F.col("cell") + F.when(reached, step).otherwise(0))
        step //= 2
    return frame.withColumn("base", F.get("bounds", F.col("cell")))
