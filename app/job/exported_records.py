"""Exports records to Parquet with Spark: those that never reached the target of a failover."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException

from app.private_files import FOLDER_FOR_OWNER, FOR_OWNER, unfinished_path
from app.spark.spark_session import session
from sinks.kafka.ports.record_reader import Record
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition

EXPORT_SCHEMA = "topic string, partition int, offset bigint, timestamp_ms bigint, key binary, value binary"


def export_records(records: Mapping[TopicPartition, Sequence[Record]], folder: Path) -> None:
    """Writes the records to a new folder of Parquet files, whole or not at all, readable by its owner alone. Leaves out
    headers.

    Raises LockstepError if the name exists already, even as a link.
    """
    if os.path.lexists(folder):
        raise LockstepError(f"--export {folder}: it exists already; name a new folder")
    rows = [
        (where.topic, where.partition, one.offset, one.timestamp, _bytes(one.key), _bytes(one.value))
        for where, of_one in sorted(records.items())
        for one in of_one
    ]
    part = unfinished_path(folder.absolute())
    try:
        part.mkdir(FOLDER_FOR_OWNER)
        _write(rows, part / "records")
        # A folder takes no link's place, nor that of a folder that holds anything.
        (part / "records").rename(folder)
    except PySparkException as error:
        raise LockstepError(f"--export {folder}: {type(error).__name__}") from error
    except OSError as error:
        raise LockstepError(f"--export {folder}: {error.strerror}") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _write(rows: list[tuple[Any, ...]], folder: Path) -> None:
    spark = session("lockstep-failback")
    spark.createDataFrame(rows, EXPORT_SCHEMA).coalesce(1).write.parquet(str(folder))
    for file in folder.iterdir():
        file.chmod(FOR_OWNER)
    folder.chmod(FOLDER_FOR_OWNER)


def _bytes(data: bytes | None) -> bytearray | None:
    return None if data is None else bytearray(data)
