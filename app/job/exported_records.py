"""Records as Parquet, by Spark: for those that never reached the target of a failover."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.errors import PySparkException

from app.job.spark_session import session
from sinks.kafka.ports.record_reader import Record
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition

SCHEMA = "topic string, partition int, offset bigint, timestamp_ms bigint, key binary, value binary"


def export_records(records: Mapping[TopicPartition, Sequence[Record]], folder: Path) -> None:
    """Writes a new folder of Parquet files; headers are not in it. Raises LockstepError where there is one already."""
    if folder.exists():
        raise LockstepError(f"--export {folder}: it exists already; name a new folder")
    rows = [
        (where.topic, where.partition, one.offset, one.timestamp, _bytes(one.key), _bytes(one.value))
        for where, of_one in sorted(records.items())
        for one in of_one
    ]
    spark = session("lockstep-failback")
    try:
        spark.createDataFrame(rows, SCHEMA).coalesce(1).write.parquet(str(folder.resolve()))
    except PySparkException as error:
        raise LockstepError(f"--export {folder}: {type(error).__name__}") from error


def _bytes(data: bytes | None) -> bytearray | None:
    return None if data is None else bytearray(data)
