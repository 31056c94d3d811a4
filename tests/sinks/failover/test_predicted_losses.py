"""What a failover without the source says is lost: never too few, and as many as there are where that can be known."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sinks.failover.predicted_loss import predicted
from sinks.failover.record_matching import ReadLimits, new_copies
from sinks.kafka.ports.groups import LogRange
from sinks.kafka.ports.record_reader import Stamp
from sinks.ledger.kept_end_offsets import FAR, KeptEndOffsets, KnownPosition, furthest, most_missing
from tests.memory.memory_records import MemoryLog, MemoryRecords
from tests.sinks.failover.sampled_mirror import HERE, THERE, SampledMirror

Step = Callable[[SampledMirror], None]

few = st.integers(0, 9)
HARMLESS: list[st.SearchStrategy[Step]] = [
    st.builds(lambda number: lambda one: one.write(number), few),
    st.builds(lambda number: lambda one: one.copy(number), few),
    st.just(SampledMirror.commit),
    st.just(SampledMirror.count),
    st.builds(lambda number: lambda one: one.sample(number), few),
    st.builds(lambda number: lambda one: one.kill(number), st.integers(0, 2)),
]
HARMFUL: list[st.SearchStrategy[Step]] = [
    st.builds(lambda number: lambda one: one.expire(number), few),
    st.just(SampledMirror.mark),
    st.just(SampledMirror.compact),
    st.just(SampledMirror.restart_job),
]
steps = st.lists(st.one_of(*HARMLESS, *HARMFUL), max_size=40)


def played(taken: list[Step], *, compacted: bool = False) -> SampledMirror:
    """After these, at least one sample among them."""
    mirror = SampledMirror()
    mirror.source.compacting = {"x"} if compacted else set()
    for step in taken:
        step(mirror)
    if not mirror.kept:
        mirror.sample(0)
    return mirror


@settings(max_examples=300)
@given(steps, st.booleans())
def test_a_prediction_is_never_less_than_what_is_missing_of_what_the_job_had_seen(
    taken: list[Step], compacted: bool
) -> None:
    mirror = played(taken, compacted=compacted)
    assert mirror.predicted >= mirror.missing


@settings(max_examples=300)
@given(st.lists(st.one_of(*HARMLESS), max_size=40))
def test_a_prediction_is_what_is_missing_where_there_are_no_gaps_and_the_job_saw_the_topic_before_mm2_died(
    taken: list[Step],
) -> None:
    mirror = SampledMirror()
    mirror.sample(0)
    for step in taken:
        step(mirror)
    assert mirror.predicted == mirror.missing


def test_what_mm2_sends_again_is_no_copy_of_a_later_record() -> None:
    mirror = played([lambda one: one.write(9), lambda one: one.copy(9), lambda one: one.sample(9)])
    mirror.write(5)
    mirror.sample(0)
    mirror.kill()
    mirror.copy(7)
    assert (mirror.predicted, mirror.missing) == (5, 5)


@pytest.mark.parametrize(("compacted", "most"), [(False, 5), (True, 9)])
def test_where_compaction_may_have_taken_earlier_copies_nothing_counts_as_new_once_records_were_sent_again(
    compacted: bool, most: int
) -> None:
    mirror = played([lambda one: one.write(9), lambda one: one.copy(9), lambda one: one.sample(9)])
    mirror.target.compacting = {"a.x"} if compacted else set()
    mirror.write(6)
    mirror.copy(1)
    mirror.sample(0)
    mirror.kill()
    mirror.copy(2)
    assert mirror.predicted == most


def came(*stamps: Stamp, since: int = 2, most: int = 100) -> int | None:
    """Of copies `0`, `1`, `0` and `2`, stamped so, those at or behind an offset that are new."""
    log = MemoryLog()
    for value, stamp in zip((b"0", b"1", b"0", b"2"), stamps, strict=True):
        log.append(b"key", value, (2000 if stamp is Stamp.APPEND else 1000) + log.end * (stamp is Stamp.APPEND), stamp)
    return new_copies(
        MemoryRecords("b", {THERE: log}), {THERE: since}, {THERE: LogRange(0, 4)}, ReadLimits(most, 1.0)
    ).get(THERE)


@pytest.mark.parametrize("stamp", [Stamp.CREATE, Stamp.APPEND])
def test_a_copy_is_new_by_its_content_whoever_gave_it_its_timestamp(stamp: Stamp) -> None:
    assert came(stamp, stamp, stamp, stamp) == 1


def test_where_retention_may_have_taken_earlier_copies_nobody_can_tell_what_is_new() -> None:
    log = MemoryLog()
    for number in (0, 1, 2, 0, 1, 2):
        log.append(b"key", b"%d" % number, 1000 + number)
    counted = new_copies(MemoryRecords("b", {THERE: log}), {THERE: 3}, {THERE: LogRange(0, 6)}).get(THERE)
    cut = new_copies(MemoryRecords("b", {THERE: log.cut(3)}), {THERE: 3}, {THERE: LogRange(3, 6)}).get(THERE)
    assert (counted, cut) == (0, None)


def test_where_timestamps_came_from_two_sides_nobody_can_tell_what_is_new() -> None:
    assert came(Stamp.CREATE, Stamp.CREATE, Stamp.CREATE, Stamp.APPEND) is None


def test_copies_that_could_not_be_read_are_not_new() -> None:
    assert came(*[Stamp.CREATE] * 4, since=0, most=1) == 1
    assert came(*[Stamp.CREATE] * 4, since=3, most=1) is None


def test_a_copy_that_ends_before_what_was_known_of_it_may_lack_all() -> None:
    mirror = played([lambda one: one.write(9), lambda one: one.copy(9), lambda one: one.sample(9)])
    mirror.there.records, mirror.there.end = mirror.there.records[:1], 1
    assert mirror.predicted == 9


@pytest.mark.parametrize(("alone", "most"), [({"x"}, 2), (set[str](), 9)])
def test_new_records_of_a_copy_that_others_write_too_are_no_sign_that_mm2_copied(alone: set[str], most: int) -> None:
    mirror = played([lambda one: one.write(9), lambda one: one.copy(9), lambda one: one.sample(9)])
    mirror.write(6)
    mirror.sample(0)
    mirror.copy(4)
    found = predicted(mirror.kept, mirror.target, {"x": "a.x"}, alone)[HERE].behind
    assert found is not None
    assert found.records == most


def test_a_topic_whose_copy_mm2_has_not_made_yet_loses_what_was_seen_of_it() -> None:
    kept = {"x": KeptEndOffsets((9,), 1, (KnownPosition(9, 0, 3),))}
    found = predicted(kept, MemoryRecords("b"), {"x": "a.x"}, {"x"})[HERE].behind
    assert found is not None
    assert (found.records, found.exact) == (3, False)


@pytest.mark.parametrize(
    ("position", "end", "came", "most"),
    [
        (None, 9, 0, 9),
        (KnownPosition(0, 0), 9, 4, 5),
        (KnownPosition(5, 7), 9, 0, 4),
        (KnownPosition(5, 7, 2), 9, 1, 5),
        (KnownPosition(5, 7, 2), 5, 3, 0),
        (KnownPosition(9, 7, 2), 5, 0, 2),
    ],
)
def test_the_most_that_is_missing(position: KnownPosition | None, end: int, came: int, most: int) -> None:
    assert most_missing(position, end, came) == most


@pytest.mark.parametrize(
    ("known", "found", "taken"),
    [
        (None, (1, 1, 0), (1, 1, 0)),
        ((5, 5, 0), (4, 9, 0), (5, 5, 0)),
        ((5, 5, 0), (9, 9, 5), (5, 5, 0)),
        ((5, 5, 0), (5, 9, 0), (5, 9, 0)),
        ((61, 0, 60), (1, 1, 0), (61, 0, 60)),
        ((5, 5, 0), (4, FAR + 6, 0), (4, FAR + 6, 0)),
    ],
)
def test_the_position_that_leaves_the_least_is_kept_unless_it_lies_far_behind(
    known: tuple[int, int, int] | None, found: tuple[int, int, int], taken: tuple[int, int, int]
) -> None:
    assert furthest(KnownPosition(*known) if known else None, [KnownPosition(*found)]) == taken


def test_markers_of_transactions_that_wait_with_their_records_are_not_counted_once_mm2_stands_still() -> None:
    mirror = SampledMirror()
    for _ in range(3):
        mirror.write(3)
        mirror.mark()
        mirror.copy(3)
        mirror.sample(1)
    mirror.write(3)
    mirror.mark()
    mirror.sample(0)
    assert (mirror.predicted, mirror.missing) == (3, 3)
    mirror.write(2)
    mirror.mark()
    mirror.sample(0)
    assert (mirror.predicted, mirror.missing) == (5, 5)
    mirror.copy(4)
    assert (mirror.predicted, mirror.missing) == (1, 1)
