"""Windows between offset-syncs: what lies in one on the source is what lies in it on the target, restarts or not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sinks.kafka.ports.groups import LogRange
from sinks.kinds.offsets.sync_history import Pair, Restart
from sinks.verify.windows import Window, cells, cut
from tests.sinks.kinds.offsets.mm2_partition import WITH_RESTARTS, Partition, Step, untold

ALL = LogRange(0, 100)


def test_two_syncs_make_a_closed_window_between_two_open_ones() -> None:
    pairs = [Pair(10, 5), Pair(60, 50)]
    assert cut(pairs, (), ALL, LogRange(0, 80), least=1) == [
        Window(0, 10, 0, 5, begins_open=True),
        Window(10, 60, 5, 50),
        Window(60, 100, 50, 80, ends_open=True),
    ]


def test_without_a_sync_there_is_one_open_window_that_begins_with_both_whole_logs() -> None:
    assert cut((), (), ALL, LogRange(0, 80)) == [Window(0, 100, 0, 80, ends_open=True)]
    assert cut((), (), LogRange(7, 100), LogRange(0, 80)) == [Window(7, 100, 0, 80, begins_open=True, ends_open=True)]


def test_empty_logs_have_no_window() -> None:
    assert cut((), (), LogRange(3, 3), LogRange(0, 0)) == []


def test_syncs_of_records_that_either_side_has_deleted_bound_no_window() -> None:
    pairs = [Pair(10, 5), Pair(30, 25), Pair(60, 50)]
    found = cut(pairs, (), LogRange(20, 100), LogRange(0, 80), least=1)
    assert found[0] == Window(20, 30, 0, 25, begins_open=True)
    found = cut(pairs, (), ALL, LogRange(40, 80), least=1)
    assert found[0] == Window(0, 60, 40, 50, begins_open=True)


def test_windows_begin_at_the_last_sync_before_the_offset_asked_for() -> None:
    pairs = [Pair(10, 5), Pair(30, 25), Pair(60, 50)]
    assert cut(pairs, (), ALL, LogRange(0, 80), since=45, least=1)[0] == Window(30, 60, 25, 50)


def test_what_the_target_has_before_the_first_sync_lies_in_a_window_though_the_source_has_nothing_there() -> None:
    assert cut([Pair(0, 30)], (), ALL, LogRange(0, 80))[0] == Window(0, 0, 0, 30, begins_open=True)


def test_syncs_ahead_of_what_is_read_of_the_target_are_left_out() -> None:
    assert cut([Pair(10, 5), Pair(90, 85)], (), ALL, LogRange(0, 80), least=1)[-1] == Window(
        10, 100, 5, 80, ends_open=True
    )


def test_a_restart_lies_inside_one_window_up_to_what_mm2_had_never_sent() -> None:
    pairs = [Pair(0, 0), Pair(30, 30), Pair(40, 60), Pair(50, 70), Pair(80, 100)]
    found = cut(pairs, [Restart(60, 70)], ALL, LogRange(0, 120), least=1)
    assert found == [
        Window(0, 30, 0, 30),
        Window(30, 80, 30, 100, resent=True),
        Window(80, 100, 100, 120, ends_open=True),
    ]


def test_even_windows_are_compared_in_cells_and_uneven_ones_whole() -> None:
    assert list(cells(Window(5, 30, 105, 130), 10)) == [
        Window(5, 15, 105, 115),
        Window(15, 25, 115, 125),
        Window(25, 30, 125, 130),
    ]
    assert list(cells(Window(5, 30, 105, 129), 10)) == [Window(5, 30, 105, 129)]


def windows_of(partition: Partition, since: int = 0, least: int = 1) -> list[Window]:
    history = partition.history
    pairs, restarts = (list(history.pairs()), history.restarts()) if history else ([], [])
    ends = partition.ends
    assert ends.source is not None
    return cut(pairs, restarts, ends.source, ends.target, since, least)


@given(WITH_RESTARTS, st.integers(0, 60), st.integers(1, 20))
def test_a_window_has_the_same_records_on_both_sides(steps: list[Step], since: int, least: int) -> None:
    partition = Partition()
    for step in steps:
        partition.step(step)
    for window in windows_of(partition, since, least):
        check(partition, window)


@given(untold(), st.integers(0, 60), st.integers(1, 20))
def test_a_closed_window_has_them_where_syncs_of_restarts_never_came(steps: list[Step], since: int, least: int) -> None:
    partition = Partition()
    for step in steps:
        partition.step(step)
    for window in windows_of(partition, since, least):
        if window.closed:
            check(partition, window)


def check(partition: Partition, window: Window) -> None:
    ours = {at for at in partition.source if window.upstream <= at < window.upstream_end}
    theirs = set(partition.target[window.downstream : window.downstream_end])
    assert theirs <= ours
    if not window.ends_open:
        assert theirs == ours
    else:
        # What MM2 has still to copy lies behind all that it has copied.
        assert all(at > max(theirs, default=-1) for at in ours - theirs)


@given(WITH_RESTARTS, st.integers(1, 20))
def test_windows_cover_both_logs_without_a_gap(steps: list[Step], least: int) -> None:
    partition = Partition()
    for step in steps:
        partition.step(step)
    at = (0, 0)
    for window in windows_of(partition, 0, least):
        assert (window.upstream, window.downstream) == at
        at = (window.upstream_end, window.downstream_end)
    assert at == (partition.source_end, len(partition.target))
