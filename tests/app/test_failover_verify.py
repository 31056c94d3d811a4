"""What `--verify` makes of a comparison: which differences stop a cutover."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from app.failover_session import NotVerified, verdict_line
from sinks.verify.partition_verdicts import Difference, FlowReport, PartitionReport, PartitionVerdict, VerifyLevel
from streaming.flow import Flow
from streaming.mm2.records import TopicPartition


def report(verdict: PartitionVerdict, differences: Mapping[Difference, int], reason: str | None = None) -> FlowReport:
    sound = PartitionReport(TopicPartition("sound", 0), "a.sound", PartitionVerdict.VERIFIED, records=5)
    other = PartitionReport(TopicPartition("x", 3), "a.x", verdict, reason, records=10, differences=differences)
    return FlowReport(Flow("a", "b"), VerifyLevel.RECORDS, [sound, other])


def test_records_that_are_there_twice_stop_nothing_and_are_counted() -> None:
    said = verdict_line(report(PartitionVerdict.DIFFERENT, {Difference.DUPLICATE: 7, Difference.UNVERIFIABLE: 1}))
    assert "15 records of 2 partitions" in said
    assert "7 are on the target twice" in said


@pytest.mark.parametrize("kind", [Difference.MISSING, Difference.CHANGED, Difference.REORDERED, Difference.EXTRA])
def test_any_other_difference_stops_it_beside_duplicates_too(kind: Difference) -> None:
    with pytest.raises(NotVerified, match=f"x-3 .*2 {kind}"):
        verdict_line(report(PartitionVerdict.DIFFERENT, {Difference.DUPLICATE: 7, kind: 2}))


@pytest.mark.parametrize("verdict", [PartitionVerdict.UNVERIFIABLE, PartitionVerdict.NOT_MIRRORED])
def test_what_could_not_be_compared_stops_it(verdict: PartitionVerdict) -> None:
    with pytest.raises(NotVerified, match=f"x-3 {verdict}"):
        verdict_line(report(verdict, {}, "why"))


def test_windows_with_other_records_that_nobody_looked_at_stop_it() -> None:
    with pytest.raises(NotVerified):
        verdict_line(report(PartitionVerdict.DIFFERENT, {Difference.DUPLICATE: 7}, "1 windows have other records"))


def test_a_record_that_is_still_to_be_copied_stops_it_for_all_have_been_waited_for() -> None:
    sound = report(PartitionVerdict.VERIFIED, {})
    late = replace(sound.partitions[1], pending=3)
    with pytest.raises(NotVerified, match="x-3 3 not on the target"):
        verdict_line(replace(sound, partitions=[sound.partitions[0], late]))


def test_a_comparison_without_a_difference_says_how_much_was_compared() -> None:
    assert "none is missing" in verdict_line(report(PartitionVerdict.VERIFIED, {}))
