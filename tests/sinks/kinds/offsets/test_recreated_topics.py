"""What was recreated is known anew, on either side and of MM2's own topics, by its id."""

from __future__ import annotations

import pytest

from sinks.faults import ClusterUnreachable
from sinks.kinds.offsets.memory import OffsetMemory
from sinks.kinds.offsets.mirror_reading import MirrorReading
from sinks.kinds.offsets.stored_memory import TopicIds
from sinks.kinds.offsets.sync_history import Pair
from sinks.ledger.ledger import Entry
from streaming.hints import CheckpointSeen, SyncSeen
from streaming.mm2.codec import encode_record
from streaming.mm2.records import Checkpoint
from tests.sinks.kinds.offsets.remembering import AX, CHECKPOINTS, SYNCS, World, X, checkpoints, pairs


def test_offset_syncs_topic_that_was_recreated_is_read_anew() -> None:
    world = World()
    world.sync((10, 5), (20, 15), (30, 25))
    memory = world.begun()
    world.a.topics[SYNCS].records.clear()
    world.sync((40, 35))
    MirrorReading(memory, world.topics).catch_up()
    assert pairs(memory)[-1] == Pair(40, 35)


@pytest.mark.parametrize("running", [True, False], ids=["running", "down"])
def test_offset_syncs_topic_that_was_recreated_and_grew_longer_than_it_was_is_noticed_by_its_id(running: bool) -> None:
    world = World()
    world.sync((10, 5), (20, 15))
    memory = world.begun()
    memory.save(world.ledger, {"x": 1})
    world.a.delete_topics([SYNCS])
    world.a.create_log(SYNCS, 1, {})
    world.sync((30, 25), (40, 35), (50, 45), (60, 55))
    if running:
        MirrorReading(memory, world.topics).catch_up()
    else:
        memory = world.begun()
    assert Pair(40, 35) in pairs(memory)


@pytest.mark.parametrize("broken_off", [False, True], ids=["at once", "second try"])
def test_checkpoints_topic_that_was_recreated_while_the_job_was_down_counts_from_its_start(broken_off: bool) -> None:
    world, remote = World(), {"x": "a.x"}
    world.sync((10, 5))
    memory = world.begun()
    memory.recognize(remote, {"x": "1"}, {"a.x": "1"})
    world.b.create_log(CHECKPOINTS, 1, {})
    world.b.append_log(CHECKPOINTS, [encode_record(Checkpoint("g", AX, 7, 3, ""))] * 3)
    memory = world.begun()
    memory.recognize(remote, {"x": "1"}, {"a.x": "1"})
    memory.recognize(remote, {"x": "2"}, {"a.x": "1"})
    memory.save(world.ledger, {"x": 1})
    world.b.delete_topics([CHECKPOINTS])
    world.b.create_log(CHECKPOINTS, 1, {})
    world.b.append_log(CHECKPOINTS, [encode_record(Checkpoint("g", AX, 900, 800, ""))] * 3)
    world.sync((900, 800))
    memory = OffsetMemory()
    if broken_off:
        world.a.reachable = False
        with pytest.raises(ClusterUnreachable):
            MirrorReading(memory, world.topics).load(world.ledger)
        world.a.reachable = True
    MirrorReading(memory, world.topics).load(world.ledger)
    memory.recognize(remote, {"x": "2"}, {"a.x": "1"})
    assert memory.checkpoint("g", X, AX) == Pair(900, 800)


def test_topic_recreated_on_either_side_loses_its_history_for_good() -> None:
    remote = {"x": "a.x"}
    for source, target in (("2", "1"), ("1", "2")):
        world = World()
        world.sync((10, 5))
        memory, ledger = world.begun(), world.ledger
        assert memory.recognize(remote, {"x": "1"}, {"a.x": "1"}) == set()
        memory.save(ledger, {"x": 1})
        assert memory.recognize(remote, {"x": "1"}, {"a.x": "1"}) == set()
        assert memory.recognize(remote, {"x": source}, {"a.x": target}) == {"x"}
        assert pairs(memory) == []
        memory.save(ledger, {"x": 1})
        assert pairs(world.begun()) == []
        memory.queue.put([SyncSeen(0, "x", 0, 10, 5)], [])
        memory.take_in_queued()
        assert pairs(memory) == [], "a sync from before counted for the new topic"
        memory.queue.put([SyncSeen(1, "x", 0, 3, 3)], [])
        memory.take_in_queued()
        assert pairs(memory) == [Pair(3, 3)]


def test_topic_that_is_gone_leaves_the_ledger() -> None:
    world = World()
    world.sync((10, 5))
    memory, ledger = world.begun(), world.ledger
    memory.save(ledger, {"x": 1})
    memory.gone(["x"])
    memory.save(ledger, {"x": 1})
    assert world.ledger.histories() == {}


def test_cluster_without_topic_ids_makes_nobody_forget() -> None:
    world = World()
    world.sync((10, 5))
    memory = world.begun()
    for _ in range(2):
        assert memory.recognize({"x": "a.x"}, {"x": ""}, {"a.x": ""}) == set()
    assert pairs(memory) == [Pair(10, 5)]
    assert world.ledger.values(Entry.TOPIC_IDS) == {}


def test_checkpoint_of_a_topic_that_was_recreated_does_not_count_after_a_restart() -> None:
    remote, ids = {"x": "a.x"}, ({"x": "1"}, {"a.x": "1"})
    world = World()
    world.sync((0, 0))
    checkpoints(world, (900, 800))
    memory = world.begun()
    memory.recognize(remote, *ids)
    memory.recognize(remote, {"x": "2"}, {"a.x": "1"})
    memory.save(world.ledger, {"x": 1})
    world.sync((1, 1))
    again = world.begun()
    assert again.unrecognized(["x"]) == {"x"}
    again.recognize(remote, {"x": "2"}, {"a.x": "1"})
    assert again.checkpoint("g", X, AX) is None
    again.queue.put([], [CheckpointSeen(0, "g", "a.x", 0, 900, 800), CheckpointSeen(1, "g", "a.x", 0, 5, 5)])
    again.take_in_queued()
    assert again.checkpoint("g", X, AX) == Pair(5, 5)


def test_topic_recreated_while_the_job_was_down_leaves_no_checkpoint() -> None:
    remote = {"x": "a.x"}
    world = World()
    world.sync((0, 0))
    checkpoints(world, (900, 800))
    before = world.begun()
    before.recognize(remote, {"x": "1"}, {"a.x": "1"})
    before.save(world.ledger, {"x": 1})
    memory = world.begun()
    assert memory.recognize(remote, {"x": "1"}, {"a.x": "2"}) == {"x"}
    memory.queue.put([SyncSeen(1, "x", 0, 1, 1)], [])
    memory.take_in_queued()
    assert memory.checkpoint("g", X, AX) is None
    checkpoints(world, (7, 7))
    MirrorReading(memory, world.topics).catch_up()
    memory.queue.put([], [CheckpointSeen(2, "g", "a.x", 0, 8, 8)])
    memory.take_in_queued()
    assert memory.checkpoint("g", X, AX) == Pair(8, 8)


def test_ids_that_an_earlier_version_wrote_are_read() -> None:
    assert TopicIds.parse("1 2 7") == TopicIds("1", "2", 7)
    assert TopicIds.parse(TopicIds("1", "", 7, 9).as_text()) == TopicIds("1", "", 7, 9)
