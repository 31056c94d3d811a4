"""Records that never reached the target, as Parquet."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark_test import assert_pyspark_df_equal

from app.job.exported_records import EXPORT_SCHEMA, export_records
from sinks.kafka.ports.record_reader import Record, Stamp
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition

RECORDS = {
    TopicPartition("x", 1): [
        Record(7, 1_700_000_000_000, Stamp.CREATE, b"k", b"v"),
        Record(9, 1_700_000_000_001, Stamp.CREATE, None, None),
    ]
}


def test_every_record_is_exported_with_its_place_its_time_and_its_bytes(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "lost"
    export_records(RECORDS, folder)
    rows = [("x", 1, 7, 1_700_000_000_000, b"k", b"v"), ("x", 1, 9, 1_700_000_000_001, None, None)]
    wanted = spark.createDataFrame(rows, EXPORT_SCHEMA)
    exported = spark.read.parquet(str(folder))
    assert_pyspark_df_equal(exported, wanted, check_columns_in_order=True, order_by=["offset"])
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    assert (folder.stat().st_mode & 0o777, [path.name for path in tmp_path.iterdir()]) == (0o700, ["lost"])


def test_a_link_is_not_written_through(tmp_path: Path) -> None:
    link = tmp_path / "lost"
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LockstepError, match="exists already"):
        export_records(RECORDS, link)
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_that_is_there_is_not_written_into(tmp_path: Path) -> None:
    with pytest.raises(LockstepError, match="exists already"):
        export_records(RECORDS, tmp_path)
