"""A restart forgets nothing of MM2's offset-syncs."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import cast

import pytest

from sinks.kafka.ports.cluster import CHUNK, LogChunk, Placed, Reader
from sinks.kinds.offsets.memory import OffsetMemory
from sinks.kinds.offsets.mirror_reading import MirrorReading
from sinks.kinds.offsets.mirror_records import MirrorTopics
from sinks.kinds.offsets.stored_memory import store_histories, stored_histories
from sinks.kinds.offsets.sync_history import History, Pair
from sinks.ledger.ledger import Ledger
from streaming.hints import CheckpointSeen, SyncSeen
from streaming.mm2.codec import encode_record
from streaming.mm2.records import Checkpoint, OffsetSync
from tests.memory.memory_cluster import MemoryCluster
from tests.sinks.kinds.offsets.remembering import AX, CHECKPOINTS, SYNCS, World, X, pairs


def test_restart_reads_what_was_saved_and_what_came_after_it() -> None:
    world = World()
    world.sync((10, 5), (20, 15))
    before = world.begun()
    before.save(world.ledger, {"x": 1})
    world.a.topics[SYNCS].records[:2] = [(b"compacted", b"")] * 2
    world.sync((30, 25))
    assert pairs(world.begun()) == [Pair(10, 5), Pair(20, 15), Pair(30, 25)]


def test_what_the_stream_brings_twice_changes_nothing() -> None:
    world = World()
    world.sync((10, 5), (20, 15))
    memory = world.begun()
    seen = [SyncSeen(0, "x", 0, 10, 5), SyncSeen(1, "x", 0, 20, 15), SyncSeen(2, "x", 0, 30, 25)]
    for _ in range(2):
        memory.queue.put(seen, [])
        memory.take_in_queued()
    assert pairs(memory) == [Pair(10, 5), Pair(20, 15), Pair(30, 25)]


def test_only_what_changed_is_saved_again() -> None:
    world = World()
    world.sync((10, 5))
    memory, ledger = world.begun(), world.ledger
    memory.save(ledger, {"x": 1})
    written = len(world.b.read_log("lockstep-ledger.a.internal"))
    memory.save(ledger, {"x": 1})
    assert len(world.b.read_log("lockstep-ledger.a.internal")) == written
    memory.queue.put([SyncSeen(1, "x", 0, 20, 15)], [])
    memory.take_in_queued()
    memory.save(ledger, {"x": 1})
    assert len(world.b.read_log("lockstep-ledger.a.internal")) == written + 1


def test_newest_checkpoint_of_a_group_counts_whether_read_at_the_start_or_heard() -> None:
    world = World()
    world.b.create_log(CHECKPOINTS, 1, {})
    world.b.append_log(CHECKPOINTS, [encode_record(Checkpoint("g", AX, at, at - 5, "")) for at in (10, 20)])
    memory = world.begun()
    assert memory.checkpoints.newest == {("g", AX): Pair(20, 15)}
    memory.queue.put([], [CheckpointSeen(2, "g", "a.x", 0, 30, 25)])
    memory.take_in_queued()
    assert memory.checkpoints.newest == {("g", AX): Pair(30, 25)}


class Chunk(list[Placed]):
    """One that can be referred to weakly."""


@dataclass
class LongTopic:
    """An offset-syncs topic of four chunks; at most the last two are in memory."""

    made: list[weakref.ref[Chunk]] = field(default_factory=list)

    def topic_ids(self, topics: Collection[str]) -> dict[str, str]:
        return dict.fromkeys(topics, "")

    def read_log_in_chunks(self, topic: str, position: int) -> Iterator[LogChunk]:
        for start in range(position, 4 * CHUNK if topic == SYNCS else 0, CHUNK):
            assert sum(chunk() is not None for chunk in self.made) <= 1, "more than the last chunk is held"
            yield self.chunk(start)

    def chunk(self, start: int) -> LogChunk:
        records = Chunk(Placed(at, *encode_record(OffsetSync(X, at, at))) for at in range(start, start + CHUNK))
        self.made.append(weakref.ref(records))
        return LogChunk(records, whole=True)


def test_a_long_offset_syncs_topic_is_read_chunk_by_chunk() -> None:
    long = cast(Reader, LongTopic())
    memory = OffsetMemory()
    MirrorReading(memory, MirrorTopics(SYNCS, long, CHECKPOINTS, long)).load(World().ledger)
    assert memory.histories.position == 4 * CHUNK - 1


def test_restart_of_the_job_that_replays_the_stream_makes_no_restart_of_mm2() -> None:
    world = World()
    world.sync((0, 0), (100, 100), (200, 200))
    world.begun().save(world.ledger, {"x": 1})
    memory = world.begun()
    replayed = [SyncSeen(at, "x", 0, 100 * at, 100 * at) for at in range(3)]
    memory.queue.put(replayed, [])
    memory.queue.put([*replayed[1:], SyncSeen(3, "x", 0, 300, 300)], [])
    assert memory.take_in_queued().restarted == set()
    history = memory.histories.of(X)
    assert history is not None
    assert (history.latest, history.resent_after(0)) == (Pair(300, 300), 0)


def test_record_in_mm2s_topic_that_is_no_sync_makes_no_hole() -> None:
    world = World()
    world.sync((0, 0))
    world.a.append_log(SYNCS, [(b"foreign", b"")])
    world.sync((100, 100))
    history = world.begun().histories.of(X)
    assert history is not None
    assert history.resent_after(0) == 0


def test_damaged_history_alone_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    cluster = MemoryCluster("b")
    store_histories(Ledger("ledger", cluster, cluster, 1), {X: History(10, 5, 0)})
    cluster.append_log("ledger", [(b'["HISTORY","t",0]', b"damaged")])
    assert [where for where, _ in stored_histories(Ledger("ledger", cluster, None, 1))] == [X]
    assert "ignores the damaged offset history of t-0" in caplog.text
