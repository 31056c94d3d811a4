"""What a moved group skips and reads twice, on small logs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.drill.outcome_rows import Partition
from bench.drill.source_load import Entry

TEN = list(range(10))
"""Ids; each record's offset on the source is ten times its id."""


class Moved(NamedTuple):
    """Records."""

    skipped: int
    again: int
    least: int


def moved(of: Partition, position: int, start: int) -> Moved:
    found = of.moved(position, start)
    assert found is not None
    return Moved(*found, of.least(position))


def log(names: Sequence[int], step: int = 1) -> list[Entry]:
    return [(place * step, name) for place, name in enumerate(names)]


def partition(copied: Sequence[int], written: Sequence[int] = TEN, kept: Sequence[int] | None = None) -> Partition:
    source = [(name * 10, name) for name in (written if kept is None else kept)]
    return Partition({name: name * 10 for name in written}, source, log(copied), len(copied))


def test_exact_offset_skips_nothing_and_reads_nothing_twice() -> None:
    assert moved(partition(TEN), 40, 4) == Moved(skipped=0, again=0, least=0)


def test_offset_too_low_reads_twice_what_lies_between() -> None:
    assert moved(partition(TEN), 40, 1) == Moved(skipped=0, again=3, least=0)


def test_offset_too_high_skips_what_lies_between() -> None:
    assert moved(partition(TEN), 40, 7) == Moved(skipped=3, again=0, least=0)


def test_group_at_the_end_needs_nothing_and_may_start_at_the_end() -> None:
    assert moved(partition(TEN), 91, 10) == Moved(skipped=0, again=0, least=0)
    assert moved(partition(TEN), 91, 8) == Moved(skipped=0, again=2, least=0)


def test_position_in_a_hole_of_the_source_counts_as_that_of_the_next_record() -> None:
    assert moved(partition(TEN), 41, 5) == moved(partition(TEN), 50, 5) == Moved(skipped=0, again=0, least=0)


def test_record_sent_again_is_read_twice_even_by_a_group_that_needs_it() -> None:
    assert moved(partition([0, 1, 2, 3, 2, 3, 4], range(5)), 10, 1) == Moved(skipped=0, again=2, least=2)


def test_later_copy_of_what_was_sent_again_is_as_good_and_spares_the_first() -> None:
    resent = partition([0, 1, 2, 3, 2, 3, 4], range(5))
    assert resent.last_safe(30) == 5
    assert moved(resent, 30, 3) == Moved(skipped=0, again=2, least=0)
    assert moved(resent, 30, 5) == Moved(skipped=0, again=0, least=0)
    assert moved(resent, 30, 6) == Moved(skipped=1, again=0, least=0)


def test_record_not_copied_yet_is_not_skipped() -> None:
    behind = partition(TEN[:6])
    assert moved(behind, 40, 6) == Moved(skipped=2, again=0, least=0)


def test_what_came_after_the_moment_that_counts_is_not_there() -> None:
    whole = partition(TEN)
    earlier = Partition(whole.written, whole.source, whole.target, end=6)
    assert moved(earlier, 20, 0) == Moved(skipped=0, again=2, least=0)


def test_record_that_compaction_took_from_the_source_is_not_needed() -> None:
    compacted = partition([0, 1, 5, 9], kept=[5, 9])
    assert moved(compacted, 0, 2) == Moved(skipped=0, again=0, least=0)


def test_record_that_compaction_took_from_the_target_is_not_skipped() -> None:
    assert moved(partition([9]), 30, 0).skipped == 0


def test_record_of_an_aborted_transaction_is_neither_needed_nor_read_twice() -> None:
    assert moved(partition([0, 1, 777, 2], range(3)), 10, 1) == Moved(skipped=0, again=0, least=0)


logs = st.lists(st.sampled_from(TEN), max_size=20)


@settings(max_examples=200)
@given(copied=logs, position=st.integers(0, 110))
def test_last_safe_offset_skips_nothing_and_the_next_one_does(copied: list[int], position: int) -> None:
    found = partition(copied)
    safe = found.last_safe(position)
    assert moved(found, position, safe).skipped == 0
    if safe < found.end:
        assert moved(found, position, safe + 1).skipped > 0


@settings(max_examples=200)
@given(copied=logs, position=st.integers(0, 110), start=st.integers(0, 20))
def test_no_offset_that_skips_nothing_reads_fewer_twice_than_the_least(
    copied: list[int], position: int, start: int
) -> None:
    found = moved(partition(copied), position, start)
    if found.skipped == 0:
        assert found.again >= found.least


@pytest.mark.parametrize("start", range(11))
def test_every_record_is_either_skipped_or_in_what_is_read(start: int) -> None:
    found = moved(partition(TEN), 50, start)
    assert found.skipped == max(0, start - 5)
    assert found.again == max(0, 5 - start)
