"""A consumer group that moves skips no record, and reads no more of them twice than it was told."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sinks.kafka.ports.groups import LogRange
from sinks.kinds.offsets.sync_history import History, Pair
from sinks.kinds.offsets.translation import (
    Answer,
    Evidence,
    LogEnds,
    Method,
    Unanswered,
    search_window,
    translate,
    translate_back,
)
from tests.sinks.kinds.offsets.mm2_partition import WITH_RESTARTS, Partition, Step, untold

FAR = LogEnds(None, LogRange(0, 10_000))


def history(*pairs: tuple[int, int]) -> History:
    made = History(*pairs[0], position=0)
    for position, pair in enumerate(pairs[1:], 1):
        made.take(*pair, position)
    return made


def partition(steps: list[Step]) -> Partition:
    made = Partition()
    for step in steps:
        made.step(step)
    return made


@settings(max_examples=300, deadline=None)
@given(WITH_RESTARTS | untold(), st.booleans(), st.booleans(), st.sampled_from([0, 0, 1, 5, 20]))
def test_an_answer_skips_no_record_and_its_bound_is_true(
    steps: list[Step], matching: bool, tips: bool, behind: int
) -> None:
    made = partition(steps)
    ends = replace(made.ends_by_cut_off_leader(behind), replication_alone=tips)
    told = ends.source.end if ends.source else 0
    for upstream in range(told + 1):
        matched = made.match(upstream) if matching else None
        answer = translate(upstream, ends, Evidence(made.history, matched))
        if isinstance(answer, Answer):
            assert not made.skipped(upstream, answer.downstream)
            assert answer.error_bound is not None
            assert not made.told or made.read_twice(upstream, answer.downstream) <= answer.error_bound
            assert answer.method is not Method.TIP or upstream == told


@settings(max_examples=300, deadline=None)
@given(WITH_RESTARTS | untold(), st.booleans())
def test_an_answer_back_skips_no_record_and_its_bound_is_true(steps: list[Step], matching: bool) -> None:
    made = partition(steps)
    for downstream in range(len(made.target) + 1):
        matched = made.target[downstream] if matching and downstream < len(made.target) else None
        answer = translate_back(downstream, made.ends, Evidence(made.history, matched))
        if isinstance(answer, Answer):
            assert not made.skipped_back(answer.upstream, downstream)
            assert answer.error_bound is not None
            assert not made.told or made.read_twice_back(answer.upstream, downstream) <= answer.error_bound


@settings(max_examples=300, deadline=None)
@given(WITH_RESTARTS, st.booleans())
def test_no_record_that_arrived_is_lost_even_if_mm2_dies_while_it_sends_again(
    steps: list[Step], matching: bool
) -> None:
    made = partition(steps)
    for upstream in range(made.source_end + 1):
        matched = made.match(upstream) if matching else None
        answer = translate(upstream, made.ends, Evidence(made.history, matched))
        if isinstance(answer, Answer):
            assert not made.lost_without_mm2(upstream, answer.downstream)


def test_restart_right_at_an_answer_that_was_kept_is_in_its_bound() -> None:
    made = partition([Step(0, 0, 1, 0), Step(6, 0, 2), Step(0, 0, 1, 2)])
    previous = translate(0, made.ends, Evidence(made.history))
    assert isinstance(previous, Answer)
    made.step(Step(1, 0, 6))
    answer = translate(1, made.ends, Evidence(made.history, made.match(1), previous=previous))
    assert isinstance(answer, Answer)
    assert answer.error_bound is not None
    assert made.read_twice(1, answer.downstream) <= answer.error_bound


@settings(max_examples=300, deadline=None)
@given(WITH_RESTARTS | untold(), st.data())
def test_an_answer_never_goes_back_while_the_group_does_not(steps: list[Step], data: st.DataObject) -> None:
    made, previous, checkpoint = Partition(), None, None
    upstream = 0
    for step in steps:
        made.step(step)
        upstream = data.draw(st.integers(upstream, made.source_end))
        matched = made.match(upstream) if data.draw(st.booleans()) else None
        answer = translate(upstream, made.ends, Evidence(made.history, matched, checkpoint, previous))
        if isinstance(answer, Answer):
            assert previous is None or answer.downstream >= previous.downstream
            assert not made.skipped(upstream, answer.downstream)
            if made.told and answer.error_bound is not None:
                assert made.read_twice(upstream, answer.downstream) <= answer.error_bound
            checkpoint = Pair(upstream, answer.downstream) if data.draw(st.booleans()) else checkpoint
            previous = answer if data.draw(st.booleans()) else previous
        else:
            assert previous is None


@settings(max_examples=100, deadline=None)
@given(WITH_RESTARTS)
def test_answers_of_one_moment_rise_with_the_groups(steps: list[Step]) -> None:
    made = partition(steps)
    answers = [translate(upstream, made.ends, Evidence(made.history)) for upstream in range(made.source_end + 1)]
    offsets = [answer.downstream for answer in answers if isinstance(answer, Answer)]
    assert offsets == sorted(offsets)


def test_a_group_at_the_end_of_a_caught_up_partition_reads_nothing_twice() -> None:
    made = partition([Step(23, copied=23)])
    assert translate(23, made.ends, Evidence(made.history)) == Answer(23, 23, Method.TIP, 0)


def test_a_group_at_the_end_reads_twice_what_the_target_has_not_got_yet() -> None:
    made = partition([Step(30, copied=20)])
    assert translate(30, made.ends, Evidence(made.history)) == Answer(30, 20, Method.TIP, 10)


def test_markers_alone_between_a_group_and_the_end_count_as_the_end() -> None:
    made = partition([Step(8, missing=2, copied=8)])
    answer = translate(8, replace(made.ends, markers_only=True), Evidence(made.history))
    assert isinstance(answer, Answer)
    assert (answer.downstream, answer.method) == (8, Method.TIP)


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (None, Unanswered.NO_OFFSET_SYNC),
        (history((0, 0), (90, 90)), Answer(100, 91, Method.CONSERVATIVE, 9)),
        (history((0, 0), (99, 99)), Answer(100, 100, Method.CONSERVATIVE, 0)),
        (history((0, 0), (90, 30)), Answer(100, 31, Method.CONSERVATIVE, 9)),
    ],
)
def test_a_group_at_the_end_that_a_cut_off_leader_tells_does_not_go_on_at_the_targets(
    known: History | None, expected: Answer | Unanswered
) -> None:
    ends = LogEnds(LogRange(0, 100), LogRange(0, 150))
    assert translate(100, ends, Evidence(known)) == expected
    assert translate(95, replace(ends, markers_only=True), Evidence(known)) != Answer(95, 150, Method.TIP, 95)


def test_markers_may_be_all_that_the_target_lacks_of_what_lies_before_the_end() -> None:
    ends = LogEnds(LogRange(0, 150), LogRange(0, 100))
    assert translate(150, ends, Evidence(history((0, 0), (90, 90)))) == Answer(150, 100, Method.TIP, 50)


def test_a_group_at_an_old_end_goes_on_at_the_end_of_an_empty_copy() -> None:
    ends = LogEnds(LogRange(0, 100), LogRange(150, 150))
    assert translate(100, ends, Evidence(history((90, 90)))) == Answer(100, 150, Method.TIP, 0)


@pytest.mark.parametrize("upstream", [95, 100])
def test_a_record_is_searched_beyond_the_end_that_a_cut_off_leader_tells(upstream: int) -> None:
    ends, known = LogEnds(LogRange(0, 100), LogRange(0, 150)), history((0, 0), (90, 90))
    assert search_window(upstream, ends, known) == (90, None, None)
    true = replace(ends, source=LogRange(0, 150))
    assert search_window(upstream, true, known) == (90, None, 150)
    assert search_window(150, true, known) is None


def test_a_match_between_the_pairs_is_exact_where_nothing_was_sent_twice() -> None:
    known = history((0, 0), (100, 60))
    assert translate(50, FAR, Evidence(known, matched=31)) == Answer(50, 31, Method.MATCHED, 0)


def test_a_match_outside_the_pairs_is_not_believed() -> None:
    known = history((0, 0), (100, 60), (200, 160))
    for matched in (59, 161):
        answer = translate(150, FAR, Evidence(known, matched=matched))
        assert answer == Answer(150, 61, Method.CONSERVATIVE, 49)


def test_group_that_has_read_all_before_the_next_pair_goes_on_there() -> None:
    known = history((0, 0), (100, 60), (200, 160))
    assert translate(150, FAR, Evidence(known, matched=160)) == Answer(150, 160, Method.MATCHED, 0)


def test_bound_of_a_match_by_key_and_value_alone_is_that_of_the_pairs() -> None:
    known = history((0, 0), (100, 60))
    assert translate(50, FAR, Evidence(known, matched=31, exact=False)) == Answer(50, 31, Method.MATCHED, 29)


def test_behind_a_restart_the_newer_copies_are_used_and_before_it_the_older_ones() -> None:
    known = history((0, 0), (100, 100), (90, 120))
    assert translate(95, FAR, Evidence(known)) == Answer(95, 121, Method.CONSERVATIVE, 4)
    assert isinstance(older := translate(80, FAR, Evidence(known)), Answer)
    assert (older.downstream, older.method) == (1, Method.CONSERVATIVE)


@pytest.mark.parametrize(
    ("checkpoint", "expected"),
    [
        (Pair(150, 140), (140, Method.CHECKPOINT)),
        (Pair(150, 20), (61, Method.CONSERVATIVE)),
        (Pair(151, 140), (61, Method.CONSERVATIVE)),
    ],
)
def test_a_checkpoint_of_mm2s_is_taken_where_it_lies_further_on_and_the_group_is_not_before_it(
    checkpoint: Pair, expected: tuple[int, Method]
) -> None:
    answer = translate(150, FAR, Evidence(history((0, 0), (100, 60)), checkpoint=checkpoint))
    assert isinstance(answer, Answer)
    assert (answer.downstream, answer.method) == expected


def test_a_checkpoint_alone_is_an_answer_without_a_bound() -> None:
    assert translate(9, FAR, Evidence(checkpoint=Pair(9, 4))) == Answer(9, 4, Method.CHECKPOINT, None)


@pytest.mark.parametrize(
    ("known", "upstream", "end", "expected"),
    [
        (None, 5, 100, Unanswered.NO_OFFSET_SYNC),
        (history((10, 3)), 9, 100, Unanswered.TOO_OLD),
        (history((10, 300)), 15, 100, Unanswered.BEYOND_END),
    ],
)
def test_where_there_is_no_answer_it_says_why(
    known: History | None, upstream: int, end: int, expected: Unanswered
) -> None:
    assert translate(upstream, LogEnds(None, LogRange(0, end)), Evidence(known)) is expected


@pytest.mark.parametrize("upstream", [0, 15, 80, 95])
def test_a_sync_behind_the_targets_end_leaves_nothing_but_the_tip_to_answer_by(upstream: int) -> None:
    known = history((0, 0), (0, 1), (90, 91))
    evidence = Evidence(known, 1, Pair(0, 0), Answer(0, 0, Method.MATCHED, 0))
    ends = LogEnds(LogRange(0, 96), LogRange(0, 91))
    assert isinstance(translate(upstream, replace(ends, target=LogRange(0, 92)), evidence), Answer)
    assert translate(upstream, ends, evidence) is Unanswered.BEYOND_END
    assert translate(96, ends, evidence) == Answer(96, 91, Method.TIP, 96)
    assert search_window(15, ends, known) is None
    assert translate_back(upstream, ends, evidence) is Unanswered.NO_OFFSET_SYNC


def test_an_answer_before_the_start_of_the_log_is_raised_to_it() -> None:
    answer = translate(50, LogEnds(None, LogRange(40, 90)), Evidence(history((0, 0), (100, 60))))
    assert answer == Answer(50, 40, Method.CONSERVATIVE, 20)
    back = translate_back(20, LogEnds(LogRange(30, 200), LogRange(0, 90)), Evidence(history((0, 0), (100, 60))))
    assert isinstance(back, Answer)
    assert back.upstream == 30


def test_an_answer_beyond_a_log_that_was_made_again_is_not_kept() -> None:
    previous = Answer(50, 500, Method.MATCHED, 0)
    answer = translate(60, LogEnds(None, LogRange(0, 90)), Evidence(history((0, 0)), previous=previous))
    assert isinstance(answer, Answer)
    assert answer.downstream == 1


def test_there_is_no_tip_on_the_way_back_since_the_source_may_hold_what_never_crossed() -> None:
    made = partition([Step(30, copied=20)])
    answer = translate_back(20, made.ends, Evidence(made.history))
    assert isinstance(answer, Answer)
    assert answer.upstream <= 20


def test_on_the_way_back_a_group_does_not_read_again_what_it_had_read_on_the_source() -> None:
    evidence = Evidence(history((0, 0)), checkpoint=Pair(70, 40))
    ends = LogEnds(LogRange(0, 90), LogRange(0, 60))
    assert isinstance(behind := translate_back(45, ends, evidence), Answer)
    assert (behind.upstream, behind.method) == (70, Method.CHECKPOINT)
    assert isinstance(before := translate_back(39, ends, evidence), Answer)
    assert (before.upstream, before.method) == (1, Method.CONSERVATIVE)


def test_an_answer_back_never_goes_back_while_the_group_does_not() -> None:
    previous = Answer(66, 40, Method.MATCHED, 0)
    ends = LogEnds(LogRange(0, 90), LogRange(0, 60))
    later = translate_back(50, ends, Evidence(history((0, 0)), previous=previous))
    assert later == Answer(66, 50, Method.MATCHED, 24)


def test_a_match_that_was_kept_is_not_exact_for_a_group_that_went_on() -> None:
    previous = Answer(110, 80, Method.MATCHED, 0)
    later = translate(150, FAR, Evidence(history((0, 0), (100, 60), (200, 160)), previous=previous))
    assert later == Answer(150, 80, Method.MATCHED, 49)
