"""The same two hundred mixes of faults through Spark: its columns and jobs find what the rules are told to find."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's own guides use

from sinks.verify.partition_verdicts import PartitionVerdict, VerifyLevel
from sinks.verify.record_checks import compare_records, last_records
from streaming.verify.jobs import SideRead, SparkJobs, own_session, with_cells, with_digests
from streaming.verify.rows import SOURCE, PartitionRead
from tests.sinks.verify.compacted_log import compacted_log
from tests.sinks.verify.mirrored_log import MirroredLog, Record, mixes, named

pytestmark = [pytest.mark.spark, pytest.mark.endurance]

SCHEMA = (
    "topic string, partition int, offset bigint, key binary, value binary, timestamp timestamp, timestampType int, "
    "headers array<struct<key: string, value: binary>>"
)


@dataclass(frozen=True)
class RecordedJobs(SparkJobs):
    """Reads two frames instead of two clusters."""

    ours: DataFrame
    theirs: DataFrame

    def cells(self, side: int, partitions: Sequence[PartitionRead]) -> DataFrame | None:
        filled = [one for one in partitions if one.bounds[-1] > one.bounds[0]]
        if not filled:
            return None
        rows = [(one.id, one.bounds[0], one.bounds[-1]) for one in filled]
        ends = self.spark.createDataFrame(rows, "id int, first long, behind long")
        inside = (F.col("offset") >= F.col("first")) & (F.col("offset") < F.col("behind"))
        read = with_cells(self.ours if side == SOURCE else self.theirs, filled)
        return read.join(F.broadcast(ends), "id").where(inside)


def row(topic: str, record: Record) -> tuple[Any, ...]:
    at = datetime.fromtimestamp(record.ms / 1000, tz=timezone.utc)
    return (topic, 0, record.offset, record.key, record.value, at, int(record.appended), record.headers)


def jobs_on(spark: SparkSession, logs: Sequence[MirroredLog]) -> RecordedJobs:
    ours = [row(f"t{log.number}", record) for log in logs for record in log.source]
    theirs = [row(f"a.t{log.number}", record) for log in logs for record in log.target]
    return jobs_of(spark, ours, theirs)


def jobs_of(spark: SparkSession, ours: list[tuple[Any, ...]], theirs: list[tuple[Any, ...]]) -> RecordedJobs:
    session = own_session(spark)
    frames = [session.createDataFrame(rows, SCHEMA).coalesce(1).cache() for rows in (ours, theirs)]
    return RecordedJobs(session, SideRead({}), SideRead({}), *frames)


def test_every_fault_of_every_mix_is_found_under_its_name_and_offset(spark: SparkSession) -> None:
    logs = mixes(13)
    jobs = jobs_on(spark, logs)
    plans = [log.plan(least=(1, 5, 10_000)[log.number % 3], cell=(7, 1_000_000)[log.number % 2]) for log in logs]
    reports = compare_records(plans, VerifyLevel.RECORDS, lambda: jobs)
    for log, report in zip(logs, reports, strict=True):
        assert report.verdict is log.verdict, (log.number, report)
        assert named(report.findings, log) == log.expected, (log.number, report)
        assert report.pending == log.pending, (log.number, report)


def test_of_few_rows_that_come_no_fault_of_a_mix_is_called_whole(spark: SparkSession) -> None:
    logs = mixes(13)
    jobs = jobs_on(spark, logs)
    plans = [log.plan(least=10_000, cell=1_000_000) for log in logs]
    reports = compare_records(plans, VerifyLevel.RECORDS, lambda: jobs, 300)
    for log, report in zip(logs, reports, strict=True):
        if {name for name, _ in log.found} - {"DUPLICATE"}:
            assert not report.is_whole, (log.number, report)
        if report.verdict is PartitionVerdict.VERIFIED:
            assert report.pending == log.pending, (log.number, report)


def test_lost_values_and_deletions_of_compacted_topics_are_found_wherever_the_comparison_begins(
    spark: SparkSession,
) -> None:
    dice = random.Random(13)
    logs = [compacted_log(number, dice) for number in range(60)]
    jobs = jobs_of(
        spark,
        [row(f"c{log.number}", record) for log in logs for record in log.source],
        [row(f"a.c{log.number}", record) for log in logs for record in log.target],
    )
    plans = [log.plan() for log in logs]
    reports = last_records(jobs, plans, 1000)
    assert 10 < sum(log.differs for log in logs) < 50
    for log, report in zip(logs, reports, strict=True):
        assert report.verdict is (PartitionVerdict.DIFFERENT if log.differs else PartitionVerdict.VERIFIED), (
            log,
            report,
        )


def test_records_that_differ_anywhere_have_other_digests(spark: SparkSession) -> None:
    none, empty = None, b""
    shapes: list[tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...] | None]] = [
        *((key, value, None) for key in (none, empty, b"a", b"ab") for value in (none, empty, b"a", b"b")),
        (b"a", b"b", (("a", none),)),
        (b"a", b"b", (("a", empty),)),
        (b"a", b"b", (("a", none), ("b", none))),
        (b"a", b"b", (("a", b"b"),)),
        (b"a", b"b", (("b", b"a"),)),
        (b"a", b"b", (("a", none), ("b", b"c"))),
        (b"a", b"b", (("a", b"b"), ("c", none))),
        (b"a", b"b", (("a", b"1"), ("b", b"2"))),
        (b"a", b"b", (("b", b"2"), ("a", b"1"))),
    ]
    rows = [row("t", Record(at, *shape, 0)) for at, shape in enumerate(shapes)]
    digests = with_digests(spark.createDataFrame(rows, SCHEMA)).select("content", "mixed").collect()
    for digest in zip(*digests, strict=True):
        assert len(set(digest)) == len(shapes)
