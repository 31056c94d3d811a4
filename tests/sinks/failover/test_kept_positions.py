"""How far partitions were copied, kept in the ledger beside the source's ends."""

from __future__ import annotations

import pytest

from sinks.failover.source_end_offsets import SourceEndOffsetStore
from sinks.ledger.kept_end_offsets import KnownPosition, LatestSync, kept_end_offsets
from streaming.mm2.records import TopicPartition
from tests.inline_work import inline
from tests.memory.memory_records import MemoryLog
from tests.sinks.builders import put_topic
from tests.sinks.failover.scenes import Stage, look, stage

X1, Z0 = TopicPartition("x", 1), TopicPartition("z", 0)


def store(built: Stage, **syncs: LatestSync) -> SourceEndOffsetStore:
    """Of a job that knows these offset-syncs of partitions 0."""
    known = {TopicPartition(topic, 0): sync for topic, sync in syncs.items()}
    return SourceEndOffsetStore(built.here, 5.0, beside=inline, syncs=lambda: known)


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


def appears(built: Stage, cluster: str, topic: str) -> None:
    """A topic, with an empty partition."""
    put_topic(built.world.source if cluster == "a" else built.world.target, topic, 1)
    logs = built.here if cluster == "a" else built.there
    logs.logs[TopicPartition(topic, 0)] = MemoryLog()


@pytest.mark.parametrize("seen_between", [True, False])
def test_a_topic_whose_copy_came_while_the_job_looked_had_nothing_copied_then(seen_between: bool) -> None:
    built = stage()
    keeper = store(built)
    look(built, 1000.0, keeper)
    appears(built, "a", "z")
    if seen_between:
        look(built, 1001.0, keeper)
    appears(built, "b", "a.z")
    for now in (1002.0, 1005.0):
        look(built, now, keeper)
    assert kept(built)["z"] == ((0, 0, 0),)


def test_a_topic_whose_copy_was_there_before_it_is_not_known_to_have_nothing_copied() -> None:
    built = stage()
    keeper = store(built)
    appears(built, "b", "a.z")
    look(built, 1000.0, keeper)
    appears(built, "a", "z")
    look(built, 1005.0, keeper)
    assert kept(built)["z"] == ()


def test_a_new_topic_is_remembered_until_its_ends_could_be_read() -> None:
    built = stage()
    keeper = store(built)
    look(built, 1000.0, keeper)
    appears(built, "a", "z")
    log = built.here.logs.pop(Z0)
    look(built, 1005.0, keeper)
    assert kept(built)["z"] == ()
    built.here.logs[Z0] = log
    appears(built, "b", "a.z")
    look(built, 1010.0, keeper)
    assert kept(built)["z"] == ((0, 0, 0),)


def recreated(built: Stage, records: int) -> None:
    """x on the source, deleted and made again, with so many records in its first partition."""
    built.world.source.delete_topics(["x"])
    put_topic(built.world.source, "x", 2)
    built.here.logs[TopicPartition("x", 0)] = log = MemoryLog()
    for _ in range(records):
        log.append(b"k", b"v", timestamp=1)


def test_a_topic_that_was_recreated_keeps_no_position_though_its_log_is_longer() -> None:
    built = stage()
    known = {TopicPartition("x", 0): LatestSync(7, 8)}
    keeper = SourceEndOffsetStore(built.here, 5.0, beside=inline, syncs=lambda: dict(known))
    look(built, 1000.0, keeper)
    recreated(built, 30)
    for now in (1005.0, 1010.0):
        look(built, now, keeper)
        assert kept(built)["x"] == ()
    known[TopicPartition("x", 0)] = LatestSync(20, 29)
    look(built, 1015.0, keeper)
    assert kept(built)["x"] == ((21, 30, 0), None)


def test_a_topic_that_was_recreated_is_remembered_until_its_ends_could_be_read() -> None:
    built = stage()
    keeper = store(built, x=LatestSync(7, 8))
    look(built, 1000.0, keeper)
    recreated(built, 30)
    built.here.reachable = False
    look(built, 1005.0, keeper)
    assert kept(built)["x"] == ((8, 9, 0), None)
    built.here.reachable = True
    look(built, 1010.0, keeper)
    assert kept(built)["x"] == ()


def test_a_topic_keeps_its_position_on_brokers_that_tell_no_ids() -> None:
    built = stage()
    keeper = store(built, x=LatestSync(7, 8))
    for identity in ("one", "", "one"):
        built.world.source.topics["x"].id = identity
        look(built, 1000.0, keeper)
        assert kept(built)["x"] == ((8, 9, 0), None)
