"""Whose turn it is: nothing while the log tells of no change, every topic in its turn, what changed lately first."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sinks.flow_settings import Pace
from sinks.kinds.topics.poll_schedule import LATELY, ROUNDS, SHARDS, SMALLEST, TURN, PollSchedule

MANY = SHARDS * SMALLEST * 2
A_SHARD = MANY // SHARDS
QUICK = 1e-6
"""Seconds a topic that cost next to nothing of the budget."""


def names(count: int) -> list[str]:
    """That many topics in order."""
    return [f"t{number:05}" for number in range(count)]


def schedule(count: int, pace: Pace | None = None) -> PollSchedule:
    """The turns of that many topics."""
    built = PollSchedule(pace or Pace())
    built.begin(names(count), signal_works=True)
    return built


def begins(built: PollSchedule, *, signal_works: bool) -> None:
    """A pass with the same topics begins."""
    built.begin([topic for shard in built.all_shards() for topic in shard], signal_works)


def changed(built: PollSchedule, topics: Collection[str], now: float) -> None:
    """A poll found these topics to differ."""
    built.note_polled((), 0.0, topics, now)


def polled(
    built: PollSchedule,
    now: float,
    *,
    signal_works: bool = True,
    signalled: int = 0,
    differing: Collection[str] = (),
    cost: float = QUICK,
) -> list[str]:
    """The topics of one turn; `differing`: those whose poll shows a difference; `cost`: seconds a topic."""
    seen: list[str] = []
    begins(built, signal_works=signal_works)
    for group in built.turn(now, signalled=signalled):
        topics = [topic for shard in group for topic in shard]
        built.note_polled(group, len(topics) * cost, set(differing) & set(topics), now)
        seen += topics
    return seen


def test_nothing_is_polled_and_no_turn_is_wanted_while_the_log_tells_of_no_change() -> None:
    built = schedule(MANY)
    assert polled(built, 1.0) == []
    assert built.due(1.0) == float("inf")


def test_a_signal_that_nothing_explains_is_followed_through_all_topics_twice_with_a_moment_in_between() -> None:
    built = schedule(MANY)
    assert polled(built, 1.0, signalled=1) == names(MANY)
    assert built.due(1.0) == 1.0 + TURN
    assert polled(built, 2.0) == names(MANY)
    assert polled(built, 3.0) == []
    assert ROUNDS == 2


@pytest.mark.parametrize("changes", [1, 2])
def test_a_signal_that_as_many_differences_explain_spares_the_other_shards(changes: int) -> None:
    built = schedule(MANY)
    differing = names(MANY)[A_SHARD * 3 :: A_SHARD * 2][:changes]
    seen = polled(built, 1.0, signalled=changes, differing=differing)
    assert len(seen) == A_SHARD * (4 if changes == 1 else 6)
    assert polled(built, 2.0) == []


def test_records_that_one_difference_leaves_unexplained_are_followed_for_one_round_only() -> None:
    built = schedule(MANY)
    seen = polled(built, 1.0, signalled=3, differing=["t00000"])
    for second in range(2, 6):
        seen += polled(built, float(second))
    assert {seen.count(topic) for topic in names(MANY)} <= {1, 2}
    assert len(seen) <= MANY + A_SHARD


def test_a_signal_goes_on_to_be_followed_when_the_budget_allows_it_again() -> None:
    built, seen = schedule(MANY), set[str]()
    while polled(built, 1.0, signalled=1, cost=0.05):
        """Until nothing is left."""
    now = 1.0
    for _ in range(2 * SHARDS):
        now = built.due(now) + 0.01
        seen |= set(polled(built, now, cost=0.05))
    assert seen == set(names(MANY))


def test_a_turn_waits_for_what_its_shard_costs() -> None:
    built = schedule(MANY)
    while polled(built, 1.0, signalled=1, cost=0.05):
        """Until nothing is left."""
    due = built.due(1.0)
    assert due > 1.0 + TURN
    assert polled(built, due - 0.01) == []
    assert polled(built, due + 0.01) != []


def test_without_a_log_topics_take_turns_and_each_is_polled_in_its_turn() -> None:
    built = schedule(MANY, Pace(observe_rate=A_SHARD))
    for second in range(3 * SHARDS):
        polled(built, float(second), signal_works=False)
    waiting = set(names(MANY))
    for second in range(3 * SHARDS, 5 * SHARDS + 1):
        waiting -= set(polled(built, float(second), signal_works=False))
    assert not waiting


def test_without_a_log_the_next_turn_is_wanted_soon() -> None:
    built = schedule(10)
    polled(built, 5.0, signal_works=False)
    assert built.due(5.0) == 5.0 + TURN


@given(st.integers(0, 400), st.integers(1, 200), st.lists(st.integers(0, 3), max_size=20), st.booleans())
@settings(max_examples=80, deadline=None)
def test_over_time_no_more_topics_are_polled_than_the_rate_allows(
    size: int, rate: int, signals: list[int], works: bool
) -> None:
    built, seen = schedule(size, Pace(observe_rate=rate)), 0
    for second, signalled in enumerate(signals):
        seen += len(polled(built, float(second), signal_works=works, signalled=signalled))
        changed(built, names(size)[:5], float(second))
        assert seen <= max(2 * size, rate) + rate * second + 1e-3


def test_what_changed_lately_comes_first() -> None:
    for works in (True, False):
        built = schedule(MANY)
        changed(built, ["t00900", "t00950"], 0.0)
        assert polled(built, 1.0, signal_works=works, signalled=1)[:2] == ["t00900", "t00950"]


def test_what_changed_lately_may_explain_a_signal_alone() -> None:
    built = schedule(MANY)
    changed(built, ["t00900"], 0.0)
    assert polled(built, 1.0, signalled=1, differing=["t00900"]) == ["t00900"]


def test_change_counts_as_late_for_a_while_only() -> None:
    built = schedule(MANY)
    changed(built, ["t00999"], 1.0)
    assert polled(built, LATELY, signalled=1)[0] == "t00999"
    assert polled(built, LATELY + 1.0, signalled=1)[0] != "t00999"


def test_same_topics_keep_their_shards() -> None:
    built = schedule(MANY)
    before = built.all_shards()
    built.begin(list(reversed(names(MANY))), signal_works=True)
    assert all(one is other for one, other in zip(built.all_shards(), before, strict=True))


def test_all_shards_hold_every_topic_once() -> None:
    shards = schedule(1001, Pace(shard_topics=7)).all_shards()
    assert [topic for shard in shards for topic in shard] == names(1001)
    assert max(len(shard) for shard in shards) <= 7


def test_topics_that_come_and_go_do_not_send_the_turn_back_to_the_start() -> None:
    built = schedule(1000, Pace(observe_rate=100))
    seen: set[str] = set()
    for second in range(1, 30):
        built.begin([*names(1000), f"new{second}"], signal_works=True)
        seen |= set(polled(built, float(second), signal_works=False))
    assert seen >= set(names(1000))


def test_topic_that_is_gone_is_not_polled() -> None:
    built = schedule(10)
    changed(built, ["t00009"], 0.0)
    built.begin(names(9), signal_works=True)
    assert sorted(polled(built, 1.0, signalled=1)) == names(9)


@pytest.mark.parametrize("rate", [0, 100])
def test_no_topics_are_no_shards(rate: int) -> None:
    built = schedule(0, Pace(observe_rate=rate))
    assert polled(built, 1.0, signalled=1) == []
    assert built.all_shards() == []
    assert built.due(1.0) == float("inf")


def test_once_a_log_tells_of_changes_no_difference_spares_a_topic_of_the_first_round() -> None:
    built = schedule(MANY)
    changed(built, names(2), 0.0)
    polled(built, 0.5, signal_works=False)
    assert set(polled(built, 1.0, signalled=1, differing=names(2))) == set(names(MANY))


def test_nothing_is_due_for_a_signal_while_nothing_could_be_polled() -> None:
    built = schedule(MANY)
    built.owe(1)
    assert built.due(1.0) < float("inf")
    assert built.due(1.0, polls=False) == float("inf")
    begins(built, signal_works=False)
    assert built.due(1.0, polls=False) < float("inf")


def test_a_storm_of_signals_whose_changes_are_found_costs_no_more_once_the_first_round_is_over() -> None:
    built = schedule(MANY)
    changed(built, names(1), 0.0)
    polled(built, 0.5, signal_works=False)
    first = polled(built, 1.0, signalled=1, differing=names(1))
    later = [polled(built, 2.0 + number, signalled=1, differing=names(1)) for number in range(5)]
    assert set(first) == set(names(MANY))
    assert later == [names(1)] * 5


def test_without_topics_no_turn_is_wanted_for_a_signal_that_came_before_they_went() -> None:
    built = schedule(3)
    built.owe(1)
    built.begin((), signal_works=True)
    assert built.due(1.0) == float("inf")


def test_after_a_poll_of_all_topics_none_is_owed_one_because_the_log_tells_of_changes_now() -> None:
    built = schedule(MANY)
    begins(built, signal_works=False)
    begins(built, signal_works=True)
    built.polled_all(0)
    assert polled(built, 1.0) == []
    assert built.due(1.0) == float("inf")
