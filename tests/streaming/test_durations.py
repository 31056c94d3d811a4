"""Lengths of time as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.durations import seconds_of, written


@pytest.mark.parametrize(
    ("text", "seconds"), [("500 ms", 0.5), ("90", 90.0), ("15m", 900.0), ("1h", 3600.0), ("2 days", 172800.0)]
)
def test_a_length_of_time_is_read_with_its_unit(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "-1s", "1 fortnight", "s"])
def test_what_is_no_length_of_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        seconds_of(text)


@pytest.mark.parametrize(
    ("seconds", "text"), [(1.0, "1 second"), (60.0, "1 minute"), (90.0, "90 seconds"), (0.5, "500 milliseconds")]
)
def test_a_length_of_time_is_written_with_its_largest_whole_unit(seconds: float, text: str) -> None:
    assert written(seconds) == text


@given(st.integers(1, 10**7))
def test_what_is_written_is_read_as_the_same(milliseconds: int) -> None:
    assert seconds_of(written(milliseconds / 1000)) == pytest.approx(milliseconds / 1000)
