"""How many of MM2's records a second Spark's columns read on two cores (`streaming.decode`).

The records lie in Spark's memory before the clock runs and the rows go to its `noop` sink, so that neither Kafka nor a
disk is in the figure. A third of the records is of each kind. Prints one JSON document.
"""

from __future__ import annotations

import json
import statistics
import sys
import time

import typer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's own guides use

from streaming.decode import decode
from streaming.flow import Flow
from streaming.mm2.codec import encode_record
from streaming.mm2.internal_topic_names import TopicOn, TopicRole
from streaming.mm2.records import Checkpoint, Heartbeat, OffsetSync, RecordKind, TopicPartition
from streaming.source import role_of_topic

FLOW = Flow("a", "b")
ROLES = {
    TopicOn("b", "a.heartbeats"): TopicRole(RecordKind.HEARTBEAT, FLOW),
    TopicOn("b", "a.checkpoints.internal"): TopicRole(RecordKind.CHECKPOINT, FLOW),
    TopicOn("a", "mm2-offset-syncs.b.internal"): TopicRole(RecordKind.OFFSET_SYNC, FLOW),
}
DISTINCT = 3_000
"""So many different records are repeated until there are enough."""


def _samples() -> list[tuple[int, str, str, bytes, bytes]]:
    rows: list[tuple[int, str, str, bytes, bytes]] = []
    for number in range(DISTINCT // 3):
        topic = TopicPartition(f"orders.region-{number % 50}.v1", number % 12)
        remote = TopicPartition(f"a.{topic.topic}", topic.partition)
        offset = 10**9 + number
        records = (
            encode_record(Heartbeat("b", "a", 1_700_000_000_000 + number)),
            encode_record(Checkpoint(f"billing-{number % 40}", remote, offset, offset - 7, "")),
            encode_record(OffsetSync(topic, offset, offset - 7)),
        )
        rows += [(len(rows) + i, *on, *record) for i, (on, record) in enumerate(zip(ROLES, records, strict=True))]
    return rows


def records_in_memory(spark: SparkSession, count: int, partitions: int) -> DataFrame:
    """`count` encoded records with the columns that are decoded, cached."""
    columns = "number long, cluster string, topic string, key binary, value binary"
    samples = F.broadcast(spark.createDataFrame(_samples(), columns))
    numbers = spark.range(count, numPartitions=partitions).select((F.col("id") % DISTINCT).alias("number"))
    frame = numbers.join(samples, "number").drop("number").withColumn("timestamp", F.current_timestamp())
    frame = frame.withColumn("offset", F.col("timestamp").cast("long")).cache()
    frame.count()
    return frame


def seconds_to_decode(frame: DataFrame) -> float:
    """Wall-clock seconds for one pass."""
    rows = decode(frame.withColumn("role", role_of_topic({on.topic: role for on, role in ROLES.items()})))
    started = time.perf_counter()
    rows.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - started


def main(records: int = 3_000_000, runs: int = 7, cores: int = 2) -> None:
    """Prints `{"records_per_second": …}`: the median of the runs."""
    spark = SparkSession.builder.master(f"local[{cores}]").config("spark.ui.enabled", "false").getOrCreate()
    frame = records_in_memory(spark, records, cores)
    seconds_to_decode(frame)
    rates = [records / seconds_to_decode(frame) for _ in range(runs)]
    spark.stop()
    found = {"records": records, "cores": cores, "runs": runs, "records_per_second": round(statistics.median(rates))}
    sys.stdout.write(json.dumps({**found, "slowest": round(min(rates)), "fastest": round(max(rates))}, indent=2) + "\n")


if __name__ == "__main__":
    typer.run(main)
