"""Topics where their configs are not synced: what concerns configs alone stops nothing."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from sinks.faults import ItemFault, Observed
from sinks.kafka.ports.cluster import TopicConfigs
from sinks.model.changes import Kind
from tests.memory.memory_cluster import MemoryCluster
from tests.sinks.builders import World, flow_settings, put_topic, set_config

DENIED = ItemFault("TOPIC_AUTHORIZATION_FAILED", "Topic authorization failed")


class SecretTopic(MemoryCluster):
    """Shows no config of the topic `secret`, and counts requests for configs."""

    described = 0

    def describe_topic_configs(self, topics: Collection[str]) -> Observed[str, TopicConfigs]:
        self.described += 1
        seen = super().describe_topic_configs(topics)
        items = {topic: configs for topic, configs in seen.items.items() if topic != "secret"}
        return Observed(items, {**seen.errors, **dict.fromkeys(seen.items.keys() - items.keys(), DENIED)})


@pytest.fixture
def world() -> World:
    world = World(flow_settings(enabled=[Kind.TOPIC]), source=SecretTopic("a", "id-of-a"))
    put_topic(world.source, "x", 2)
    world.settle()
    return world


def test_topic_whose_configs_may_not_be_read_keeps_no_other_from_growing(world: World) -> None:
    put_topic(world.source, "secret")
    world.source.topics["x"].partitions = 3
    report = world.run_pass(everything=True)
    assert world.target.list_topics()["a.x"] == 3
    assert "a.secret" not in world.target.topics
    assert [str(error.reason) for error in report.plan.errors] == [
        f"secret on a: {DENIED.needing('DESCRIBE_CONFIGS', 'TOPIC', 'secret')}"
    ]


def test_configs_are_not_polled(world: World) -> None:
    assert isinstance(world.source, SecretTopic)
    world.source.described = 0
    set_config(world.source, "x", "retention.ms", "1")
    for _ in range(3):
        assert world.run_pass(everything=True).outcomes == ()
    assert world.source.described == 0
