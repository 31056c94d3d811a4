"""The budget of polls: a share of the time, measured, saved up while nothing happens, limited by a rate."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinks.flow_settings import Pace
from sinks.kinds.topics.poll_schedule import DEARER, FIRST_GUESS, POLLS_SAVED, SAVED_FOR, TELLING_TOPICS, PollBudget


def spent(budget: PollBudget, topics: int, seconds: float) -> PollBudget:
    """A budget whose polls cost so much, with nothing left."""
    while budget.left > 0:
        budget.spend(topics, seconds)
    return budget


def test_the_first_poll_of_all_is_afforded_at_once() -> None:
    budget = PollBudget(Pace(observe_share=0.1))
    budget.earn(0.0, 10_000)
    assert budget.affords(POLLS_SAVED * 10_000)


def test_a_poll_of_all_is_afforded_after_a_while_without_changes_however_large_the_cluster() -> None:
    budget = PollBudget(Pace(observe_share=0.01))
    budget.earn(0.0, 100_000)
    spent(budget, 1000, 0.1)
    budget.earn(1e6, 100_000)
    assert budget.affords(100_000)


@given(
    st.floats(0.01, 1.0),
    st.lists(st.tuples(st.floats(0.0, 20.0), st.integers(TELLING_TOPICS, 500), st.floats(1e-5, 1e-3)), max_size=40),
)
def test_polls_take_no_more_than_the_share_and_what_was_saved(
    share: float, polls: list[tuple[float, int, float]]
) -> None:
    """Counted as what a topic takes at least: here the price of the cheapest poll."""
    budget, now, taken = PollBudget(Pace(observe_share=share)), 0.0, 0.0
    budget.earn(now, 500)
    least = min((cost for _, _, cost in polls), default=FIRST_GUESS)
    for pause, topics, a_topic in polls:
        now += pause
        budget.earn(now, 500)
        if budget.affords(topics):
            budget.spend(topics, topics * a_topic)
            taken += topics * min(least, FIRST_GUESS)
    saved = max(share * SAVED_FOR, POLLS_SAVED * 500 * 1e-3)
    # What a poll costs is known when it is over: the last one may cost more than was left.
    assert taken <= saved + share * now + 500 * 1e-3


def test_a_broker_that_became_slow_is_known_to_be_after_a_few_polls() -> None:
    budget = PollBudget(Pace(observe_share=0.1))
    budget.earn(0.0, 100)
    before = budget.left
    for _ in range(25):
        budget.spend(100, 100 * 10 * FIRST_GUESS)
    budget.earn(1e6, 100)
    assert budget.left == pytest.approx(before / 10, rel=DEARER - 1)


def test_one_poll_that_waited_for_others_makes_the_next_ones_little_dearer() -> None:
    budget = PollBudget(Pace(observe_share=0.1))
    budget.earn(0.0, 100)
    before = budget.left
    budget.spend(100, 5.0)
    assert budget.left > before / DEARER - 101


@given(st.integers(1, 300), st.lists(st.floats(0.0, 5.0), min_size=1, max_size=40))
def test_a_rate_limits_the_topics_whatever_the_share_allows(rate: int, pauses: list[float]) -> None:
    budget, now, polled = PollBudget(Pace(observe_share=1.0, observe_rate=rate)), 0.0, 0
    budget.earn(now, 50)
    for pause in pauses:
        now += pause
        budget.earn(now, 50)
        while budget.affords(7):
            budget.spend(7, 0.0)
            polled += 7
    assert polled <= max(POLLS_SAVED * 50, rate) + rate * now + 1e-3


def test_the_wait_is_until_the_share_has_paid() -> None:
    budget = PollBudget(Pace(observe_share=0.1))
    budget.earn(0.0, 100)
    spent(budget, 100, 0.05)
    wait = budget.wait_for(100)
    assert wait > 0
    budget.earn(wait * 0.99, 100)
    assert not budget.affords(100)
    budget.earn(wait * 1.01, 100)
    assert budget.affords(100)


def test_a_long_pause_is_not_made_up_for_where_it_may_not_be() -> None:
    budget = PollBudget(Pace(observe_share=0.1))
    budget.earn(0.0, 10)
    spent(budget, 100, 100 * FIRST_GUESS)
    budget.earn(3600.0, 10, longest=2.0)
    assert budget.left <= 2.0 * 0.1 / FIRST_GUESS
