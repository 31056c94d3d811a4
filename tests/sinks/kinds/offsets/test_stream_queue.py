"""What the stream told and is too much to wait for a flow is read from MM2's topics again, and none of it is lost."""

from __future__ import annotations

import pytest

from sinks.faults import ClusterUnreachable
from sinks.kafka.ports.cluster import CHUNK
from sinks.kinds.offsets.memory import RECORD_BYTES, OffsetMemory, StreamQueue
from sinks.kinds.offsets.mirror_reading import MirrorReading
from sinks.kinds.offsets.sync_history import Pair
from streaming.hints import CheckpointSeen, SyncSeen
from streaming.mm2.codec import encode_record
from streaming.mm2.records import Checkpoint
from tests.sinks.kinds.offsets.remembering import AX, CHECKPOINTS, World, X, pairs

BEHIND = [(0, 0), (10, 5), (20, 9), (30, 12), (40, 14), (50, 15), (60, 16)]
"""Syncs of `x` that each say something new."""


def told(*positions: int) -> list[SyncSeen]:
    return [SyncSeen(position, "x", 0, *BEHIND[position]) for position in positions]


def loaded(
    world: World, most_waiting: int, seconds_in_a_pass: float = float("inf")
) -> tuple[OffsetMemory, MirrorReading]:
    memory = OffsetMemory(most_waiting)
    reading = MirrorReading(memory, world.topics, seconds_in_a_pass)
    assert reading.read_on(world.ledger, to_the_end=False)
    return memory, reading


def test_what_is_too_much_to_wait_for_a_flow_is_read_from_the_topics_again() -> None:
    world = World()
    world.sync(BEHIND[0])
    memory, reading = loaded(world, most_waiting=3)
    world.sync(*BEHIND[1:6])
    for batch in (told(1, 2), told(3, 4), told(5)):
        memory.queue.put(batch, [])
    reading.read_on(world.ledger, to_the_end=False)
    memory.take_in_queued()
    assert pairs(memory) == pairs(world.begun())
    world.a.reachable = False
    memory.queue.put(told(6), [])
    reading.read_on(world.ledger, to_the_end=False)
    memory.take_in_queued()
    assert pairs(memory)[-1] == Pair(*BEHIND[6]), "what fits was not kept"


def test_what_was_let_go_of_is_not_lost_where_the_topics_cannot_be_read_at_once() -> None:
    world = World()
    world.sync(BEHIND[0])
    memory, reading = loaded(world, most_waiting=1)
    world.sync(*BEHIND[1:3])
    memory.queue.put(told(1, 2), [])
    world.a.reachable = False
    with pytest.raises(ClusterUnreachable):
        reading.read_on(world.ledger, to_the_end=False)
    memory.queue.put(told(3), [])
    memory.take_in_queued()
    assert pairs(memory) == [Pair(*BEHIND[0])], "what comes behind a gap counts"
    world.a.reachable = True
    world.sync(BEHIND[3])
    reading.read_on(world.ledger, to_the_end=False)
    memory.take_in_queued()
    assert pairs(memory) == pairs(world.begun())


def test_what_was_dropped_is_read_again_if_a_reading_of_it_broke_off() -> None:
    world = World()
    memory, reading = loaded(world, most_waiting=1, seconds_in_a_pass=0.0)
    world.sync(*([(0, 0)] * CHUNK), *BEHIND[1:])
    memory.queue.put(told(1, 2), [])
    assert not reading.read_on(world.ledger, to_the_end=False)
    reading.close()
    memory.queue.put(told(6), [])
    memory.take_in_queued()
    assert pairs(memory) == [Pair(0, 0)]
    while not reading.read_on(world.ledger, to_the_end=False):
        pass
    assert pairs(memory) == pairs(world.begun())


def test_groups_and_restarts_are_told_of_although_they_were_let_go_of() -> None:
    world = World()
    world.b.create_log(CHECKPOINTS, 1, {})
    world.sync((100, 100))
    memory, reading = loaded(world, most_waiting=0)
    world.sync((40, 140))
    world.b.append_log(CHECKPOINTS, [encode_record(Checkpoint("g", AX, 10, 5, ""))])
    memory.queue.put([SyncSeen(1, "x", 0, 40, 140)], [CheckpointSeen(0, "g", "a.x", 0, 10, 5)])
    reading.read_on(world.ledger, to_the_end=False)
    assert memory.take_in_queued() == ({"g"}, {X})
    assert memory.take_in_queued() == (set(), set())
    assert memory.checkpoints.newest == {("g", AX): Pair(10, 5)}


def test_long_names_are_too_much_where_the_number_of_records_is_not() -> None:
    queue = StreamQueue(most=1000, most_bytes=10 * RECORD_BYTES)
    queue.put([], [CheckpointSeen(0, "g", "a.x", 0, 1, 1)])
    assert queue.take() is not None
    queue.put([], [CheckpointSeen(1, "g" * 32_000, "a.x", 0, 1, 1)])
    assert queue.take() is None


def test_name_that_many_records_share_counts_once() -> None:
    name = "g" * 32_000
    queue = StreamQueue(most=1000, most_bytes=40_000 + 20 * RECORD_BYTES)
    queue.put([], [CheckpointSeen(at, name, "a.x", 0, 1, 1) for at in range(10)])
    assert queue.take() is not None


def test_what_was_taken_makes_room_for_as_much_again() -> None:
    queue = StreamQueue(most=1000, most_bytes=10 * RECORD_BYTES)
    for at in range(20):
        queue.put([SyncSeen(at, "x", 0, at, at)], [])
        assert queue.take() is not None
