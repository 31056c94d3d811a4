"""A record in MM2's offset-syncs topic can name any topic: the ledger has those alone that the source has."""

from __future__ import annotations

import pytest

from sinks.kinds.offsets.memory import OffsetMemory
from sinks.kinds.offsets.sync_history import Pair
from streaming.hints import SyncSeen
from streaming.mm2.codec import encode_record
from streaming.mm2.records import OffsetSync, TopicPartition
from streaming.mm2.replication_policy import topic_name_fault
from tests.sinks import builders
from tests.sinks.builders import flow_settings, put_topic
from tests.sinks.kinds.offsets.remembering import SYNCS, World, X, pairs

Y = TopicPartition("y", 0)


def sync(world: World, topic: str, *pairs: tuple[int, int]) -> None:
    world.a.append_log(SYNCS, [encode_record(OffsetSync(TopicPartition(topic, 0), *pair)) for pair in pairs])


def of_y(memory: OffsetMemory) -> list[Pair]:
    history = memory.histories.of(Y)
    return list(history.pairs()) if history else []


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "x\x1b", "x\n", "é", "x" * 250])
def test_sync_of_what_can_be_no_topic_is_left_out_whether_read_or_heard(name: str) -> None:
    world = World()
    sync(world, name, (10, 5))
    memory = world.begun()
    memory.queue.put([SyncSeen(1, name, 0, 20, 15)], [])
    memory.take_in_queued()
    assert memory.topics() == set()
    assert memory.histories.position == 1, "it would be read again each time"


@pytest.mark.parametrize("name", ["x", "...", ".x", "a.B_c-9", "x" * 249])
def test_names_that_kafka_takes_are_topics(name: str) -> None:
    assert topic_name_fault(name) is None


def test_topics_that_nobody_has_leave_nothing_in_the_ledger() -> None:
    world = builders.World(flow_settings())
    put_topic(world.source, "x")
    world.source.create_log(SYNCS, 1, {})
    for number in range(4):
        named = [X, TopicPartition(f"nobody-{number}", 0), TopicPartition(f"x\x1b{number}", 0)]
        world.source.append_log(SYNCS, [encode_record(OffsetSync(one, number, number)) for one in named])
        world.run_pass(everything=True, after=70.0)
    keys = [key for key, _ in world.target.read_log(world.settings.internal.ledger)]
    assert [key for key in keys if b"nobody" in key or b"u001b" in key] == []
    assert [where.topic for where in world.ledger().histories()] == ["x"]


def test_partitions_that_a_topic_does_not_have_leave_nothing_in_the_ledger() -> None:
    world = builders.World(flow_settings())
    put_topic(world.source, "x", partitions=3)
    world.source.create_log(SYNCS, 1, {})
    for number in range(4):
        named = [TopicPartition("x", 2), TopicPartition("x", 3), TopicPartition("x", 9999 + number)]
        world.source.append_log(SYNCS, [encode_record(OffsetSync(one, number, number)) for one in named])
        world.run_pass(everything=True, after=70.0)
    world.run_pass(everything=True, after=70.0)
    keys = [key for key, _ in world.target.read_log(world.settings.internal.ledger)]
    assert [key for key in keys if b"999" in key or b'"x",3' in key] == []
    assert set(world.ledger().histories()) == {TopicPartition("x", 2)}


def test_partition_that_is_listed_later_than_its_syncs_come_keeps_them() -> None:
    world = World()
    sync(world, "y", (10, 5), (20, 15))
    sync(world, "x", (1, 1))
    memory = world.begun()
    memory.save(world.ledger, {"x": 1, "y": 0})
    for now in (0.0, 60.0):
        memory.forget_unlisted({"x": 1, "y": 1}, now, set)
    memory.save(world.ledger, {"x": 1, "y": 1})
    assert of_y(world.begun()) == [Pair(10, 5), Pair(20, 15)]


def test_saved_history_of_a_partition_that_its_topic_does_not_have_is_forgotten_in_the_ledger() -> None:
    world = World()
    world.a.append_log(SYNCS, [encode_record(OffsetSync(one, 10, 5)) for one in (Y, TopicPartition("y", 1))])
    memory = world.begun()
    memory.save(world.ledger, {"y": 2})
    for now in (0.0, 60.0):
        memory.forget_unlisted({"y": 1}, now, set)
    memory.save(world.ledger, {"y": 1})
    assert set(world.ledger.histories()) == {Y}
    assert memory.histories.of(TopicPartition("y", 1)) is None


def test_topic_that_two_listings_lack_within_a_minute_keeps_its_history() -> None:
    world = World()
    sync(world, "y", (10, 5))
    memory = world.begun()
    for now in (0.0, 59.0):
        memory.forget_unlisted({"x": 1}, now, set)
    assert memory.topics() == {"y"}


def test_topic_that_no_broker_says_is_gone_keeps_its_history() -> None:
    world = World()
    sync(world, "y", (10, 5))
    memory = world.begun()
    for now in (0.0, 60.0, 120.0):
        memory.forget_unlisted({"x": 1}, now, lambda topics: ())
    assert of_y(memory) == [Pair(10, 5)]


def test_topic_that_is_listed_without_partitions_keeps_its_histories() -> None:
    world = World()
    sync(world, "y", (10, 5))
    memory = world.begun()
    for now in (0.0, 60.0):
        memory.forget_unlisted({"y": 0}, now, set)
    assert of_y(memory) == [Pair(10, 5)]


def test_topic_that_is_listed_later_than_its_syncs_come_keeps_them() -> None:
    world = World()
    sync(world, "y", (10, 5), (20, 15))
    sync(world, "x", (1, 1))
    memory = world.begun()
    memory.save(world.ledger, {"x": 1})
    memory.save(world.ledger, {"x": 1, "y": 1})
    assert set(world.ledger.histories()) == {X, Y}
    assert of_y(world.begun()) == [Pair(10, 5), Pair(20, 15)]


def test_process_that_begins_before_a_topic_is_listed_reads_its_syncs_again() -> None:
    world = World()
    sync(world, "x", (1, 1))
    world.begun().save(world.ledger, {"x": 1})
    sync(world, "y", (10, 5))
    sync(world, "x", (2, 2), (4, 4))
    world.begun().save(world.ledger, {"x": 1})
    memory = world.begun()
    assert (of_y(memory), pairs(memory)[-1]) == ([Pair(10, 5)], Pair(4, 4))
    memory.save(world.ledger, {"x": 1, "y": 1})
    again = world.begun()
    assert of_y(again) == [Pair(10, 5)]
    assert again.histories.position == 3


def test_topic_that_a_listing_lacks_for_a_moment_keeps_its_saved_history() -> None:
    world = World()
    sync(world, "y", (10, 5))
    memory = world.begun()
    memory.save(world.ledger, {"y": 1})
    memory.queue.put([SyncSeen(1, "y", 0, 20, 15)], [])
    memory.take_in_queued()
    memory.save(world.ledger, {})
    sync(world, "y", (20, 15))
    assert of_y(world.begun()) == [Pair(10, 5), Pair(20, 15)]


def test_saved_history_of_a_topic_that_is_gone_is_forgotten_in_the_ledger() -> None:
    world = World()
    sync(world, "y", (10, 5))
    memory = world.begun()
    memory.save(world.ledger, {"y": 1})
    memory.gone({"y"})
    memory.save(world.ledger, {})
    assert world.ledger.histories() == {}
