"""Offsets alone: what came twice is seen, and nothing is called verified."""

from __future__ import annotations

from collections.abc import Sequence

from sinks.kafka.ports.groups import LogRange
from sinks.kinds.offsets.sync_history import History
from sinks.verify.partition_check import PartitionPlan
from sinks.verify.partition_report import counted
from sinks.verify.partition_verdicts import PartitionReport, PartitionVerdict
from sinks.verify.windows import cut
from streaming.mm2.records import TopicPartition


def report(syncs: Sequence[tuple[int, int]], source: int, target: int, markers: bool = False) -> PartitionReport:
    history = History(*syncs[0], 0)
    for position, sync in enumerate(syncs[1:], 1):
        history.take(*sync, position)
    logs = LogRange(0, source), LogRange(0, target)
    windows = cut(history.pairs(), history.restarts(), *logs, least=1)
    where, remote = TopicPartition("orders", 0), TopicPartition("a.orders", 0)
    return counted(PartitionPlan(where, remote, *logs, windows), markers)


def test_as_many_offsets_on_both_sides_are_consistent_and_what_is_behind_is_pending() -> None:
    found = report([(0, 0), (50, 50)], 100, 90)
    assert (found.verdict, found.through, found.pending) == (PartitionVerdict.CONSISTENT, 90, 10)


def test_holes_of_the_source_contradict_nothing() -> None:
    assert report([(0, 0), (50, 30)], 100, 80).verdict is PartitionVerdict.CONSISTENT


def test_more_offsets_on_the_target_than_on_the_source_are_a_difference() -> None:
    found = report([(0, 0), (30, 30), (50, 55), (90, 95)], 100, 105)
    assert found.verdict is PartitionVerdict.DIFFERENT
    assert "5 offsets more" in (found.reason or "")
    assert report([(0, 0), (50, 50)], 100, 101).verdict is PartitionVerdict.DIFFERENT


def test_so_they_are_not_where_mm2_writes_in_transactions_whose_markers_take_offsets() -> None:
    assert report([(0, 0), (50, 60)], 100, 110, markers=True).verdict is PartitionVerdict.CONSISTENT
