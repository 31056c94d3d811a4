"""What is missing is believed to be gone once it stays so."""

from __future__ import annotations

from sinks.every_kind.absence import SECONDS, Absence
from sinks.model.times import NEVER_AT


def missing_at(*seen: tuple[bool, float]) -> list[bool]:
    """Whether x counts as gone after each listing: whether that lacked it, and when it was."""
    absence, found = Absence(), []
    for lacks, now in seen:
        absence.observe({"x"} if lacks else (), 1, now)
        found.append(absence.lasting() == {"x"})
    return found


def test_absence_is_believed_after_three_observations_over_a_minute() -> None:
    assert missing_at((True, 0.0), (True, 59.0), (True, 60.0)) == [False, False, True]
    assert missing_at((True, 0.0), (True, 600.0), (True, 601.0)) == [False, False, True]


def test_what_is_there_again_begins_the_count_anew() -> None:
    assert missing_at((True, 0.0), (True, 40.0), (False, 50.0), (True, 70.0)) == [False] * 4


def test_listing_that_is_far_shorter_than_the_one_before_counts_from_anew() -> None:
    absence = Absence()
    absence.observe((), 100, 0.0)
    absence.observe({"x"}, 40, 100.0)
    absence.observe({"x"}, 40, 130.0)
    assert absence.lasting() == set()
    absence.observe({"x"}, 40, 160.0)
    assert absence.lasting() == {"x"}


def test_empty_listing_says_nothing() -> None:
    absence = Absence()
    for at in range(5):
        absence.observe({"x"}, 0, at * SECONDS)
    assert absence.lasting() == set()


def test_observations_that_came_too_soon_leave_one_to_be_made_when_the_time_is_over() -> None:
    absence = Absence[str](observations=2, seconds=3.0)
    for now in (0.0, 0.1):
        absence.observe({"x"}, 1, now)
    assert (absence.lasting(), absence.next_at()) == (set(), 3.0)
    absence.observe({"x"}, 1, 3.0)
    assert (absence.lasting(), absence.next_at()) == ({"x"}, NEVER_AT)
