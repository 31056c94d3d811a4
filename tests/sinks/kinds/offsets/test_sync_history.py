"""What is remembered of the offset-syncs of a partition. That Kafka thins them so, too, is shown in tests/parity."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sinks.kafka.ports.groups import LogRange
from sinks.kinds.offsets.sync_history import (
    HISTORY_SCHEMA,
    NOWHERE,
    SLOTS,
    WIDTH,
    Histories,
    History,
    Pair,
    admit,
    first,
)
from sinks.kinds.offsets.translation import Answer, Evidence, LogEnds, translate
from streaming.errors import LockstepError
from streaming.mm2.records import MAX_INT64, TopicPartition
from tests.sinks.kinds.offsets.mm2_partition import WITH_RESTARTS, Partition, Step, untold

ORDERS = TopicPartition("orders", 0)
OFFSETS = st.integers(0, MAX_INT64) | st.sampled_from([0, 1, 5, MAX_INT64 - 1, MAX_INT64])


def history(*pairs: tuple[int, int]) -> History:
    made = History(*pairs[0], position=0)
    for position, pair in enumerate(pairs[1:], 1):
        made.take(*pair, position)
    return made


def copied(steps: list[Step]) -> History | None:
    made = Partition()
    for step in steps:
        made.step(step)
    return made.history


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 300) | st.integers(1, 2**40), min_size=1, max_size=80))
def test_slots_keep_kafkas_invariants(steps: list[int]) -> None:
    offsets = list(itertools.accumulate(steps))
    slots = first(offsets[0], 0)
    for number, upstream in enumerate(offsets[1:], 1):
        admit(slots, upstream, number)
        held: list[tuple[int, int]] = []
        for at in range(0, len(slots), WIDTH):
            held += [(slots[at], slots[at + 1])] * (slots[at + 2] - len(held))
        assert len(held) == SLOTS
        assert held[0] == (upstream, number)
        assert held[-1] == (offsets[0], 0)
        for i, j in itertools.combinations(range(SLOTS), 2):
            if held[i] != held[j]:
                assert held[i][0] <= held[j][0] + 2**j - 2**i
                assert held[i][0] >= held[j][0] + 2 ** max(i - 2, 0)


@settings(max_examples=200, deadline=None)
@given(WITH_RESTARTS | untold())
def test_pairs_rise_on_both_sides_and_are_bounded(steps: list[Step]) -> None:
    if (known := copied(steps)) is not None:
        pairs = list(known.pairs())
        assert pairs == sorted(pairs)
        assert len({pair.downstream for pair in pairs}) == len(pairs) <= 2 * SLOTS
        assert pairs[-1] == known.latest


@settings(max_examples=200, deadline=None)
@given(WITH_RESTARTS | untold())
def test_a_history_comes_back_from_its_bytes(steps: list[Step]) -> None:
    if (known := copied(steps)) is not None:
        again = History.from_bytes(known.to_bytes())
        assert (list(again.pairs()), again.position) == (list(known.pairs()), known.position)
        assert again.to_bytes() == known.to_bytes()


@pytest.mark.parametrize(
    "damage",
    [
        {"live": [], "older": [1, 1]},
        {"live": [5, 5, 63]},
        {"live": [5, 5, 9, 7, 4, 64]},
        {"live": [5, 5]},
        {"older": [9, 1]},
        {"older": [1]},
        {"restarts": [-1, 4]},
    ],
)
def test_a_damaged_history_is_refused(damage: dict[str, list[int]]) -> None:
    whole = {"position": 3, "live": [5, 5, 64], "older": [], "restarts": []}
    with pytest.raises(LockstepError, match="damaged"):
        History.from_bytes(HISTORY_SCHEMA.encode(whole | damage))


def test_a_sync_that_was_taken_before_changes_nothing() -> None:
    known = history((0, 0), (100, 100), (200, 200))
    known.take(100, 100, position=1)
    assert list(known.pairs()) == [Pair(0, 0), Pair(100, 100), Pair(200, 200)]


def test_a_restart_keeps_the_older_pairs_before_it_and_drops_those_behind() -> None:
    known = history((0, 0), (100, 100), (200, 200), (150, 260))
    assert list(known.pairs()) == [Pair(0, 0), Pair(100, 100), Pair(150, 260)]
    assert known.around(149) == (Pair(100, 100), Pair(150, 260))


def test_a_downstream_offset_that_goes_back_ends_all_that_was_known() -> None:
    assert list(history((0, 0), (100, 100), (101, 0)).pairs()) == [Pair(101, 0)]


def test_restarts_beyond_the_most_that_are_told_apart_count_as_one() -> None:
    known = history((0, 0), *((10 * number, 15 * number) for number in range(1, 21)))
    assert known.resent_after(0) == 20 * 5
    assert known.resent_after(15 * 19) == 5


@given(told=st.lists(st.tuples(OFFSETS, OFFSETS), min_size=1, max_size=30), after_hole=st.booleans())
@example(told=[(10, 12), (MAX_INT64, 3), (0, 5), (1, 9)], after_hole=False)
@example(told=[(MAX_INT64, 0), (0, 2), (MAX_INT64, 1), (0, 4)], after_hole=True)
def test_no_forged_sync_keeps_a_later_one_from_being_taken(told: list[tuple[int, int]], after_hole: bool) -> None:
    known = History(*told[0], 0)
    for position, (upstream, downstream) in enumerate(told[1:], start=1):
        known.take(upstream, downstream, position, after_hole, end=downstream)
    assert known.to_bytes()


def test_who_writes_histories_down_learns_which_changed() -> None:
    known = Histories()
    known.take(TopicPartition("orders", 0), 0, 0, 10)
    known.take(TopicPartition("orders", 1), 0, 0, 11)
    written = known.position
    known.take(TopicPartition("orders", 1), 5, 5, 12)
    assert known.changed_since(NOWHERE) == [ORDERS, TopicPartition("orders", 1)]
    assert known.changed_since(written) == [TopicPartition("orders", 1)]


def test_behind_a_hole_each_partition_counts_what_may_have_been_sent_unseen() -> None:
    known = Histories()
    known.take(TopicPartition("orders", 0), 0, 0, 10)
    known.take(TopicPartition("orders", 0), 50, 50, 20)
    known.take(TopicPartition("orders", 0), 60, 60, 21)
    found = known.of(ORDERS)
    assert found is not None
    assert found.resent_after(0) == 50


def test_when_the_topic_of_syncs_was_recreated_its_first_syncs_are_new() -> None:
    known = Histories()
    known.take(TopicPartition("orders", 0), 0, 0, 10)
    known.forget_positions()
    known.take(TopicPartition("orders", 0), 50, 50, 0)
    found = known.of(ORDERS)
    assert found is not None
    assert (found.latest, found.resent_after(0)) == (Pair(50, 50), 50)


def test_a_topic_that_is_gone_is_forgotten_and_what_the_ledger_kept_is_put_back() -> None:
    known = Histories()
    known.restore(ORDERS, history((0, 0), (7, 7)))
    assert (len(known.changed_since(NOWHERE)), known.position) == (1, 1)
    assert known.drop("orders") == [ORDERS]
    assert known.of(ORDERS) is None
    assert known.drop("orders") == []


def test_after_a_hole_a_group_is_not_held_back_to_before_it_where_nothing_was_sent_twice() -> None:
    known = Histories()
    known.take(TopicPartition("orders", 0), 1_000_000, 1_000_000, 10)
    known.take(TopicPartition("orders", 0), 11_000_000, 11_000_000, 20)
    found = known.of(ORDERS)
    assert found is not None
    assert found.resending_since(11_000_001) is None
    answer = translate(11_000_000, LogEnds(None, LogRange(0, 11_000_001)), Evidence(found))
    assert isinstance(answer, Answer)
    assert answer.downstream == 11_000_000


def test_held_state_after_a_hole_ends_where_the_source_was_seen_to_end() -> None:
    known = History(0, 0, position=0)
    known.take(100, 200, 5, after_hole=True)
    assert known.resending_since(201) == 200
    assert known.cap_restarts(101)
    assert known.resending_since(201) is None
    assert not known.cap_restarts(500)


SYNC_STEPS = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 50)), min_size=2, max_size=20)


@settings(max_examples=100, deadline=None)
@given(SYNC_STEPS, st.data())
def test_syncs_that_come_again_are_no_holes_and_change_nothing(
    steps: list[tuple[int, int]], data: st.DataObject
) -> None:
    ends, syncs = [0, 0, 0], []
    for position, (partition, copied) in enumerate(steps):
        ends[partition] += copied
        syncs.append((TopicPartition("orders", partition), ends[partition], ends[partition], position))
    once, again = Histories(), Histories()
    for number, sync in enumerate(syncs):
        once.take(*sync)
        again.take(*sync)
        for replayed in syncs[data.draw(st.integers(0, number)) : number + 1]:
            again.take(*replayed)
    for partition in range(3):
        known, replayed_too = (of.of(TopicPartition("orders", partition)) for of in (once, again))
        assert (known is None) == (replayed_too is None)
        if known is not None and replayed_too is not None:
            assert known.to_bytes() == replayed_too.to_bytes()
            assert replayed_too.resent_after(0) == 0


@settings(max_examples=100, deadline=None)
@given(untold())
def test_no_group_is_held_back_once_mm2_has_sent_all_that_the_source_has(steps: list[Step]) -> None:
    made = Partition()
    for step in [*(step._replace(missing=0) for step in steps), Step(produced=1, copied=300)]:
        made.step(step)
    if made.history is not None and made.told:
        made.history.cap_restarts(made.source_end)
        assert made.history.resending_since(len(made.target)) is None
