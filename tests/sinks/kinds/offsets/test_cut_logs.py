"""What a copy may lack once a log has lost its tail and MM2 has gone on at its own position."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sinks.kinds.offsets.log_tails import Missed
from sinks.kinds.offsets.memory import OffsetMemory
from streaming.hints import SyncSeen
from streaming.mm2.records import OffsetSync
from tests.sinks.builders import put_topic
from tests.sinks.kinds.offsets.remembering import AX, World, X
from tests.sinks.machine.mirrored_topic import MirroredTopic

Syncs = list[tuple[int, int]]


def taken(memory: OffsetMemory, syncs: Syncs, position: int = 0) -> None:
    memory.queue.put([SyncSeen(position + at, "x", 0, *pair) for at, pair in enumerate(syncs, 1)], [])
    memory.take_in_queued()


@pytest.fixture
def memory() -> OffsetMemory:
    """Syncs of the first ten records."""
    found = World().begun()
    taken(found, [(0, 0), (9, 9)])
    return found


CASES = [
    # The syncs that follow, and what the copy may lack.
    ([(10, 10)], None),
    ([(20, 20), (40, 40)], None),
    ([(10, 6)], Missed(4)),
    ([(11, 7)], Missed(4)),
    ([(10, 0)], Missed(10)),
    ([(30, 6), (40, 16)], Missed(24)),
    ([(10, 6), (30, 26), (31, 20)], Missed(4 + 7)),
    # MM2 was restarted from zero, or sends again what it had sent.
    ([(0, 0)], None),
    ([(5, 10)], None),
    ([(4, 4)], None),
    ([(5, 4)], Missed(1)),
    # The source has markers of transactions.
    ([(20, 14)], None),
]


@pytest.mark.parametrize(("syncs", "missed"), CASES)
def test_a_sync_that_goes_back_on_the_target_tells_what_the_copy_may_lack(
    memory: OffsetMemory, syncs: Syncs, missed: Missed | None
) -> None:
    taken(memory, syncs, position=2)
    assert memory.cut_logs.take() == ({X: missed} if missed else {})
    assert memory.cut_logs.take() == {}


@pytest.mark.parametrize(
    ("syncs", "missed"),
    [
        ([(10, 6)], Missed(4)),
        ([(14, 10)], Missed(4)),
        ([(110, 106)], Missed(4)),
        ([(0, 0)], None),
        ([(30, 30)], None),
    ],
)
def test_so_does_the_next_sync_after_the_copy_was_seen_to_end_earlier(
    memory: OffsetMemory, syncs: Syncs, missed: Missed | None
) -> None:
    memory.note_target_end(X, AX, 10)
    memory.note_target_end(X, AX, 6)
    taken(memory, syncs, position=2)
    assert memory.cut_logs.take() == ({X: missed} if missed else {})


@pytest.mark.parametrize(
    ("syncs", "missed"), [([(25, 25)], Missed(4)), ([(8, 10)], Missed(2)), ([(6, 10)], None), ([(0, 10)], None)]
)
def test_records_that_took_the_places_of_a_lost_tail_of_the_source_may_never_be_copied(
    memory: OffsetMemory, syncs: Syncs, missed: Missed | None
) -> None:
    memory.note_source_end(X, 10)
    memory.note_source_end(X, 6)
    taken(memory, syncs, position=2)
    assert memory.cut_logs.take() == ({X: missed} if missed else {})


@pytest.mark.parametrize(("syncs", "missed"), [([(10, 0)], Missed(10)), ([(0, 0)], None)])
def test_a_copy_that_was_made_again_lacks_what_mm2_does_not_send_again(
    memory: OffsetMemory, syncs: Syncs, missed: Missed | None
) -> None:
    memory.recognize({"x": "a.x"}, {"x": "1"}, {"a.x": "2"})
    memory.recognize({"x": "a.x"}, {"x": "1"}, {"a.x": "3"})
    taken(memory, syncs, position=2)
    assert memory.cut_logs.take() == ({X: missed} if missed else {})


@pytest.mark.parametrize("side", ["source", "copy"])
def test_what_an_earlier_process_saw_of_a_cut_log_is_unknown_at_the_next_sync(side: str) -> None:
    world = World()
    put_topic(world.a, "x")
    put_topic(world.b, "a.x")
    world.b.create_log("lockstep-ledger.a.internal", 1, {"cleanup.policy": "compact"})
    world.sync((0, 0), (9, 9))
    memory = world.begun()
    for end in (10, 6):
        if side == "copy":
            memory.note_target_end(X, AX, end)
        else:
            memory.note_source_end(X, end)
    memory.save(world.ledger, {"x": 1})
    later = world.begun()
    assert later.cut_logs.take() == {}
    taken(later, [(25, 21)], position=2)
    (missed,) = later.cut_logs.take().values()
    assert missed.unknown
    taken(later, [(40, 36)], position=3)
    assert later.cut_logs.take() == {}


def test_a_sync_that_was_taken_before_tells_nothing_again(memory: OffsetMemory) -> None:
    taken(memory, [(10, 6)], position=2)
    memory.cut_logs.take()
    taken(memory, [(9, 9), (10, 6)], position=1)
    assert memory.cut_logs.take() == {}


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("produce"), st.integers(1, 12)),
        st.tuples(st.just("copy"), st.integers(1, 15)),
        st.tuples(st.just("truncate_target"), st.integers(2, 12)),
        st.tuples(st.just("restart_mm2"), st.integers(0, 12)),
    ),
    max_size=30,
)


@settings(max_examples=500)
@given(STEPS)
def test_with_a_sync_of_each_record_no_more_is_missing_than_they_tell_and_nothing_where_no_log_was_cut(
    steps: list[tuple[str, int]],
) -> None:
    memory, syncs, missed = World().begun(), list[OffsetSync](), 0
    topic = MirroredTopic("x", syncs.append, lag_max=0)
    for step, count in [("produce", 9), ("copy", 9), *steps, ("produce", 1), ("copy", 999)]:
        # No sync tells that a single record was cut.
        if step != "truncate_target" or len(topic.target) >= count:
            getattr(topic, step)(count)
        memory.queue.put(
            [
                SyncSeen(memory.histories.position + at, "x", 0, one.upstream_offset, one.downstream_offset)
                for at, one in enumerate(syncs, 1)
            ],
            [],
        )
        memory.take_in_queued()
        syncs.clear()
        missed += sum(one.records for one in memory.cut_logs.take().values())
    assert missed >= len(set(topic.source) - set(topic.target))
    assert not missed or any(step == "truncate_target" for step, _ in steps)
