"""Exact offsets: what was verified answers before anything else, until a sync says that it holds no more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinks.kafka.ports.groups import LogRange
from sinks.kinds.offsets.exact_runs import (
    MOST_RUNS,
    MOST_STRETCHES,
    Checked,
    ExactRuns,
    Run,
    Stretch,
    remember,
    unverified_from,
    with_checked,
)
from sinks.kinds.offsets.sync_history import Histories, History
from sinks.kinds.offsets.translation import Answer, Evidence, LogEnds, Method, translate
from sinks.ledger.ledger import Entry, Ledger
from streaming.mm2.records import TopicPartition
from tests.memory.memory_cluster import MemoryCluster

WHERE = TopicPartition("orders", 0)
RUNS = ExactRuns([Run(10, 5, 10), Run(25, 15, 5), Run(40, 22, 5)], 7)


@pytest.mark.parametrize(
    ("upstream", "downstream"),
    [(9, None), (10, 5), (19, 14), (20, 15), (22, 15), (25, 15), (30, 20), (33, None), (40, 22), (45, 27), (46, None)],
)
def test_an_offset_is_known_in_a_run_and_in_a_gap_that_the_target_does_not_have(
    upstream: int, downstream: int | None
) -> None:
    assert RUNS.offset_of(upstream) == downstream


@pytest.mark.parametrize(
    ("upstream", "downstream", "fits"),
    [(12, 7, True), (12, 8, False), (5, 2, True), (5, 5, False), (22, 14, False), (50, 27, True), (50, 26, False)],
)
def test_a_sync_fits_where_it_says_nothing_else(upstream: int, downstream: int, fits: bool) -> None:
    assert RUNS.fits(upstream, downstream) is fits


def test_newer_runs_win_and_the_oldest_are_forgotten() -> None:
    renewed = RUNS.renewed([Run(22, 13, 10)], 9)
    assert renewed == ExactRuns([Run(22, 13, 10)], 9)
    assert RUNS.renewed([Run(45, 27, 5)], 9).runs == [Run(10, 5, 10), Run(25, 15, 5), Run(40, 22, 10)]
    many = [Run(3 * at, 2 * at, 1) for at in range(MOST_RUNS + 5)]
    assert RUNS.renewed(many, 9).runs == many[5:]


def test_runs_come_back_from_text_and_what_is_none_is_refused() -> None:
    assert ExactRuns.parse(RUNS.as_text()) == RUNS
    for text in ("{}", '[1,"",[1,2]]', '[1,"",[5,5,5],[6,20,1]]', '[1,"",[-1,0,1]]', "[1,[5,5,5]]", "x"):
        with pytest.raises((ValueError, TypeError)):
            ExactRuns.parse(text)


def test_an_exact_offset_is_preferred_to_a_match_and_reads_nothing_twice() -> None:
    history = History(10, 5, 1)
    history.take(40, 22, 2)
    ends = LogEnds(LogRange(0, 60), LogRange(0, 40))
    found = translate(26, ends, Evidence(history, matched=10, verified=16))
    assert found == Answer(26, 16, Method.VERIFIED, 0)


def flow_ledger() -> Ledger:
    cluster = MemoryCluster("b")
    return Ledger("lockstep-ledger.a.internal", cluster, cluster, 1)


def histories_of(*syncs: tuple[int, int]) -> Histories:
    histories = Histories()
    for position, (upstream, downstream) in enumerate(syncs):
        histories.take(TopicPartition("orders", 0), upstream, downstream, position)
    return histories


def test_what_was_verified_where_mm2_began_again_is_no_answer_while_originals_lie_before_it() -> None:
    """Retention took 60 to 95 before MM2 sent them again: the copy has them at 60 to 95 alone."""
    history = History(0, 0, 0)
    history.take(100, 100, 1)
    history.take(50, 101, 2)
    history.take(96, 111, 3)
    history.take(150, 165, 4)
    found = translate(50, LogEnds(LogRange(96, 151), LogRange(0, 166)), Evidence(history, verified=101))
    assert isinstance(found, Answer)
    assert found.downstream <= 60


def test_what_was_verified_is_kept_in_the_ledger_and_believed_by_who_reads_it() -> None:
    ledger, histories = flow_ledger(), histories_of((10, 5), (40, 22))
    remember(ledger, [(WHERE, RUNS.runs)], histories.exact, 1)
    histories.exact.renew(ledger)
    assert histories.exact_offset(WHERE, 26) == 16


@pytest.mark.parametrize(("upstream", "downstream"), [(30, 30), (47, 20), (60, 200)])
def test_a_later_sync_of_a_restart_or_of_a_truncation_ends_that_for_good(upstream: int, downstream: int) -> None:
    ledger, histories = flow_ledger(), histories_of((10, 5), (40, 22))
    remember(ledger, [(WHERE, RUNS.runs)], histories.exact, 1)
    histories.exact.renew(ledger)
    histories.take(TopicPartition("orders", 0), upstream, downstream, 2)
    assert histories.exact_offset(WHERE, 26) is None
    histories.exact.renew(ledger)
    assert histories.exact_offset(WHERE, 26) is None
    assert ledger.values(Entry.EXACT_OFFSETS) == {}


def test_a_sync_that_goes_on_changes_nothing() -> None:
    ledger, histories = flow_ledger(), histories_of((10, 5), (40, 22))
    remember(ledger, [(WHERE, RUNS.runs)], histories.exact, 1)
    histories.exact.renew(ledger)
    histories.take(TopicPartition("orders", 0), 60, 40, 2)
    assert histories.exact_offset(WHERE, 26) == 16


def test_a_recreated_topic_has_no_exact_offsets() -> None:
    ledger, histories = flow_ledger(), histories_of((10, 5), (40, 22))
    remember(ledger, [(WHERE, RUNS.runs)], histories.exact, 1)
    histories.exact.renew(ledger)
    histories.drop("orders")
    histories.exact.renew(ledger)
    assert histories.exact.of(WHERE) is None


def test_an_exact_offset_lies_between_two_syncs_whatever_the_ledger_says() -> None:
    ledger, histories = flow_ledger(), histories_of((10, 10), (20, 20))
    forged = [Run(11, 15, 1), Run(21, 1000, 1)]
    ledger.put({(Entry.EXACT_OFFSETS, ("orders", "0")): ExactRuns(forged, 1).as_text()})
    histories.exact.renew(ledger)
    assert (histories.exact_offset(WHERE, 11), histories.exact_offset(WHERE, 21)) == (15, None)


def test_a_truncation_ends_what_was_verified_farther_than_this_process_has_read() -> None:
    ledger, histories = flow_ledger(), histories_of((10, 5), (40, 22))
    remember(ledger, [(WHERE, RUNS.runs)], histories.exact, 30)
    histories.exact.forget(WHERE)
    histories.exact.renew(ledger)
    assert ledger.values(Entry.EXACT_OFFSETS) == {}


# Which offsets of a partition need no more comparing: what was compared and is whole.


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
