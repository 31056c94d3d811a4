"""Records that wait to be copied, counted within bounds."""

from __future__ import annotations

import pytest

from sinks.failover.record_matching import ReadLimits
from sinks.failover.source_end_offsets import counted_ahead
from sinks.ledger.kept_end_offsets import KnownPosition
from streaming.mm2.records import TopicPartition
from tests.memory.memory_records import MemoryLog, MemoryRecords

X, Y = TopicPartition("x", 0), TopicPartition("y", 0)
ENDS = {X: 8, Y: 4}
AT = {X: KnownPosition(1, 7, 2), Y: KnownPosition(2, 2)}


def log(end: int, *markers: int, seen: int | None = None) -> MemoryLog:
    made = MemoryLog(seen=seen)
    for offset in range(end):
        if offset in markers:
            made.skip()
        else:
            made.append(b"", b"%d" % offset)
    return made


def test_only_records_are_counted_and_only_up_to_the_end_that_was_seen() -> None:
    source = MemoryRecords("a", {X: log(9, 3, 5), Y: log(4)})
    assert counted_ahead(source, AT, ENDS) == {X: (8, 7, 2 + 5), Y: (4, 2, 2)}


@pytest.mark.parametrize(("most", "counted"), [(1, set()), (2, {Y}), (8, {Y}), (9, {X, Y})])
def test_the_shortest_stretches_come_first_and_no_more_is_read_than_is_allowed(
    most: int, counted: set[TopicPartition]
) -> None:
    source = MemoryRecords("a", {X: log(9), Y: log(4)})
    assert counted_ahead(source, AT, ENDS, ReadLimits(most, 1.0)).keys() == counted
    # Each stretch ends with a record that is read and not counted.
    assert source.read <= most + len(counted)


def test_what_lies_behind_an_open_transaction_is_not_counted_yet() -> None:
    source = MemoryRecords("a", {X: log(9, 3, seen=5), Y: log(4, seen=1)})
    assert counted_ahead(source, AT, ENDS) == {X: (5, 7, 2 + 3), Y: (2, 2, 0)}


def test_a_log_that_cannot_be_read_stays_as_it_was() -> None:
    assert counted_ahead(MemoryRecords("a", {Y: log(4)}), AT, ENDS).keys() == {Y}


def test_what_compaction_or_retention_may_have_taken_is_not_counted_for_it_may_have_been_copied() -> None:
    source = MemoryRecords("a", {X: log(9).cut(2), Y: log(4)}, {"y"})
    assert counted_ahead(source, AT, ENDS) == {}
