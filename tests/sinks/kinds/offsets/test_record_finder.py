"""Records are found again where they are, and nothing is answered that could skip one."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sinks.faults import ClusterUnreachable
from sinks.kafka.ports.record_reader import Ending, Span, Stamp
from sinks.kinds.offsets.record_finder import AT_FIRST, NARROW, OUT_OF_TIME, Budget, find
from sinks.kinds.offsets.record_search import Question, SearchResult
from streaming.mm2.records import MAX_INT64, TopicPartition
from tests.memory.memory_records import MemoryLog, MemoryRecords

HERE, THERE = TopicPartition("t", 0), TopicPartition("a.t", 0)
AMPLE = Budget(records=5000, seconds=60)


def numbered(*numbers: int, stamp: Stamp = Stamp.CREATE, late: int = 0) -> MemoryLog:
    """A record of each number, with a time that rises with it."""
    log = MemoryLog()
    for number in numbers:
        log.append(b"k%d" % (number % 3), b"%d" % number, 1000 + number + late, stamp)
    return log


def question(offset: int, low: int = 0, high: int | None = None, until: int | None = None) -> Question:
    return Question(HERE, offset, THERE, low, high, until)


def found(
    asked: Question,
    here: MemoryLog,
    there: MemoryLog,
    budget: Budget = AMPLE,
    compact: bool = False,
    compact_here: bool = False,
) -> SearchResult:
    source, target = MemoryRecords("a", {HERE: here}), MemoryRecords("b", {THERE: there})
    target.compacting = {THERE.topic} if compact else set()
    source.compacting = {HERE.topic} if compact_here else set()
    return find([asked], source, target, budget)[asked]


def test_record_is_found_at_its_first_copy_in_the_bracket() -> None:
    here, there = numbered(*range(9)), numbered(0, 1, 2, 3, 2, 3, 4)
    assert found(question(3), here, there) == SearchResult(3)
    assert found(question(3, low=4), here, there) == SearchResult(5)


def test_offset_without_a_record_asks_for_the_next_one() -> None:
    assert found(question(1), numbered(0).skip(4).append(b"k", b"x"), numbered(0).append(b"k", b"x")) == SearchResult(1)


def test_nothing_but_markers_left_is_told_with_how_far() -> None:
    answer = found(question(2), numbered(0, 1).skip(3), numbered(0, 1))
    assert (answer.offset, answer.markers_only) == (None, True)
    assert answer.nothing_before(5)
    assert not answer.nothing_before(6)


def test_log_that_lost_all_that_the_group_has_not_read_is_no_end() -> None:
    answer = found(question(1), numbered(0, 1, 2).cut(3), numbered(0, 1, 2))
    assert (answer.offset, answer.markers_only, answer.passing) == (None, False, False)


@pytest.mark.parametrize("until", [None, 3, 5])
def test_record_behind_those_that_retention_took_unread_is_no_answer(until: int | None) -> None:
    high = until if until == 3 else None
    answer = found(question(1, 0, high, until), numbered(*range(5)).cut(4), numbered(*range(5)))
    assert (answer.offset, answer.markers_only, answer.passing) == (None, False, False)
    assert "lost the records after the group's offset" in str(answer.reason)


def test_on_the_way_back_records_that_the_target_lost_unread_are_not_passed_on_the_source() -> None:
    source, target = numbered(*range(5)), numbered(*range(5)).cut(4)
    asked = Question(THERE, 1, HERE, 0, None, back=True)
    answers = find([asked], MemoryRecords("b", {THERE: target}), MemoryRecords("a", {HERE: source}), AMPLE)
    assert answers[asked].offset is None
    assert "a.t-0 lost the records after the group's offset" in str(answers[asked].reason)


def test_record_at_the_log_start_itself_is_found() -> None:
    assert found(question(4), numbered(*range(6)).cut(4), numbered(*range(6))) == SearchResult(4)


def test_record_behind_those_that_compaction_took_unread_is_no_answer() -> None:
    here, there = numbered(*range(6)).lose(1, 2), numbered(*range(6))
    answer = found(question(1), here, there, compact_here=True)
    assert (answer.offset, answer.passing) == (None, False)
    assert "compaction" in str(answer.reason)
    assert found(question(3), here, there, compact_here=True) == SearchResult(3)


def test_nothing_left_of_a_compacted_log_is_no_end() -> None:
    here, there = numbered(*range(4)).lose(2, 3), numbered(*range(4))
    answer = found(question(2), here, there, compact_here=True)
    assert (answer.offset, answer.markers_only) == (None, False)


def test_open_transaction_is_no_end() -> None:
    here = numbered(0, 1, 2, 3)
    here.seen = 2
    answer = found(question(2), here, numbered(0, 1))
    assert answer.passing
    assert not answer.nothing_before(4)


def test_offset_beyond_the_end_is_no_answer_and_no_end() -> None:
    answer = found(question(9), numbered(0, 1), numbered(0, 1))
    assert (answer.offset, answer.markers_only, answer.passing) == (None, False, True)


def test_record_that_lies_behind_the_bracket_is_answered_with_its_end() -> None:
    here = numbered(0).skip(4).append(b"k", b"x")
    assert found(question(2, 0, 1, until=5), here, numbered(0).append(b"k", b"x")) == SearchResult(1)


def test_record_that_has_not_come_yet_is_asked_for_again_and_one_that_will_not_come_is_not() -> None:
    assert found(question(3), numbered(*range(9)), numbered(0, 1)).passing
    closed = found(question(3, 0, 2), numbered(*range(9)), numbered(0, 1))
    assert closed.offset is None
    assert closed.reason
    assert not closed.passing


def test_wide_bracket_is_entered_by_time() -> None:
    many = range(4 * NARROW)
    source, target = (MemoryRecords(alias, {at: numbered(*many)}) for alias, at in (("a", HERE), ("b", THERE)))
    asked = question(3 * NARROW, 5, 4 * NARROW)
    assert find([asked], source, target, Budget(records=10, seconds=60)) == {asked: SearchResult(3 * NARROW)}
    assert target.read < 10


def test_target_that_stamps_its_own_time_is_searched_from_the_start_of_the_bracket() -> None:
    many = range(2 * NARROW)
    own = numbered(*many, stamp=Stamp.APPEND, late=-5000)
    assert found(question(NARROW + 9), numbered(*many), own) == SearchResult(NARROW + 9, exact=False)


def test_target_that_began_to_stamp_its_own_time_within_the_bracket_is_searched_anew() -> None:
    many = range(4 * NARROW)
    there = numbered(*many)
    there.records[NARROW:] = [
        record._replace(stamp=Stamp.APPEND, timestamp=record.timestamp - NARROW) for record in there.records[NARROW:]
    ]
    there.append(b"k0", b"1500", 9000, Stamp.APPEND)
    assert found(question(1500), numbered(*many), there) == SearchResult(1500, exact=False)


def test_search_ends_at_its_limit_without_an_answer() -> None:
    many = range(NARROW)
    answer = found(question(NARROW - 1), numbered(*many), numbered(*many), Budget(records=10, seconds=60))
    assert answer.offset is None
    assert "first 10" in str(answer.reason)


def twins() -> tuple[MemoryLog, MemoryLog]:
    """The records 0 to 3 and record 1 once more; compaction took the first one from the target."""
    here = numbered(0, 1, 2, 3, 1)
    return here, numbered(0, 1, 2, 3, 1).lose(1)


@pytest.mark.parametrize("until", [None, 5, MAX_INT64])
def test_later_twin_of_a_record_that_compaction_took_is_no_answer(until: int | None) -> None:
    here, there = twins()
    answer = found(question(1, until=until), here, there, compact=True)
    assert answer.offset is None
    assert "lost records" in str(answer.reason)


@pytest.mark.parametrize("compact", [False, True])
def test_later_twin_of_a_record_that_retention_took_is_no_answer(compact: bool) -> None:
    here, there = numbered(0, 1, 2, 3, 1), numbered(0, 1, 2, 3, 1).cut(2)
    assert found(question(1, until=5), here, there, compact=compact).offset is None


def test_match_behind_a_gap_counts_where_no_later_record_is_the_same() -> None:
    here, there = numbered(*range(9)), numbered(*range(9)).lose(2, 4)
    assert found(question(6, until=9), here, there, compact=True) == SearchResult(6)
    assert found(question(6, until=None), here, there, compact=True).offset is None
    assert found(question(6, until=None), here, there) == SearchResult(6)


def test_match_behind_a_gap_is_no_answer_where_others_may_have_written_the_same_record() -> None:
    here, there = numbered(*range(9)), numbered(*range(9)).lose(2, 4)
    answer = found(replace(question(6, until=9), foreign=True), here, there, compact=True)
    assert answer.offset is None
    whole = numbered(*range(9))
    assert found(replace(question(6, until=9), foreign=True), here, whole, compact=True) == SearchResult(6)


def test_match_right_behind_the_bracket_s_start_needs_no_other_proof() -> None:
    here, there = numbered(*range(9)), numbered(*range(9)).lose(2)
    assert found(question(4, low=3), here, there, compact=True) == SearchResult(4)


def test_partition_that_is_gone_is_said_and_asked_again() -> None:
    log = numbered(0, 1)
    gone = found(replace(question(1), there=TopicPartition("b.t", 0)), log, log)
    assert (gone.offset, gone.passing) == (None, True)
    assert "UNKNOWN_TOPIC_OR_PART" in str(gone.reason)


def test_round_that_has_begun_comes_to_its_end_and_questions_behind_it_keep_their_turn() -> None:
    log = numbered(*range(2 * AT_FIRST))
    asked = [question(offset) for offset in range(2 * AT_FIRST)]
    answers = find(asked, MemoryRecords("a", {HERE: log}), MemoryRecords("b", {THERE: log}), Budget(seconds=0))
    assert answers == {one: SearchResult(one.offset) for one in asked[:AT_FIRST]}


class OutOfTime(MemoryRecords):
    """Time is over with the pass of this number."""

    last = 0

    def scan(self, spans: Collection[Span], seconds: float) -> dict[Span, Ending]:
        return super().scan(spans, seconds if self.scans < self.last else 0)


@pytest.mark.parametrize("passes", [0, 1])
def test_time_that_runs_out_is_answered_to_the_first_questions_alone(passes: int) -> None:
    log = numbered(*range(4 * AT_FIRST))
    asked = [question(offset) for offset in range(4 * AT_FIRST)]
    slow = OutOfTime("a", {HERE: log})
    slow.last = passes
    first = {one: OUT_OF_TIME if not passes else SearchResult(one.offset) for one in asked[:AT_FIRST]}
    assert find(asked, slow, MemoryRecords("b", {THERE: log}), AMPLE) == first


def test_more_questions_than_go_together_are_answered_one_part_after_the_other() -> None:
    log = numbered(*range(4 * AT_FIRST))
    asked = [question(offset) for offset in range(4 * AT_FIRST)]
    answers = find(asked, MemoryRecords("a", {HERE: log}), MemoryRecords("b", {THERE: log}), AMPLE)
    assert answers == {one: SearchResult(one.offset) for one in asked}


def test_cluster_that_does_not_answer_is_raised() -> None:
    with pytest.raises(ClusterUnreachable):
        find([question(0)], MemoryRecords("a", reachable=False), MemoryRecords("b"), AMPLE)


def test_many_questions_of_one_partition_are_few_passes_and_each_record_is_read_once() -> None:
    log = numbered(*range(AT_FIRST))
    source, target = MemoryRecords("a", {HERE: log}), MemoryRecords("b", {THERE: log})
    asked = [question(offset) for offset in range(AT_FIRST)]
    assert find(asked, source, target, AMPLE) == {one: SearchResult(one.offset) for one in asked}
    assert (source.scans, target.scans, source.read, target.read) == (1, 1, AT_FIRST, AT_FIRST)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=14), st.booleans(), st.data())
def test_match_on_a_target_that_is_or_was_compacted_skips_nothing(
    values: list[int], compact: bool, data: st.DataObject
) -> None:
    here, there = MemoryLog(), MemoryLog()
    for value in values:
        for log in (here, there):
            log.append(b"k%d" % (value % 2), b"%d" % value, 7)
    dirty = data.draw(st.integers(0, len(values)))
    last = {value % 2: offset for offset, value in enumerate(values[:dirty])}
    there.lose(*(offset for offset in range(dirty) if last[values[offset] % 2] != offset))
    offset = data.draw(st.integers(0, len(values) - 1))
    low = data.draw(st.integers(0, offset))
    answer = found(
        question(offset, low, None, data.draw(st.sampled_from([None, MAX_INT64]))), here, there, AMPLE, compact
    )
    assert answer.offset is None or answer.offset <= offset


def test_way_back_finds_the_original_of_a_record_on_the_target() -> None:
    source, target = numbered(0, 1, 2, 3), numbered(0, 1, 0, 1, 2, stamp=Stamp.APPEND, late=90)
    there, here = MemoryRecords("a", {HERE: source}), MemoryRecords("b", {THERE: target})
    asked = Question(THERE, 3, HERE, 0, None, back=True)
    assert find([asked], here, there, AMPLE) == {asked: SearchResult(1, exact=False)}
