"""MM2 that was killed sends records again: what the target has already is not missing, whatever its last record is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinks.failover.record_matching import ReadLimits
from sinks.failover.uncopied_records import CLOCKS_DIFFER_MS, Arrival, arrivals
from sinks.kafka.ports.record_reader import Stamp
from streaming.mm2.records import TopicPartition
from tests.memory.memory_records import MemoryLog, MemoryRecords

HERE, THERE = TopicPartition("x", 0), TopicPartition("a.x", 0)


def seen(source: list[int], target: list[int], *, compacted: bool = False) -> Arrival:
    """Records with these numbers as key, value and timestamp."""
    logs = MemoryLog(), MemoryLog()
    for log, numbers in zip(logs, (source, target), strict=True):
        for number in numbers:
            log.append(b"%d" % number, b"%d" % number, 1000 + number)
    compacting = {"x"} if compacted else set[str]()
    return arrivals(
        MemoryRecords("a", {HERE: logs[0]}, compacting), MemoryRecords("b", {THERE: logs[1]}), {HERE: THERE}
    )[HERE]


@given(st.integers(1, 60), st.lists(st.tuples(st.integers(0, 59), st.integers(1, 30)), max_size=3))
def test_what_was_sent_again_changes_no_count(copied: int, again: list[tuple[int, int]]) -> None:
    target = list(range(copied))
    for start, length in again:
        target += range(min(start, copied - 1), min(start + length, copied))
    found = seen(list(range(60)), target).behind
    assert found is not None
    assert (found.records, found.exact) == (60 - copied, True)
    assert found.oldest == (1000 + copied if copied < 60 else None)


def test_of_equal_records_beside_each_other_none_is_taken_for_another() -> None:
    found = seen([1, 2, 2, 2], [1, 2]).behind
    assert found is not None
    assert found.records == 2


def test_of_a_compacted_topic_to_which_nothing_was_sent_again_the_count_stays_exact() -> None:
    found = seen([1, 2, 2, 2], [1, 2, 2], compacted=True).behind
    assert found is not None
    assert (found.records, found.exact) == (1, True)


def test_of_a_compacted_topic_the_count_is_at_most_so_many() -> None:
    found = seen(list(range(30)), [*range(25), *range(5, 10)], compacted=True).behind
    assert found is not None
    assert (found.records, found.exact) == (5, False)


@pytest.mark.parametrize("others", [0, 1, 16, 500])
def test_records_that_a_producer_sent_again_are_not_taken_for_those_that_were_copied(others: int) -> None:
    copied, again = list(range(20)), list(range(4, 20))
    found = seen([*copied, *range(100, 100 + others), *again], copied).behind
    assert found is not None
    assert (found.records, found.exact) == (others + 16, True)


def test_records_that_were_sent_again_and_copied_again_are_all_there() -> None:
    both = [*range(20), *range(100, 130), *range(4, 20)]
    found = seen(both, both).behind
    assert found is not None
    assert (found.records, found.exact) == (0, True)


def stamped(*, source: Stamp, target: Stamp, later_ms: int) -> Arrival:
    """Twenty records were copied; then come 500 others, and the twenty again, so much later."""
    here, there = MemoryLog(), MemoryLog()
    for number in range(20):
        here.append(b"%d" % number, b"", 1000 + number, source)
        there.append(b"%d" % number, b"", 1000 + number, target)
    for number in range(500):
        here.append(b"other", b"%d" % number, 1020 + number, source)
    for number in range(20):
        here.append(b"%d" % number, b"", 1020 + number + later_ms, source)
    return arrivals(MemoryRecords("a", {HERE: here}), MemoryRecords("b", {THERE: there}), {HERE: THERE})[HERE]


def test_where_the_source_sets_the_timestamps_the_copies_have_them() -> None:
    found = stamped(source=Stamp.APPEND, target=Stamp.CREATE, later_ms=1).behind
    assert found is not None
    assert (found.records, found.exact) == (520, True)


def test_where_the_target_sets_the_timestamps_a_record_that_came_later_is_no_original() -> None:
    found = stamped(source=Stamp.APPEND, target=Stamp.APPEND, later_ms=CLOCKS_DIFFER_MS + 1).behind
    assert found is not None
    assert (found.records, found.exact) == (520, False)


@pytest.mark.parametrize("at", [5, 2997], ids=["an early record is of the future", "one of the last is of the past"])
def test_timestamps_in_no_order_keep_no_count_from_being_exact(at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sinks.failover.uncopied_records.ARRIVAL_LIMITS", ReadLimits(2_500, 60.0))
    logs = MemoryLog(), MemoryLog()
    for log in logs:
        for number in range(3000):
            timestamp = 1_000_000 + number if number != at else 9_000_000 if at == 5 else 1
            log.append(b"%d" % number, b"", timestamp)
    (found,) = arrivals(
        MemoryRecords("a", {HERE: logs[0]}), MemoryRecords("b", {THERE: logs[1]}), {HERE: THERE}
    ).values()
    assert found.arrived
