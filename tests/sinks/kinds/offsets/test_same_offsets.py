"""A copier that preserves offsets: a group keeps its offset, and only where the records prove it."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from sinks.kafka.ports.groups import LogRange
from sinks.kinds.offsets.same_offsets import CopiedEnds, Position, SameRecords, same_pairs, translate_same
from sinks.kinds.offsets.sync_history import Pair
from sinks.kinds.offsets.translation import Answer, LogEnds, Method, Unanswered
from sinks.ledger.kept_end_offsets import LatestSync
from streaming.mm2.records import TopicPartition
from tests.memory.memory_records import MemoryLog, MemoryRecords

X = TopicPartition("x", 0)
Case = tuple[MemoryLog, MemoryLog, int, int]


def log_of(*offsets: int, end: int | None = None) -> MemoryLog:
    """A log with records at these offsets. Each record says which one it is."""
    built = MemoryLog()
    for at in offsets:
        built.skip(at - built.end).append(b"k", b"%d" % at, timestamp=at)
    return built.skip(max(0, (end or built.end) - built.end))


def answered(source: MemoryLog, target: MemoryLog, offset: int) -> Answer | Unanswered:
    ends = LogEnds(LogRange(source.start, source.end), LogRange(target.start, target.end))
    same = SameRecords(
        *(MemoryRecords(alias, {X: log}, committed=False) for alias, log in (("a", source), ("b", target)))
    )
    at = Position(X, offset)
    return translate_same(offset, ends, same.proven([at], {X: X}, {X: ends}).get(at))


def test_group_keeps_its_offset() -> None:
    assert answered(log_of(0, 1, 2, 5, 6), log_of(0, 1, 2, 5, 6), 2) == Answer(2, 2, Method.SAME, 0)


def test_group_beyond_the_copy_goes_on_at_its_end_and_reads_the_rest_twice() -> None:
    assert answered(log_of(0, 1, 2, 3, 4), log_of(0, 1, 2), 5) == Answer(5, 3, Method.SAME, 2)


def test_group_between_markers_and_at_the_end_keeps_its_offset() -> None:
    source = log_of(0, 1, 2, end=60)
    assert answered(source, log_of(0, 1, 2, end=60), 40) == Answer(40, 40, Method.SAME, 0)
    assert answered(source, log_of(0, 1, 2, end=60), 60) == Answer(60, 60, Method.SAME, 0)


def test_copy_without_records_yet_is_read_from_its_start() -> None:
    assert answered(log_of(0, 1, 2), log_of(), 2) == Answer(2, 0, Method.SAME, 2)


def test_copy_of_which_retention_left_nothing_is_read_from_its_start() -> None:
    source, target = log_of(0, 1, 2, 3, 4, 5), log_of(0, 1, 2, 3).cut(4)
    assert answered(source, target, 3) == Answer(3, 4, Method.SAME, 0, skipped=1)
    assert answered(source, target, 6) == Answer(6, 4, Method.SAME, 2)


def test_no_offset_is_given_where_the_copy_has_other_offsets() -> None:
    dense = MemoryLog()
    for at in (0, 1, 5, 6, 7):
        dense.append(b"k", b"%d" % at, timestamp=at)
    assert answered(log_of(0, 1, 5, 6, 7), dense, 5) is Unanswered.OTHER_OFFSETS
    assert answered(log_of(0, 1, 2), log_of(0, 1, 2, 3), 1) is Unanswered.OTHER_OFFSETS


def test_partition_that_could_not_be_read_proves_nothing() -> None:
    class Slow(MemoryRecords):
        def scan(self, spans, seconds):  # type: ignore[no-untyped-def]
            return super().scan(spans, 0.0)

    log = log_of(0, 1, 2)
    ends = LogEnds(LogRange(0, 3), LogRange(0, 3))
    same = SameRecords(Slow("a", {X: log}), MemoryRecords("b", {X: log}))
    assert same.proven([Position(X, 1)], {X: X}, {X: ends}) == {}


@st.composite
def logs(draw: st.DrawFn) -> Case:
    """A source with gaps, a copy by any copier that keeps the order, its next record, and a group's offset."""
    source = MemoryLog()
    for gap in draw(st.lists(st.integers(0, 3), max_size=25)):
        source.skip(gap).append(None, b"%d" % source.end, timestamp=source.end)
    source.skip(draw(st.integers(0, 3)))
    target, at = MemoryLog(), 0
    for step in draw(st.lists(st.sampled_from(["copy", "copy", "copy", "gap", "again"]), max_size=40)):
        if step == "gap":
            target.skip()
        elif step == "again":
            at = max(0, at - 2)
        elif at < len(source.records):
            record, at = source.records[at], at + 1
            target.append(record.key, record.value, record.timestamp)
    return source, target, at, draw(st.integers(0, source.end))


@st.composite
def compacted(draw: st.DrawFn) -> tuple[MemoryLog, MemoryLog, int]:
    """A source, its copy with the same offsets as far as it came, and a group's offset. Both logs lost records that do
    not lie at their ends, the source also some at its start."""
    source, target = MemoryLog(), MemoryLog()
    for gap in draw(st.lists(st.integers(0, 3), min_size=1, max_size=25)):
        source.skip(gap).append(None, b"%d" % source.end, timestamp=source.end)
    for record in source.records[: draw(st.integers(1, 25))]:
        target.skip(record.offset - target.end).append(None, record.value, record.timestamp)
    ends = {source.end - 1, target.end - 1}
    for log in (source, target):
        log.lose(*draw(st.sets(st.integers(0, source.end))) - ends)
    source.cut(draw(st.integers(0, target.end - 1)))
    return source, target, draw(st.integers(0, source.end))


