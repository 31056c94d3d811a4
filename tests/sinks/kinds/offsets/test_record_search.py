"""What counts as the same record, and whose turn it is to be looked for."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sinks.kafka.ports.groups import GroupPartition
from sinks.kafka.ports.record_reader import Record, Stamp
from sinks.kinds.offsets.record_search import Question, Search, SearchResult, Turns, is_like, shares_timestamps
from sinks.kinds.offsets.translation import limit_while_resending
from streaming.mm2.records import TopicPartition
from tests.sinks.kinds.offsets.mm2_partition import WITH_RESTARTS, Partition, Step, untold

HERE, THERE = TopicPartition("t", 0), TopicPartition("a.t", 0)
REST = 10.0


def record(
    offset: int = 0, timestamp: int = 7, stamp: Stamp = Stamp.CREATE, key: bytes | None = b"k", value: bytes = b"v"
) -> Record:
    return Record(offset, timestamp, stamp, key, value)


def question(offset: int, low: int = 0, high: int | None = None, until: int | None = None) -> Question:
    return Question(HERE, offset, THERE, low, high, until)


def asker(number: int) -> GroupPartition:
    return f"g{number:02}", HERE


@pytest.mark.parametrize(
    ("original", "copy", "shared"),
    [
        (Stamp.CREATE, Stamp.CREATE, True),
        (Stamp.APPEND, Stamp.CREATE, True),
        (Stamp.NONE, Stamp.CREATE, False),
        (Stamp.CREATE, Stamp.APPEND, False),
        (Stamp.APPEND, Stamp.APPEND, False),
    ],
)
@pytest.mark.parametrize("back", [False, True])
def test_copy_has_the_timestamp_of_its_original_unless_its_topic_stamps_its_own(
    original: Stamp, copy: Stamp, shared: bool, back: bool
) -> None:
    first, second = record(stamp=original), record(stamp=copy)
    here, there = (second, first) if back else (first, second)
    assert shares_timestamps(here, there, back) is shared


def test_record_is_like_another_by_timestamp_key_and_value_and_never_by_offset() -> None:
    assert is_like(record(1), record(2), back=False)
    assert not is_like(record(), record(timestamp=8), back=False)
    assert not is_like(record(), record(key=None), back=False)
    assert not is_like(record(), record(value=b"w"), back=False)
    assert is_like(record(), record(timestamp=8, stamp=Stamp.APPEND), back=False)


def test_first_record_like_it_ends_the_search_and_a_gap_on_the_way_is_told() -> None:
    whole, gapped = (Search(question(0, 3), record(), 3) for _ in range(2))
    assert [whole.take(record(3, value=b"w")), whole.take(record(4))] == [False, True]
    assert (whole.match, whole.whole) == (4, True)
    assert [gapped.take(record(3, value=b"w")), gapped.take(record(5))] == [False, True]
    assert (gapped.match, gapped.whole) == (5, False)


@settings(max_examples=150, deadline=None)
@given(WITH_RESTARTS | untold(), st.integers(1, 6))
def test_match_skips_nothing_however_many_records_are_the_same(steps: list[Step], distinct: int) -> None:
    made = Partition()
    for step in steps:
        made.step(step)
    assume(made.history is not None)
    limit = limit_while_resending(made.history, made.ends.target)
    for upstream in range(made.source_end):
        below, following = made.history.around(upstream, limit)
        first = next((offset for offset in made.source if offset >= upstream), None)
        if below is None or first is None:
            continue
        high = min(limit, following.downstream if following else len(made.target))
        search = Search(question(upstream, below.downstream, high), record(value=b"%d" % (first % distinct)), 0)
        for at in range(below.downstream, high):
            if search.take(record(at, value=b"%d" % (made.target[at] % distinct))):
                assert not made.skipped(upstream, at)
                # MM2 has to send the rest after a restart that no sync shows.
                assert not all(step.told for step in steps) or not made.lost_without_mm2(upstream, at)
                break


def chosen(turns: Turns, wanted: dict[GroupPartition, Question], now: float) -> list[Question]:
    """The questions to ask now, where these are wanted."""
    turns.want(wanted, now)
    return list(dict.fromkeys(turns.choose().values()))


def test_answer_is_kept_as_long_as_offset_and_bracket_stay() -> None:
    turns, wanted = Turns(REST, 10), {asker(1): question(5)}
    assert chosen(turns, wanted, 0) == [question(5)]
    turns.learn(wanted, {question(5): SearchResult(3)}, 0)
    assert chosen(turns, wanted, 1000) == []
    assert turns.known(asker(1), question(5)) == SearchResult(3)
    for other in (question(6), question(5, low=1), question(5, high=9)):
        assert chosen(turns, {asker(1): other}, 1000) == [other]
        assert turns.known(asker(1), other) is None


def test_answer_that_may_pass_is_asked_again_after_a_rest() -> None:
    turns, wanted = Turns(REST, 10), {asker(1): question(5)}
    turns.learn(wanted, {question(5): SearchResult(passing=True)}, 0)
    assert chosen(turns, wanted, REST - 1) == []
    assert chosen(turns, wanted, REST) == [question(5)]


def test_answer_up_to_the_end_of_the_log_holds_while_the_source_is_written() -> None:
    turns, asked = Turns(REST, 10), question(5, until=100)
    turns.learn({asker(1): asked}, {asked: SearchResult(3)}, 0)
    later = question(5, until=200)
    assert (chosen(turns, {asker(1): later}, 1), turns.known(asker(1), later)) == ([], SearchResult(3))


def test_answer_within_a_bracket_holds_as_long_as_the_bracket_stays() -> None:
    turns, asked = Turns(REST, 10), question(5, high=9, until=100)
    turns.learn({asker(1): asked}, {asked: SearchResult(3)}, 0)
    assert turns.known(asker(1), question(5, high=9, until=200)) is None


def test_a_waiting_group_is_answered_though_only_others_ask_in_the_passes_that_may_search() -> None:
    turns, crowd = Turns(REST, 1), {asker(number): question(number) for number in range(2, 9)}
    turns.want({asker(1): question(1)}, 0)
    assert chosen(turns, crowd, 1) == [question(1)]


def test_groups_at_one_offset_are_one_question() -> None:
    turns, wanted = Turns(REST, 1), {asker(number): question(5) for number in range(9)}
    assert chosen(turns, wanted, 0) == [question(5)]
    turns.learn(wanted, {question(5): SearchResult(3)}, 0)
    assert chosen(turns, wanted, 1) == []


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 12), st.integers(1, 5), st.data())
def test_every_asker_has_its_turn_though_others_move_and_new_ones_come(
    askers: int, budget: int, data: st.DataObject
) -> None:
    turns = Turns(REST, budget)
    asked: set[GroupPartition] = set()
    rounds = -(-askers // budget)
    for now in range(rounds):
        late = data.draw(st.integers(0, 4)) if now else 0
        # Each one moves at every round, so that no answer is of use twice.
        wanted = {asker(number): question(100 * number + now) for number in range(askers)}
        wanted |= {asker(50 + 5 * now + number): question(9000 + 10 * now + number) for number in range(late)}
        questions = chosen(turns, wanted, now)
        assert len(questions) <= budget
        asked |= {who for who, what in wanted.items() if what in questions}
        turns.learn(turns.choose(), {what: SearchResult(1) for what in questions}, now)
    assert asked >= {asker(number) for number in range(askers)}


def test_what_is_gone_is_forgotten() -> None:
    turns, wanted = Turns(REST, 10), {asker(1): question(5), asker(2): question(6)}
    turns.learn(wanted, {question(5): SearchResult(1), question(6): SearchResult(2)}, 0)
    turns.forget({asker(1)[0]})
    assert (turns.known(asker(1), question(5)), turns.known(asker(2), question(6))) == (None, SearchResult(2))
    turns.forget((), {THERE.topic})
    assert turns.known(asker(2), question(6)) is None
