"""The broker that is read may be behind the one that is watched: no change is lost for that."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest

from sinks.engine.model import Kind
from sinks.faults import Observed
from sinks.kafka.memory.memory_cluster import MemoryCluster, PlainWatch
from sinks.kafka.ports.cluster import TopicConfigs
from sinks.kinds.topics.controller import TopicController
from tests.sinks.builders import World, overrides_of, put_topic, set_config

INTERVAL = 60.0


class Lagging(MemoryCluster):
    """Another broker of the cluster, which shows configs as they were when it was asked before."""

    before: Mapping[str, TopicConfigs] = {}

    def describe_topic_configs(self, topics: Collection[str]) -> Observed[str, TopicConfigs]:
        now = super().describe_topic_configs(topics).items
        shown, self.before = {**now, **self.before}, now
        return Observed(shown)


def test_source_broker_that_lags_behind_the_one_watched_loses_no_change() -> None:
    watched = MemoryCluster("a", "id-of-a")
    world = World(source=watched, read_source=Lagging("a", "id-of-a", topics=watched.topics))
    put_topic(world.source, "x", retention_ms="1")
    world.settle()
    set_config(world.source, "x", "retention.ms", "2")
    for _ in range(2):
        world.run_pass()
    assert overrides_of(world.target, "a.x") == {"retention.ms": "2"}


def test_change_that_came_just_before_the_first_comparison_is_found_where_the_broker_that_is_read_lags() -> None:
    source = MemoryCluster("a", "id-of-a")
    lagging = Lagging("a", "id-of-a", topics=source.topics)
    world = World(source=source, read_source=lagging)
    part = world.controller(Kind.TOPIC)
    assert isinstance(part, TopicController)
    part._source_watch = PlainWatch(source)
    put_topic(source, "x", retention_ms="1")
    put_topic(world.target, "a.x", retention_ms="1")
    lagging.describe_topic_configs(["x"])
    set_config(source, "x", "retention.ms", "2")
    for _ in range(3):
        world.run_pass()
    assert overrides_of(world.target, "a.x") == {"retention.ms": "2"}


def test_change_just_before_the_first_comparison_is_found_though_the_next_listing_lacks_its_topic(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = MemoryCluster("a", "id-of-a")
    lagging = Lagging("a", "id-of-a", topics=source.topics)
    world = World(source=source, read_source=lagging)
    part = world.controller(Kind.TOPIC)
    assert isinstance(part, TopicController)
    part._source_watch = PlainWatch(source)
    put_topic(source, "x", retention_ms="1")
    put_topic(world.target, "a.x", retention_ms="1")
    lagging.describe_topic_configs(["x"])
    set_config(source, "x", "retention.ms", "2")
    world.run_pass()
    with monkeypatch.context() as restarted:
        restarted.setattr(lagging, "list_topics", dict)
        world.run_pass()
    for _ in range(2):
        world.run_pass()
    assert overrides_of(world.target, "a.x") == {"retention.ms": "2"}


def test_change_that_the_broker_that_is_read_shows_late_is_found_with_a_full_comparison() -> None:
    class Behind(MemoryCluster):
        """Another broker of the cluster, which does not follow."""

        stands_still_at: Mapping[str, TopicConfigs] = {}

        def describe_topic_configs(self, topics: Collection[str]) -> Observed[str, TopicConfigs]:
            return Observed({**super().describe_topic_configs(topics).items, **self.stands_still_at})

    source = MemoryCluster("a", "id-of-a")
    behind = Behind("a", "id-of-a", topics=source.topics)
    world = World(source=source, read_source=behind)
    part = world.controller(Kind.TOPIC)
    assert isinstance(part, TopicController)
    part._source_watch = PlainWatch(source)
    put_topic(source, "x", retention_ms="1")
    world.settle()
    # Now both watches know it.
    world.run_pass(everything=True)
    world.run_pass()
    behind.stands_still_at = behind.describe_topic_configs(["x"]).items
    set_config(source, "x", "retention.ms", "2")
    for _ in range(4):
        world.run_pass()
    behind.stands_still_at = {}
    world.run_pass(after=INTERVAL)
    world.run_pass()
    assert overrides_of(world.target, "a.x") == {"retention.ms": "2"}
