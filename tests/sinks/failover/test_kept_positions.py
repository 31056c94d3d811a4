"""How far partitions were copied, kept in the ledger beside the source's ends."""

from __future__ import annotations

from sinks.failover.known_positions import KnownPosition, LatestSync
from sinks.failover.source_end_offsets import SourceEndOffsetStore, kept_end_offsets
from sinks.kafka.memory.memory_records import MemoryLog
from streaming.mm2.records import TopicPartition
from tests.inline_executor import InlineExecutor
from tests.sinks.builders import put_topic
from tests.sinks.failover.scenes import Stage, look, stage

X1 = TopicPartition("x", 1)


def store(built: Stage, **syncs: LatestSync) -> SourceEndOffsetStore:
    """Of a job that knows these offset-syncs of partitions 0."""
    known = {TopicPartition(topic, 0): sync for topic, sync in syncs.items()}
    return SourceEndOffsetStore(built.here, 5.0, executor=InlineExecutor(), syncs=lambda: known)


def kept(built: Stage) -> dict[str, tuple[KnownPosition | None, ...] | None]:
    return {topic: one.positions for topic, one in kept_end_offsets(built.ledger()).items()}


def test_the_latest_offset_syncs_are_written_with_the_ends() -> None:
    built = stage()
    look(built, 1000.0, store(built, x=LatestSync(7, 8)))
    assert kept(built) == {"x": ((8, 9, 0), None), "y": ()}


def test_what_a_preflight_counted_is_written_with_the_ends() -> None:
    built = stage()
    keeper = store(built)
    keeper.note_counted({X1: KnownPosition(10, 10, 1)})
    look(built, 1000.0, keeper)
    assert kept(built) == {"x": (None, (10, 10, 1)), "y": ()}


def test_a_topic_that_is_seen_before_its_copy_is_had_nothing_copied_then() -> None:
    built = stage()
    keeper = store(built)
    look(built, 1000.0, keeper)
    put_topic(built.world.source, "z", 1)
    look(built, 1001.0, keeper)
    put_topic(built.world.target, "a.z", 1)
    look(built, 1005.0, keeper)
    assert kept(built)["z"] == ()
    built.here.logs[TopicPartition("z", 0)] = MemoryLog()
    look(built, 1010.0, keeper)
    assert kept(built)["z"] == ((0, 0, 0),)