@given(logs(), st.sets(st.integers(0, 60)), st.integers(0, 60))
def test_no_copier_that_keeps_the_order_makes_a_group_skip_a_record(case: Case, lost: set[int], cut: int) -> None:
    source, target, at, offset = case
    target.cut(min(cut, target.end))
    # Compaction begins at the start, and takes no record before an older one of its key.
    newest = {record.value: record.offset for record in target.records if record.offset in lost}
    target.lose(*(one.offset for one in target.records if one.offset <= newest.get(one.value, -1)))
    answer = answered(source, target, offset)
    if isinstance(answer, Unanswered):
        return
    # It ends what it began to send again.
    for record in source.records[at:]:
        target.append(record.key, record.value, record.timestamp)
    last = {record.value: record.offset for record in target.records}
    unread = [record.value for record in source.records if record.offset >= offset]
    assert all(last[value] >= answer.downstream for value in unread if value in last)


@given(st.lists(st.integers(0, 3), max_size=25), st.integers(0, 100), st.integers(0, 100))
def test_copy_with_the_same_offsets_always_proves_them(gaps: list[int], copied: int, offset: int) -> None:
    source, target = MemoryLog(), MemoryLog()
    for gap in gaps:
        source.skip(gap).append(None, b"v", timestamp=source.end)
    for record in source.records[:copied]:
        target.skip(record.offset - target.end).append(None, b"v", record.timestamp)
    at = min(offset, source.end)
    there = min(at, target.end)
    assert answered(source, target, at) == Answer(at, there, Method.SAME, at - there)


def test_pairs_for_a_comparison_are_what_both_logs_have() -> None:
    assert same_pairs(LogRange(2, 9), LogRange(4, 7)) == [Pair(4, 4), Pair(7, 7)]
    assert same_pairs(LogRange(5, 9), LogRange(0, 3)) == [Pair(5, 5)]


def test_end_of_a_copy_is_how_far_it_was_copied() -> None:
    target = MemoryRecords("b", {X: log_of(0, 1, 2)})
    copied = CopiedEnds(target)
    assert copied.positions({X: X}) == {X: LatestSync(2, 2)}
    copied.note_source({X: 3}, 1000)
    assert copied.caught_up_ms == 1000
    copied.note_source({X: 5}, 2000)
    copied.positions({X: X})
    copied.note_source({X: 9}, 3000)
    assert copied.caught_up_ms == 1000
    target.logs[X].append(b"k", b"3").append(b"k", b"4")
    copied.positions({X: X})
    assert copied.caught_up_ms == 2000


def test_topic_that_was_deleted_does_not_hold_up_the_others() -> None:
    copied = CopiedEnds(MemoryRecords("b", {X: log_of(0)}))
    copied.positions({X: X})
    copied.note_source({X: 1, TopicPartition("gone", 0): 7}, 1000)
    copied.positions({X: X})
    assert copied.caught_up_ms == 1000


def test_no_offset_is_given_while_another_copier_sends_records_again() -> None:
    source, target = log_of(2, 3), MemoryLog()
    for at in (2, 3, 2):
        target.append(b"k", b"%d" % at, timestamp=at)
    assert answered(source, target, 2) is Unanswered.OTHER_OFFSETS


@given(compacted())
@example((log_of(0, 1, 4), log_of(0, 1, 2, 4), 3))
def test_compaction_on_either_side_leaves_no_group_without_an_offset(case: tuple[MemoryLog, MemoryLog, int]) -> None:
    source, target, offset = case
    answer = answered(source, target, offset)
    there = min(offset, target.end)
    assert isinstance(answer, Answer)
    behind = [one for one in target.records if answer.downstream <= one.offset < there]
    known = {one.offset for one in source.records}
    assert answer.downstream <= there
    assert not known & {one.offset for one in behind}


def test_group_whose_next_record_was_compacted_away_keeps_its_offset() -> None:
    whole = (0, 1, 2, 3, 4, 5)
    for source, target in ((whole, (0, 1, 4, 5)), ((0, 1, 4, 5), whole), ((0, 3, 5), (0, 2, 5))):
        assert answered(log_of(*source), log_of(*target), 2) == Answer(2, 2, Method.SAME, 0)


def test_logs_that_lost_nearly_all_records_still_prove_an_offset() -> None:
    source, target = log_of(0, 400_000, 900_000), log_of(0, 1, 700_000, 900_000)
    assert answered(source, target, 600_000) == Answer(600_000, 600_000, Method.SAME, 0)


def test_groups_of_one_partition_are_proven_apart() -> None:
    source, target = MemoryLog(), log_of(*range(300))
    for at in (*range(150), *range(200, 300)):
        source.skip(at - source.end).append(b"k", b"%d" % at, timestamp=at)
    target.lose(*range(100, 140))
    ends = LogEnds(LogRange(0, 300), LogRange(0, 300))
    same = SameRecords(
        *(MemoryRecords(alias, {X: log}, committed=False) for alias, log in (("a", source), ("b", target)))
    )
    asked = [Position(X, at) for at in (10, 120, 180, 290)]
    assert same.proven(asked, {X: X}, {X: ends}) == {at: at.offset for at in asked}


def test_an_unread_record_that_a_copier_put_further_to_the_left_is_not_skipped() -> None:
    source, target = log_of(*range(100, 121)), MemoryLog()
    target.skip(69)
    for offset in (100, 101):
        target.append(b"k", b"%d" % offset, offset)
    target.skip(102 - target.end)
    for offset in range(102, 121):
        target.append(b"k", b"%d" % offset, offset)
    assert not isinstance(answered(source.cut(100), target, 101), Answer)
