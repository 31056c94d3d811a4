"""The budget of looks: never more topics than have come in, every topic in its turn, what changed lately first."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sinks.flow_settings import Pace
from sinks.kinds.topics.poll_schedule import LATELY, PollSchedule


def names(count: int) -> list[str]:
    """That many topics in order."""
    return [f"t{number:05}" for number in range(count)]


def rounds(count: int, pace: Pace | None = None) -> PollSchedule:
    """The turns of that many topics."""
    built = PollSchedule(pace or Pace(observe_rate=100))
    built.members(names(count))
    return built


def looked_at(
    built: PollSchedule, now: float, *, quiet: bool = False, news: int = 0, differing: frozenset[str] = frozenset()
) -> list[str]:
    """The topics of one turn; `differing`: those whose look shows a difference."""
    seen = []
    for group in built.turn(now, quiet=quiet, news=news):
        topics = [topic for shard in group for topic in shard]
        built.found(len(differing & set(topics)))
        seen += topics
    return seen


PACES = st.builds(
    Pace,
    observe_rate=st.integers(5, 300),
    trigger_interval=st.sampled_from([0.1, 0.5, 1.0, 3.0]),
    shard_topics=st.integers(1, 400),
)
SIZES = st.integers(1, 150)
PAUSES = st.lists(st.floats(0.0, 20.0), min_size=1, max_size=30)
CHANGED = st.lists(st.integers(0, 399), max_size=5)


@given(SIZES, PAUSES, CHANGED, PACES, st.randoms(use_true_random=False))
@settings(max_examples=80, deadline=None)
def test_over_time_no_more_topics_are_looked_at_than_the_budget(
    size: int, pauses: list[float], changed: list[int], pace: Pace, random: Random
) -> None:
    built = rounds(size, pace)
    now, seen = 500.0, 0
    started = now - pace.trigger_interval
    for pause in pauses:
        now += pause
        seen += len(looked_at(built, now, quiet=random.random() < 0.7, news=random.choice([0, 0, 1, 7])))
        built.changed([name for name in names(size) if int(name[1:]) in changed], now)
        assert seen <= pace.observe_rate * (now - started) + 1e-3


def seconds_until_all_seen(size: int, pace: Pace, start: int, *, quiet: bool) -> float:
    """How long it takes, after that many triggers, until each topic was looked at once more."""
    built, trigger = rounds(size, pace), pace.trigger_interval
    for number in range(start):
        looked_at(built, number * trigger, quiet=quiet)
    waiting, number = set(names(size)), start
    while waiting:
        waiting -= set(looked_at(built, number * trigger, quiet=quiet))
        number += 1
    return (number - start) * trigger


@given(SIZES, PACES, st.integers(0, 50))
@settings(max_examples=80, deadline=None)
@example(4, Pace(trigger_interval=0.1, observe_rate=6, shard_topics=1), 0)
def test_every_topic_is_looked_at_within_its_turn_and_one_trigger(size: int, pace: Pace, start: int) -> None:
    turn = size / pace.observe_rate
    assert seconds_until_all_seen(size, pace, start, quiet=False) <= turn + pace.trigger_interval + 1e-3


@given(SIZES, PACES, st.integers(0, 50))
@settings(max_examples=80, deadline=None)
@example(7, Pace(trigger_interval=0.1, observe_rate=3, shard_topics=1), 0)
def test_while_the_log_is_quiet_a_turn_takes_no_more_than_four_times_as_long(size: int, pace: Pace, start: int) -> None:
    turn = size / pace.observe_rate
    assert seconds_until_all_seen(size, pace, start, quiet=True) <= 4 * (turn + pace.trigger_interval) + 1e-3


def test_budget_below_one_topic_a_trigger_adds_up() -> None:
    built = rounds(3, Pace(observe_rate=1, trigger_interval=0.1))
    turns = [looked_at(built, number / 10) for number in range(1, 32)]
    assert [topic for turn in turns for topic in turn] == names(3)


def test_rate_0_looks_at_everything_at_every_trigger() -> None:
    built = rounds(5, Pace(observe_rate=0, shard_topics=2))
    for now in (1.0, 1.0, 1.001):
        assert list(built.turn(now)) == [[("t00000", "t00001"), ("t00002", "t00003"), ("t00004",)]]


def test_what_changed_lately_comes_first_at_every_trigger() -> None:
    built = rounds(1000)
    built.changed(["t00900", "t00950"], 0.0)
    for now in (1.0, 2.0, 3.0):
        assert looked_at(built, now)[:2] == ["t00900", "t00950"]


def test_what_changed_lately_takes_no_more_than_half_of_the_budget_newest_first() -> None:
    built = rounds(1000)
    built.changed(names(200), 0.0)
    built.changed(["t00999"], 0.5)
    [(lately, *others)] = built.turn(1.0)
    assert len(lately) == 50
    assert "t00999" in lately
    assert sum(len(shard) for shard in others) == 50


def test_change_counts_as_late_for_a_while_only() -> None:
    built = rounds(1000)
    built.changed(["t00999"], 1.0)
    assert "t00999" in looked_at(built, LATELY)
    assert "t00999" not in looked_at(built, LATELY + 1.0)


def test_long_pause_is_not_made_up_for_at_once() -> None:
    built = rounds(10_000)
    looked_at(built, 1.0)
    assert len(looked_at(built, 3600.0)) <= 200


def saved_up(size: int) -> PollSchedule:
    """After so long a quiet time that as much is saved as there are topics; the clock stands at 20 s."""
    built = rounds(size)
    for second in range(1, 20):
        assert len(looked_at(built, float(second), quiet=True)) <= 25
    return built


def test_news_is_answered_with_what_was_saved_twice_through_all_topics_while_nothing_explains_it() -> None:
    built = saved_up(400)
    seen = looked_at(built, 20.0, quiet=True, news=1)
    assert len(seen) >= 300
    for second in range(21, 26):
        seen += looked_at(built, float(second), quiet=True)
    assert min(seen.count(topic) for topic in names(400)) == 2
    assert len(looked_at(built, 30.0, quiet=True)) <= 25 * 5


@pytest.mark.parametrize("changes", [1, 2])
def test_news_that_as_many_differences_explain_spares_the_other_shards(changes: int) -> None:
    built, order = saved_up(400), looked_at(saved_up(400), 20.0, quiet=True, news=1)
    differing = frozenset([order[25 * 3], order[25 * 5]][:changes])
    seen = looked_at(built, 20.0, quiet=True, news=changes, differing=differing)
    assert differing <= set(seen)
    assert len(seen) == 25 * (4 if changes == 1 else 6)
    assert len(looked_at(built, 21.0, quiet=True)) <= 25


def test_news_goes_on_to_be_looked_for_when_the_budget_was_used_up() -> None:
    built = rounds(400)
    looked_at(built, 1.0, quiet=True)
    seen = looked_at(built, 2.0, quiet=True, news=1)
    assert len(seen) < 400
    for second in range(3, 8):
        seen += looked_at(built, float(second), quiet=True)
    assert set(seen) == set(names(400))


def test_turn_without_a_shard_to_pay_for_is_empty() -> None:
    built = rounds(400)
    looked_at(built, 1.0)
    assert looked_at(built, 1.0) == []
    assert looked_at(built, 1.0, quiet=True, news=1) == []


def test_same_topics_keep_their_shards() -> None:
    built = rounds(100)
    before = built.all_shards()
    built.members(list(reversed(names(100))))
    assert all(one is other for one, other in zip(built.all_shards(), before, strict=True))


def test_all_shards_hold_every_topic_once() -> None:
    shards = rounds(1001, Pace(observe_rate=100, shard_topics=7)).all_shards()
    assert [topic for shard in shards for topic in shard] == names(1001)
    assert max(len(shard) for shard in shards) <= 7


def test_topics_that_come_and_go_do_not_send_the_turn_back_to_the_start() -> None:
    built = rounds(1000)
    seen: set[str] = set()
    for second in range(1, 15):
        built.members([*names(1000), f"new{second}"])
        seen |= set(looked_at(built, float(second)))
    assert seen >= set(names(1000))


def test_topic_that_is_gone_is_not_looked_at() -> None:
    built = rounds(10)
    built.changed(["t00009"], 0.0)
    built.members(names(9))
    assert sorted(looked_at(built, 1.0)) == names(9)


@pytest.mark.parametrize("rate", [0, 100])
def test_no_topics_are_no_shards(rate: int) -> None:
    built = rounds(0, Pace(observe_rate=rate))
    assert looked_at(built, 1.0, news=1) == []
    assert built.all_shards() == []
