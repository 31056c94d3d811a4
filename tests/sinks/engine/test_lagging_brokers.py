"""The broker that is read may be behind the one that is watched: no change is lost for that."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest

from sinks.every_kind.controller import PassContext
from sinks.every_kind.kinds_agenda import KindsAgenda
from sinks.faults import ClusterUnreachable, Observed
from sinks.kafka.ports.acl_binding import AclBinding
from sinks.kafka.ports.cluster import TopicConfigs
from sinks.kinds.polled_controller import PolledController
from sinks.kinds.topics.controller import TopicController
from sinks.model.changes import Kind
from tests.memory.memory_acls import MemoryAcls, PlainAclWatch
from tests.memory.memory_cluster import MemoryCluster, PlainWatch
from tests.sinks.builders import World, overrides_of, put_topic, set_config
from tests.sinks.kinds.acls.acl_builders import acl

INTERVAL = 60.0


class Lagging(MemoryCluster):
    """Another broker of the cluster, which shows configs as they were when it was asked before."""

    before: Mapping[str, TopicConfigs] = {}

    def describe_topic_configs(self, topics: Collection[str]) -> Observed[str, TopicConfigs]:
        now = super().describe_topic_configs(topics).items
        shown, self.before = {**now, **self.before}, now
        return Observed(shown)


def watched_apart(read: MemoryCluster) -> World:
    """Topic x, where one broker of the source is read and another, which has all of it at once, is watched."""
    watched = MemoryCluster("a", "id-of-a", topics=read.topics)
    world = World(source=watched, read_source=read)
    controller = world.controller(Kind.TOPIC)
    assert isinstance(controller, TopicController)
    controller._source_watch = PlainWatch(watched)
    put_topic(watched, "x", retention_ms="1")
    return world


def lagging_topic() -> tuple[World, Lagging]:
    """The broker that is read shows x as it was before its last change, the one that is watched shows the change."""
    lagging = Lagging("a", "id-of-a")
    world = watched_apart(lagging)
    put_topic(world.target, "a.x", retention_ms="1")
    lagging.describe_topic_configs(["x"])
    set_config(world.source, "x", "retention.ms", "2")
    return world, lagging


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
    world, _ = lagging_topic()
    for _ in range(3):
        world.run_pass()
    assert overrides_of(world.target, "a.x") == {"retention.ms": "2"}


def test_change_just_before_the_first_comparison_is_found_though_the_next_listing_lacks_its_topic(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, lagging = lagging_topic()
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

    behind = Behind("a", "id-of-a")
    world = watched_apart(behind)
    world.settle()
    # Now both watches know it.
    world.run_pass(everything=True)
    world.run_pass()
    behind.stands_still_at = behind.describe_topic_configs(["x"]).items
    set_config(world.source, "x", "retention.ms", "2")
    for _ in range(4):
        world.run_pass()
    behind.stands_still_at = {}
    world.run_pass(after=INTERVAL)
    world.run_pass()
    assert overrides_of(world.target, "a.x") == {"retention.ms": "2"}


class LaggingAcls(MemoryAcls):
    """Another broker of the cluster, which shows a list of its own for a while."""

    stale: set[AclBinding] | None = None

    def describe(self) -> list[AclBinding]:
        return super().describe() if self.stale is None else list(self.stale)


READ, READ_THERE = acl("ALLOW READ User:al TOPIC x"), acl("ALLOW READ User:al TOPIC a.x")


def lagging_acls() -> tuple[World, LaggingAcls]:
    """The broker that is read does not know of READ yet, the one that is watched does."""
    watched = MemoryAcls("a", {READ})
    read = LaggingAcls("a", watched.bindings)
    read.stale = set()
    world = World(source_acls=read)
    controller = world.controller(Kind.ACL)
    assert isinstance(controller, PolledController) and controller._watches
    controller._watches = (PlainAclWatch(watched), controller._watches[1])
    put_topic(world.source, "x")
    return world, read


def test_acl_that_came_just_before_the_first_comparison_is_found_in_the_next_pass() -> None:
    world, read = lagging_acls()
    world.run_pass()
    read.stale = None
    world.run_pass(after=0.1)
    assert world.target_acls.bindings == {READ_THERE}


def test_acl_is_compared_twice_though_the_first_comparison_came_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    world, read = lagging_acls()

    def silent(context: PassContext, agenda: KindsAgenda) -> object:
        raise ClusterUnreachable("silent for a moment")

    with monkeypatch.context() as broken:
        broken.setattr(world.controller(Kind.ACL), "survey", silent)
        with pytest.raises(ClusterUnreachable):
            world.run_pass()
    world.run_pass()
    read.stale = None
    world.run_pass(after=0.1)
    assert world.target_acls.bindings == {READ_THERE}


def test_acl_that_the_broker_that_is_read_shows_late_is_found_with_the_next_full_comparison() -> None:
    world, read = lagging_acls()
    for _ in range(3):
        world.run_pass(after=0.1)
    read.stale = None
    world.run_pass(after=0.1)
    assert not world.target_acls.bindings
    world.run_pass(after=INTERVAL)
    assert world.target_acls.bindings == {READ_THERE}


def test_acl_revoked_right_before_a_full_comparison_goes_though_the_broker_that_is_read_lags_in_that() -> None:
    world, read = lagging_acls()
    other = acl("ALLOW READ User:bo TOPIC x")
    watched = read.bindings
    watched.add(other)
    read.stale = None
    for _ in range(3):
        world.run_pass(after=INTERVAL)
    assert READ_THERE in world.target_acls.bindings
    read.stale = set(watched)
    watched.discard(READ)
    world.run_pass(after=INTERVAL - 1.0)
    assert world.run_pass(after=1.0).everything
    read.stale = None
    world.run_until_deleted(after=INTERVAL)
    assert world.target_acls.bindings == {acl("ALLOW READ User:bo TOPIC a.x")}
