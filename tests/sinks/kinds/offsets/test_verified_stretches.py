"""Which offsets of a partition need no more comparing: what was compared and is whole."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sinks.kafka.ports.groups import LogRange
from sinks.kinds.offsets.exact_runs import ExactRuns
from sinks.kinds.offsets.verified_stretches import (
    MOST_STRETCHES,
    Checked,
    Stretch,
    unverified_from,
    with_checked,
)

LOG = LogRange(0, 1000)

COMPARED = st.builds(
    lambda start, length, whole: Checked(Stretch(start, start + length), whole),
    st.integers(0, 50),
    st.integers(0, 20),
    st.booleans(),
)


@given(st.lists(COMPARED, max_size=12))
def test_an_offset_is_verified_where_the_last_comparison_of_it_found_it_whole(compared: list[Checked]) -> None:
    found = with_checked((), compared)
    for offset in range(80):
        last = [one.whole for one in compared if one.stretch.start <= offset < one.stretch.end][-1:]
        assert any(one.start <= offset < one.end for one in found) is (last == [True])
    assert list(found) == sorted(found)


@given(st.lists(COMPARED, max_size=12), st.integers(0, 30), st.integers(1, 100))
def test_of_all_that_lies_behind_the_first_verified_stretch_nothing_is_left_out(
    compared: list[Checked], start: int, last: int
) -> None:
    log = LogRange(start, 90)
    known = with_checked((), compared)
    begin = unverified_from(log, known, last)
    asked = [one.start for one in known][:1]
    for offset in range(max(start, min([log.end - last, *asked])), begin):
        assert any(one.start <= offset < one.end for one in known)


def test_where_nothing_is_known_the_last_offsets_are_compared() -> None:
    assert unverified_from(LOG, (), 100) == 900
    assert unverified_from(LOG, (), 5000) == 0


def test_behind_what_was_verified_everything_is_compared_however_long_ago_that_was() -> None:
    assert unverified_from(LOG, [Stretch(0, 200)], 100) == 200
    assert unverified_from(LOG, [Stretch(990, 1000)], 100) == 900


def test_where_the_job_compares_a_difference_before_the_oldest_stretch_is_compared_again() -> None:
    known = with_checked([Stretch(0, 500)], [Checked(Stretch(0, 300), False)])
    assert unverified_from(LOG, known, 100) == 500
    assert unverified_from(LOG, known, 100, whole=True) == 0
    assert unverified_from(LOG, (), 100, whole=True) == 900


def test_a_difference_that_was_found_is_compared_again_and_what_retention_took_is_not() -> None:
    known = with_checked((), [Checked(Stretch(0, 1000), True), Checked(Stretch(300, 310), False)])
    assert unverified_from(LOG, known, 100) == 300
    assert unverified_from(LogRange(305, 1000), known, 100) == 305
    assert unverified_from(LogRange(310, 1000), known, 100) == 1000


def test_of_too_many_stretches_those_behind_the_first_are_compared_again() -> None:
    compared = [Checked(Stretch(2 * at, 2 * at + 1), True) for at in range(MOST_STRETCHES + 5)]
    found = with_checked((), compared)
    assert len(found) == MOST_STRETCHES
    assert (found[0], found[-1]) == (compared[0].stretch, compared[-1].stretch)
    assert unverified_from(LOG, found, 1) == 1


def test_stretches_come_back_from_the_ledger_as_they_were_written() -> None:
    known = ExactRuns([], 7, "ids", (Stretch(3, 9), Stretch(20, 30)))
    assert ExactRuns.parse(known.as_text()) == known
