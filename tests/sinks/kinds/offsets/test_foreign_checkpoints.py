"""A record in MM2's checkpoints topic can name any group and topic: those alone are remembered that there are."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from sinks.every_kind.listing import DesiredTopics, Listed
from sinks.kafka.ports.groups import GroupPartition
from sinks.kinds.offsets.controller import offset_memory
from sinks.kinds.offsets.memory import KnownCheckpoints
from sinks.kinds.offsets.sync_history import Pair
from streaming.hints import CheckpointSeen
from streaming.mm2.codec import encode_record
from streaming.mm2.records import Checkpoint, TopicPartition
from tests.sinks import builders
from tests.sinks.builders import flow_settings, put_topic
from tests.sinks.kinds.offsets.remembering import AX, CHECKPOINTS, World

DESIRED = DesiredTopics({"x": "a.x"})
TRUE: GroupPartition = ("g", AX)
FOREIGN: list[GroupPartition] = [
    ("g", TopicPartition("a.nobody", 0)),
    ("g", TopicPartition("elsewhere", 0)),
    ("g", TopicPartition("a.x", 1)),
    ("nobody", AX),
]


def told(checkpoints: KnownCheckpoints, *keys: GroupPartition) -> None:
    """A checkpoint of each."""
    seen = checkpoints.read_to
    checkpoints.take(
        CheckpointSeen(seen + 1 + at, group, where.topic, where.partition, 10, 5)
        for at, (group, where) in enumerate(keys)
    )


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "x\x1b", "x\n", "é", "x" * 250])
def test_checkpoint_of_what_can_be_no_topic_is_left_out_whether_read_or_heard(name: str) -> None:
    world = World()
    world.b.create_log(CHECKPOINTS, 1, {})
    world.b.append_log(CHECKPOINTS, [encode_record(Checkpoint("g", TopicPartition(name, 0), 10, 5, ""))])
    memory = world.begun()
    memory.take_in_queued()
    memory.queue.put([], [CheckpointSeen(1, "g", name, 0, 20, 15)])
    assert memory.take_in_queued().groups == set()
    assert memory.checkpoints.newest == {}
    assert memory.checkpoints.read_to == 1, "it would be read again each time"


def listed(checkpoints: KnownCheckpoints, now: float, target: dict[str, int], groups: Collection[str] = "g") -> None:
    """A full comparison where the source has x."""
    checkpoints.forget_unlisted(Listed({"x": 1}, target, DESIRED), groups, now)


def test_checkpoints_of_what_is_not_replicated_are_forgotten_after_a_minute() -> None:
    checkpoints = KnownCheckpoints()
    told(checkpoints, TRUE, *FOREIGN)
    for now in (0.0, 30.0, 59.0):
        listed(checkpoints, now, {"a.x": 1, "elsewhere": 1})
        assert checkpoints.newest.keys() == {TRUE, *FOREIGN}
    listed(checkpoints, 60.0, {"a.x": 1, "elsewhere": 1})
    assert checkpoints.newest.keys() == {TRUE}


def test_checkpoint_of_what_listings_lack_now_and_then_is_kept() -> None:
    checkpoints = KnownCheckpoints()
    told(checkpoints, TRUE)
    for now in range(0, 600, 100):
        listed(checkpoints, now, {"ledger": 1})
        listed(checkpoints, now + 20.0, {"ledger": 1, "a.x": 1})
        listed(checkpoints, now + 40.0, {"ledger": 1, "a.x": 1}, "h")
        listed(checkpoints, now + 60.0, {"ledger": 1, "a.x": 1})
    assert checkpoints.newest == {TRUE: Pair(10, 5)}


def test_checkpoints_are_kept_where_neither_groups_nor_partitions_are_known() -> None:
    checkpoints = KnownCheckpoints()
    told(checkpoints, TRUE)
    for now in (0.0, 100.0):
        listed(checkpoints, now, {"a.x": 0}, ())
    assert checkpoints.newest.keys() == {TRUE}


@pytest.mark.parametrize("source, target", [({}, {"ledger": 1}), ({"x": 1}, {})])
def test_empty_listing_of_either_cluster_forgets_no_checkpoint(source: dict[str, int], target: dict[str, int]) -> None:
    checkpoints = KnownCheckpoints()
    told(checkpoints, TRUE)
    for now in (0.0, 100.0):
        checkpoints.forget_unlisted(Listed(source, target, DESIRED), (), now)
    assert checkpoints.newest.keys() == {TRUE}


def test_checkpoint_that_comes_again_after_it_was_forgotten_counts() -> None:
    checkpoints = KnownCheckpoints()
    told(checkpoints, TRUE)
    for now in (0.0, 60.0):
        listed(checkpoints, now, {"ledger": 1})
    assert checkpoints.newest == {}
    told(checkpoints, TRUE)
    listed(checkpoints, 70.0, {"ledger": 1, "a.x": 1})
    assert checkpoints.newest == {TRUE: Pair(10, 5)}


def test_job_forgets_foreign_checkpoints_and_keeps_those_of_its_groups() -> None:
    world = builders.World(flow_settings())
    memory = offset_memory(world.controllers)
    put_topic(world.source, "x")
    put_topic(world.target, "a.x")
    world.source_groups.offsets["g"] = {TopicPartition("x", 0): 1}
    topic = world.settings.internal.checkpoints
    world.target.create_log(topic, 1, {})
    forged = [encode_record(Checkpoint(group, where, 10, 5, "")) for group, where in (TRUE, *FOREIGN)]
    world.target.append_log(topic, forged)
    world.run_pass(everything=True)
    assert memory.checkpoints.newest.keys() == {TRUE, *FOREIGN}
    for _ in range(3):
        world.run_pass(everything=True, after=70.0)
    assert memory.checkpoints.newest.keys() == {TRUE}
