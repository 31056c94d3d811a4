"""Which groups a pass compares, and when they are polled: commits first, as many as there is time for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinks.kinds.offsets.polled_groups import (
    LEAST_IN_A_PASS,
    OTHERS_IN_A_PASS,
    OTHERS_WHILE_BEHIND,
    POLL_LEAST,
    POLL_LONGEST,
    POLL_SHARE,
    SECONDS_IN_A_PASS,
    STORM_LEAST,
    GroupSchedule,
    PollPace,
)


def names(count: int) -> list[str]:
    return [f"g{number:05}" for number in range(count)]


def committed(count: int) -> GroupSchedule:
    schedule = GroupSchedule()
    schedule.committed(names(count))
    return schedule


def test_a_pass_compares_as_many_commits_as_the_last_ones_managed_in_its_time() -> None:
    schedule = committed(10_000)
    assert len(schedule.turn(0.0)) == LEAST_IN_A_PASS
    schedule.took(LEAST_IN_A_PASS, SECONDS_IN_A_PASS / 8)
    assert len(schedule.turn(0.0)) == 8 * LEAST_IN_A_PASS
    schedule.took(4000, 4 * SECONDS_IN_A_PASS)
    assert len(schedule.turn(0.0)) == 1000


def test_few_groups_do_not_tell_how_many_there_is_time_for() -> None:
    schedule = committed(10_000)
    schedule.took(1, 0.0)
    assert len(schedule.turn(0.0)) == LEAST_IN_A_PASS


@given(st.lists(st.tuples(st.integers(1, 20_000), st.floats(0.0, 60.0)), max_size=10))
def test_however_slow_a_pass_compares_some(passes: list[tuple[int, float]]) -> None:
    schedule = committed(1000)
    for groups, seconds in passes:
        schedule.took(groups, seconds)
    assert len(schedule.turn(0.0)) >= LEAST_IN_A_PASS


def test_commits_come_before_others_of_which_there_are_few() -> None:
    schedule = committed(3)
    schedule.compare_all([*names(3), *(f"other{number:04}" for number in range(500))], now=1.0)
    turn = schedule.turn(1.0)
    assert turn[:3] == names(3)
    assert len(turn) == 3 + OTHERS_IN_A_PASS


def test_hardly_any_others_are_compared_while_commits_wait_for_their_turn() -> None:
    schedule = committed(LEAST_IN_A_PASS + 1)
    schedule.checkpointed([f"other{number:04}" for number in range(500)], now=1.0)
    assert len(schedule.turn(1.0)) == LEAST_IN_A_PASS + OTHERS_WHILE_BEHIND


def test_who_committed_first_is_compared_first() -> None:
    schedule = GroupSchedule()
    schedule.committed(["z"])
    schedule.committed(["a", "z"])
    assert schedule.turn(0.0) == ["z", "a"]


STORMY = 100
"""Passes."""


def storm(storming: list[str], quiet: list[str]) -> dict[str, list[int]]:
    """In which passes each group was compared, while some commit before every pass, and all are compared in full each
    seventh pass."""
    schedule, passes = GroupSchedule(), dict[str, list[int]]({group: [] for group in [*storming, *quiet]})
    for number in range(1, STORMY):
        schedule.committed(storming)
        if number % 7 == 0:
            schedule.compare_all(sorted(passes), float(number))
        for group in schedule.turn(float(number)):
            schedule.compared(group, (), float(number))
            passes[group].append(number)
        schedule.took(LEAST_IN_A_PASS, 2 * SECONDS_IN_A_PASS)
    return passes


def longest_wait(passes: list[int]) -> int:
    return max(after - before for before, after in zip([0, *passes], [*passes, STORMY], strict=True))


def test_in_a_storm_that_does_not_end_each_group_is_compared_in_its_turn_whatever_its_name() -> None:
    storming = names(9 * LEAST_IN_A_PASS)
    passes = storm(storming, [])
    assert max(longest_wait(passes[group]) for group in storming) <= 9 + 1


def test_in_a_storm_that_does_not_end_the_quiet_groups_are_compared_in_their_turn_too() -> None:
    quiet = [f"{first}-quiet-{number}" for number in range(250) for first in "az"]
    passes = storm(names(9 * LEAST_IN_A_PASS), quiet)
    turns = len(quiet) // OTHERS_WHILE_BEHIND
    assert max(longest_wait(passes[group]) for group in quiet) <= 2 * turns


def test_a_checkpoint_puts_no_group_back_that_has_just_committed() -> None:
    schedule = committed(1000)
    schedule.checkpointed([*names(1000), "other"], now=5.0)
    assert len(schedule.turn(5.0)) == LEAST_IN_A_PASS + 1
    assert schedule.turn(4.0) == names(LEAST_IN_A_PASS)


def test_it_is_behind_while_more_groups_committed_than_a_turn_takes() -> None:
    schedule = committed(LEAST_IN_A_PASS + 1)
    for group in schedule.turn(0.0):
        assert schedule.behind
        schedule.compared(group, [], 0.0)
    schedule.turn(0.0)
    assert not schedule.behind


def test_the_next_group_is_due_when_the_schedule_says() -> None:
    schedule = GroupSchedule()
    assert schedule.next_at() == float("inf")
    schedule.checkpointed(["g"], 7.0)
    assert schedule.next_at() == 7.0


@pytest.mark.parametrize(("seconds", "rest"), [(0.001, POLL_LEAST), (0.2, 0.2 / POLL_SHARE)])
def test_polls_take_their_share_of_the_time(seconds: float, rest: float) -> None:
    polls = PollPace()
    assert polls.due <= 0.0
    polls.took(10.0, seconds, 1000, 3)
    assert polls.due > 10.0 + rest * 0.99
    assert polls.due <= 10.0 + rest


def test_a_poll_that_was_held_up_once_makes_the_next_ones_no_later() -> None:
    polls = PollPace()
    polls.took(10.0, 0.02, 1000, 3)
    polls.took(20.0, 3.0, 1000, 3)
    assert polls.due <= 20.0 + POLL_LEAST


def test_polls_are_never_far_apart_however_long_they_take() -> None:
    polls = PollPace()
    polls.took(10.0, 3.0, 1000, 3)
    assert polls.due > 10.0 + POLL_LONGEST * 0.99
    assert polls.due <= 10.0 + POLL_LONGEST


def test_where_most_groups_committed_the_others_are_polled_at_once() -> None:
    polls = PollPace()
    polls.took(10.0, 0.2, 2000, 1500)
    assert polls.due <= 10.0


@pytest.mark.parametrize(("committed", "at_once"), [(STORM_LEAST - 1, False), (STORM_LEAST, True)])
def test_a_few_that_commit_are_no_reason_to_poll_the_others_at_once(committed: int, at_once: bool) -> None:
    polls = PollPace()
    polls.took(10.0, 0.2, STORM_LEAST, committed)
    assert (polls.due <= 10.0) is at_once


def test_a_single_group_that_commits_is_no_storm() -> None:
    polls = PollPace()
    polls.took(10.0, 0.001, 1, 1)
    assert polls.due > 10.0
