"""Exact offsets: what was verified answers before anything else, until a sync says that it holds no more."""

from __future__ import annotations

import pytest

from sinks.kafka.memory.memory_cluster import MemoryCluster
from sinks.kafka.ports.groups import LogRange
from sinks.kinds.offsets.exact_runs import MOST_RUNS, ExactRuns, Run, remember
from sinks.kinds.offsets.histories import Histories
from sinks.kinds.offsets.history import History
from sinks.kinds.offsets.translation import Answer, Evidence, LogEnds, Method, translate
from sinks.ledger.ledger import Entry, Ledger
from streaming.mm2.records import TopicPartition

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
        histories.take("orders", 0, upstream, downstream, position)
    return histories


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
    histories.take("orders", 0, upstream, downstream, 2)
    assert histories.exact_offset(WHERE, 26) is None
    histories.exact.renew(ledger)
    assert histories.exact_offset(WHERE, 26) is None
    assert ledger.values(Entry.EXACT_OFFSETS) == {}


def test_a_sync_that_goes_on_changes_nothing() -> None:
    ledger, histories = flow_ledger(), histories_of((10, 5), (40, 22))
    remember(ledger, [(WHERE, RUNS.runs)], histories.exact, 1)
    histories.exact.renew(ledger)
    histories.take("orders", 0, 60, 40, 2)
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
