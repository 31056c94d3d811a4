"""When the ids of the target's topics are asked for: a change of one topic is no reason to describe thousands."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from sinks.model.changes import Kind
from tests.memory.memory_cluster import MemoryCluster
from tests.sinks.builders import World, put_topic, set_config


def test_a_change_of_one_topic_asks_for_no_other_topics_id(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, topic_ids = list[set[str]](), MemoryCluster.topic_ids

    def noted(cluster: MemoryCluster, topics: Collection[str]) -> dict[str, str]:
        asked.append(set(topics))
        return topic_ids(cluster, topics)

    monkeypatch.setattr(MemoryCluster, "topic_ids", noted)
    world = World()
    for name in "xyz":
        put_topic(world.source, name)
    for _ in range(5):
        world.run_pass(after=10.0)
    asked.clear()
    set_config(world.source, "x", "retention.ms", "1")
    assert world.run_pass(after=1.0).outcomes
    assert set().union(*asked) & {"a.x", "a.y", "a.z"} == {"a.x"}


def test_a_topic_that_another_hand_recreated_is_not_ours_after_the_next_full_comparison() -> None:
    world = World()
    put_topic(world.source, "x")
    for _ in range(5):
        world.run_pass(after=10.0)
    assert world.ledger().owned(Kind.TOPIC) == {("a.x",)}
    world.target.delete_topics(["a.x"])
    put_topic(world.target, "a.x")
    for _ in range(2):
        world.run_pass(after=60.0)
    assert world.ledger().owned(Kind.TOPIC) == set()
