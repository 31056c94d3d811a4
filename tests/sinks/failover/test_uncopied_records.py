"""Which records are not on the target yet: exact where the last record is found, never too few."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinks.failover.record_matching import ReadLimits
from sinks.failover.uncopied_records import arrivals
from sinks.kafka.ports.record_reader import Stamp
from streaming.mm2.records import TopicPartition
from tests.memory.memory_records import MemoryLog, MemoryRecords

HERE, THERE = TopicPartition("x", 0), TopicPartition("a.x", 0)


def log_of(*numbers: int, stamp: Stamp = Stamp.CREATE, gap: int = 0) -> MemoryLog:
    """Records with these numbers as key, value and timestamp; `gap` markers behind each."""
    log = MemoryLog()
    for number in numbers:
        log.append(b"%d" % number, b"%d" % number, number, stamp)
        if gap:
            log.skip(gap)
    return log


def missing(source: MemoryLog, target: MemoryLog) -> tuple[int, int | None, bool]:
    """Records that are missing, the timestamp of the first, and whether that is certain."""
    readers = MemoryRecords("a", {HERE: source}), MemoryRecords("b", {THERE: target})
    (found,) = arrivals(*readers, {HERE: THERE}).values()
    assert found.behind is not None, found.problem
    return found.behind.records, found.behind.oldest, found.behind.exact


def test_what_comes_behind_the_last_copied_record_is_missing() -> None:
    assert missing(log_of(1, 2, 3, 4), log_of(1, 2)) == (2, 3, True)


def test_nothing_is_missing_where_the_last_records_are_the_same() -> None:
    assert missing(log_of(1, 2), log_of(1, 2)) == (0, None, True)


def test_nothing_is_missing_of_an_empty_partition_and_everything_where_nothing_was_copied() -> None:
    assert missing(MemoryLog(), MemoryLog()) == (0, None, True)
    assert missing(log_of(5, 6), MemoryLog()) == (2, 5, True)


def test_markers_of_transactions_are_no_records() -> None:
    assert missing(log_of(1, 2, 3, gap=40), log_of(1, 2)) == (1, 3, True)
    assert missing(log_of(1, gap=500), log_of(1)) == (0, None, True)


def test_a_lag_longer_than_what_is_read_at_first_is_counted_whole() -> None:
    assert missing(log_of(*range(1000)), log_of(*range(300))) == (700, 300, True)


def test_retention_on_the_source_leaves_nothing_to_be_missing() -> None:
    source = log_of(*range(20)).cut(20)
    assert missing(source, log_of(*range(20))) == (0, None, True)


def test_where_the_last_record_was_compacted_away_the_younger_ones_count_and_that_is_not_certain() -> None:
    assert missing(log_of(1, 2, 3, 4).lose(1), log_of(1, 2)) == (2, 3, False)


def test_timestamps_that_the_target_gave_do_not_count() -> None:
    target = log_of(1, 2)
    target.records = [record._replace(timestamp=9, stamp=Stamp.APPEND) for record in target.records]
    assert missing(log_of(1, 2, 3), target)[0] == 1


def test_behind_a_record_that_the_source_never_had_the_newest_common_record_counts() -> None:
    assert missing(log_of(1, 2), log_of(1, 9)) == (1, 2, False)


def test_nothing_is_known_where_the_source_has_no_record_behind_the_newest_common_one() -> None:
    readers = MemoryRecords("a", {HERE: log_of(1, 2)}), MemoryRecords("b", {THERE: log_of(1, 2, 9)})
    (found,) = arrivals(*readers, {HERE: THERE}).values()
    assert (found.behind, found.arrived) == (None, False)


def test_a_record_with_an_older_timestamp_that_lies_behind_a_compacted_one_counts() -> None:
    source, target = MemoryLog(), MemoryLog()
    for log in (source, target):
        log.append(b"a", b"A", 1).append(b"k1", b"X", 1000)
    source.append(b"k2", b"Y", 990).append(b"k1", b"X'", 1005)
    assert missing(source.lose(1), target) == (2, 990, False)
    assert missing(source.lose(0), target)[::2] == (2, False)


def test_offsets_behind_an_open_transaction_count_for_who_reads_committed_records() -> None:
    source, target = log_of(1, 2, 3, 4), log_of(1, 2)
    source.seen = 2
    assert missing(source, target) == (2, None, False)


def alike(count: int, *, apart: int = 0, stamp: Stamp = Stamp.CREATE, begin: int = 1000) -> MemoryLog:
    """Records that say all the same, so many ms `apart`."""
    log = MemoryLog()
    for number in range(count):
        log.append(b"k", b"tick", begin + number * apart, stamp)
    return log


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (alike(500, stamp=Stamp.APPEND), alike(20, stamp=Stamp.APPEND, begin=6000)),
        (alike(500), alike(20)),
        (alike(500), alike(1)),
        (log_of(*range(1000)), log_of(*range(480), stamp=Stamp.APPEND)),
        (log_of(*range(1000)), log_of(*[5] * 20, stamp=Stamp.APPEND)),
    ],
)
def test_where_records_are_alike_or_the_target_stamps_them_a_partition_that_lags_has_not_arrived(
    source: MemoryLog, target: MemoryLog
) -> None:
    readers = MemoryRecords("a", {HERE: source}), MemoryRecords("b", {THERE: target})
    (found,) = arrivals(*readers, {HERE: THERE}).values()
    assert not found.arrived
    assert found.behind is None or found.behind.records >= source.end - target.end


def test_records_that_are_alike_but_for_their_timestamps_are_told_apart() -> None:
    assert missing(alike(500, apart=1), alike(480, apart=1)) == (20, 1480, True)


def test_a_target_that_stamps_its_records_is_compared_by_what_they_say() -> None:
    target = log_of(*range(100))
    target.records = [record._replace(timestamp=10**6, stamp=Stamp.APPEND) for record in target.records]
    assert missing(log_of(*range(100)), target) == (0, None, True)
    assert missing(log_of(*range(1000)), target) == (900, 100, True)


def test_a_lag_beyond_what_is_read_is_at_most_what_the_offsets_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sinks.failover.uncopied_records.ARRIVAL_LIMITS", ReadLimits(50, 60.0))
    assert missing(log_of(*range(1000)), log_of(*range(300))) == (700, 300, False)


def test_where_the_target_stamps_its_records_and_lags_beyond_what_is_read_nobody_can_tell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sinks.failover.uncopied_records.ARRIVAL_LIMITS", ReadLimits(50, 60.0))
    readers = (
        MemoryRecords("a", {HERE: log_of(*range(1000))}),
        MemoryRecords("b", {THERE: log_of(*range(300), stamp=Stamp.APPEND)}),
    )
    (found,) = arrivals(*readers, {HERE: THERE}).values()
    assert (found.behind, found.arrived) == (None, False)


@pytest.mark.parametrize("records", [1, 100])
def test_a_partition_that_is_gone_is_a_problem_and_no_figure(records: int) -> None:
    readers = MemoryRecords("a", {HERE: log_of(*range(records))}), MemoryRecords("b")
    (found,) = arrivals(*readers, {HERE: THERE}).values()
    assert (found.behind, found.arrived) == (None, False)
    assert "on b" in (found.problem or "")


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=60),
    st.integers(0, 60),
    st.integers(0, 30),
    st.integers(0, 3),
)
def test_never_fewer_records_are_said_to_be_missing_than_are(
    records: list[tuple[int, int]], copied: int, sent_again: int, gap: int
) -> None:
    source, target, timestamp = MemoryLog(), MemoryLog(), 0
    for text, step in records:
        timestamp += step
        source.append(b"%d" % text, None, timestamp).skip(gap)
    copied = min(copied, len(records))
    order = [*range(copied), *range(max(0, copied - sent_again), copied)]
    for number in order:
        record = source.records[number]
        target.append(record.key, record.value, record.timestamp)
    found, _, exact = missing(source, target)
    real = len(records) - copied
    assert found >= real
    if exact and not sent_again and len(set(records)) == len(records) and all(step for _, step in records):
        assert found == real


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.integers(0, 40), st.sets(st.integers(0, 39)))
def test_no_clock_and_no_compaction_makes_the_count_too_small(
    timestamps: list[int], copied: int, compacted: set[int]
) -> None:
    source, target = MemoryLog(), MemoryLog()
    for number, timestamp in enumerate(timestamps):
        source.append(b"%d" % number, None, timestamp)
    for record in source.records[:copied]:
        target.append(record.key, record.value, record.timestamp)
    # The newest record of a log is never compacted away.
    source.lose(*(compacted - {len(timestamps) - 1}))
    real = sum(record.offset >= copied for record in source.records)
    (found,) = arrivals(MemoryRecords("a", {HERE: source}), MemoryRecords("b", {THERE: target}), {HERE: THERE}).values()
    assert found.problem or (found.behind and found.behind.records >= real)


def test_where_the_targets_retention_took_all_that_it_had_the_rest_is_an_upper_bound() -> None:
    assert missing(log_of(1, 2), log_of(1, 2).cut(2)) == (2, 1, False)
