"""How far apart the job's preflights are."""

from __future__ import annotations

from app.job.preflight_watch import next_preflight


def test_a_quick_preflight_is_made_once_an_interval() -> None:
    assert next_preflight(began=100.0, ended=101.0, interval=60.0) == 160.0


def test_a_preflight_that_takes_long_takes_a_tenth_of_the_time_at_most() -> None:
    assert next_preflight(began=100.0, ended=140.0, interval=60.0) == 500.0
