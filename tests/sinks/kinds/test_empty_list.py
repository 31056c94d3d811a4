"""An empty list is believed once it stays so."""

from __future__ import annotations

from sinks.kinds.empty_list import EmptyList


def test_empty_list_is_believed_after_three_observations_over_a_minute() -> None:
    seen = EmptyList()
    assert [seen.observe(True, now) for now in (0.0, 59.0, 60.0)] == [False, False, True]
    few = EmptyList()
    assert [few.observe(True, now) for now in (0.0, 600.0, 601.0)] == [False, False, True]


def test_list_with_anything_begins_the_count_anew() -> None:
    seen = EmptyList()
    assert [seen.observe(empty, now) for empty, now in ((True, 0.0), (True, 40.0), (False, 50.0), (True, 70.0))] == [
        False,
        False,
        True,
        False,
    ]
