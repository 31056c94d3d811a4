"""MM2 that was killed sends records again: what the target has already is not missing, whatever its last record is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sinks.failover.arrival import Arrival, arrivals
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
