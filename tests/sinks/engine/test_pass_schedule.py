"""When a flow's next pass begins: at a reason, never too close to the last, never for no reason before it is due."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinks.engine.pass_schedule import BUSY_SHARE, LONGEST_REST, POLL_REST, PassSchedule, Reason

REASONS = st.sampled_from(list(Reason))


def after_a_pass(took: float = 0.01, due: float = float("inf"), now: float = 100.0) -> PassSchedule:
    schedule = PassSchedule(shortest=0.2)
    schedule.begin()
    schedule.end(now, took, due)
    return schedule


def test_the_first_pass_is_due_at_once() -> None:
    assert PassSchedule().next_at() == float("-inf")


def test_without_a_reason_nothing_begins_before_it_is_due() -> None:
    assert after_a_pass(due=107.0).next_at() == 107.0
    assert after_a_pass().next_at() == float("inf")


@pytest.mark.parametrize("reason", list(Reason))
def test_a_reason_is_answered_once_the_shortest_distance_is_over(reason: Reason) -> None:
    schedule = after_a_pass()
    schedule.give(reason)
    assert schedule.next_at() == pytest.approx(100.2)


def test_what_is_only_due_again_at_once_rests_longer_than_a_reason() -> None:
    assert after_a_pass(took=0.1, due=100.0).next_at() == pytest.approx(99.9 + POLL_REST)


def test_a_poll_that_is_due_does_not_rest_once_more_after_a_pass_as_long_as_its_rest() -> None:
    assert after_a_pass(took=0.45, due=100.0).next_at() == pytest.approx(100.2)


def test_a_long_pass_makes_the_next_one_wait_unless_somebody_asked() -> None:
    schedule = after_a_pass(took=1.5)
    schedule.give(Reason.SIGNAL)
    assert schedule.next_at() == pytest.approx(100.5)
    schedule.give(Reason.REQUEST)
    assert schedule.next_at() == pytest.approx(100.2)


def test_a_pass_has_the_reasons_that_came_before_it() -> None:
    schedule = after_a_pass()
    schedule.give(Reason.SIGNAL)
    schedule.give(Reason.STREAM)
    assert schedule.begin() == {Reason.SIGNAL, Reason.STREAM}
    assert schedule.begin() == {Reason.POLL}


def test_a_reason_that_comes_during_a_pass_is_the_next_ones() -> None:
    schedule = after_a_pass()
    schedule.begin()
    schedule.give(Reason.SIGNAL)
    schedule.end(200.0, 0.1, float("inf"))
    assert schedule.next_at() == pytest.approx(200.2)


@given(st.lists(st.tuples(st.sampled_from([r for r in Reason if r is not Reason.REQUEST]), st.floats(0.0, 5.0))))
def test_a_storm_of_reasons_takes_no_more_than_its_share_of_the_time(storm: list[tuple[Reason, float]]) -> None:
    schedule, now, worked = PassSchedule(shortest=0.0), 0.0, 0.0
    for reason, took in storm:
        schedule.give(reason)
        now = max(now, schedule.next_at()) + took
        schedule.begin()
        schedule.end(now, took, now)
        worked += took
    schedule.give(Reason.SIGNAL)
    capped = sum(max(0.0, took - LONGEST_REST) for _, took in storm)
    assert worked <= BUSY_SHARE * (max(now, schedule.next_at()) + capped) + 1e-6
