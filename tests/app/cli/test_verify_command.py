"""What `lockstep verify` takes, and what it says at the end."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from app.cli.lazy_commands import app
from app.cli.verify_command import summary
from sinks.verify.partition_verdicts import FlowReport, PartitionReport, PartitionVerdict, VerifyLevel
from sinks.verify.what_to_compare import ComparisonScope
from streaming.flow import Flow
from streaming.mm2.records import TopicPartition

NOON_MS = 1_700_049_600_000


def report(records: int, level: VerifyLevel = VerifyLevel.RECORDS, pending: int = 0) -> FlowReport:
    """Of one partition without differences."""
    verdict = PartitionVerdict.CONSISTENT if level is VerifyLevel.COUNTS else PartitionVerdict.VERIFIED
    one = PartitionReport(TopicPartition("x", 0), "a.x", verdict, records=records, pending=pending)
    return FlowReport(Flow("a", "b"), level, [one], 1.0)


def test_a_comparison_of_a_time_without_records_says_that_nothing_was_compared() -> None:
    said = summary(report(0), ComparisonScope(since_ms=NOON_MS))
    assert said == "nothing was compared: no record of a is from 2023-11-15T12:00:00.000Z or later"


def test_a_comparison_without_records_says_that_nothing_was_compared() -> None:
    assert summary(report(0), ComparisonScope(last=5)) == "nothing was compared: the chosen partitions have no record"


def test_records_that_are_still_to_be_copied_are_no_comparison() -> None:
    assert summary(report(0, pending=2), ComparisonScope()) == "nothing was compared: 2 records are not copied yet"


def test_what_was_compared_is_counted() -> None:
    assert summary(report(7), ComparisonScope(since_ms=NOON_MS)) == "1 VERIFIED; 7 records compared in 1.0 s"
    assert summary(report(0, VerifyLevel.COUNTS), ComparisonScope()) == "1 CONSISTENT; offsets compared in 1.0 s"


@pytest.mark.parametrize("given", ["1h", "15m", "-1", "0", "many"])
def test_a_last_that_is_no_number_of_offsets_leads_to_since(given: str) -> None:
    said = CliRunner().invoke(app, ["verify", "--last", given, "--config", "nowhere"])
    assert said.exit_code == 2
    assert f"{given}: a number of offsets, 1 or more. For a time write --since, as in --since 1h" in said.stderr
