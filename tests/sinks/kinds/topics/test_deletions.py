"""A topic of ours goes only when nothing speaks for it any more, for data goes with it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import pytest

from sinks.every_kind.absence import OBSERVATIONS, SECONDS
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.cluster import Faults
from sinks.model.changes import Kind
from streaming.mm2.replication_policy import SEPARATOR_KEY, DefaultReplicationPolicy, IdentityReplicationPolicy
from tests.memory.memory_cluster import MemoryCluster
from tests.sinks.builders import World, flow_settings, put_topic

OFTEN = SECONDS / (OBSERVATIONS - 1)
"""Seconds between observations that are just enough."""


def world_with(*topics: str, settings: FlowSettings | None = None) -> World:
    """These on the source, in step, and deletion asked for."""
    world = World(settings or flow_settings(topic_deletes=True))
    for topic in topics:
        put_topic(world.source, topic)
    world.settle()
    return world


def separated_by(separator: str) -> DefaultReplicationPolicy:
    """MM2's policy with this separator."""
    policy = DefaultReplicationPolicy()
    policy.configure({SEPARATOR_KEY: separator})
    return policy


def observe(world: World, times: int = OBSERVATIONS, after: float = OFTEN) -> None:
    for _ in range(times):
        world.run_pass(after=after)


def test_topic_that_is_gone_for_a_minute_goes_and_others_stay() -> None:
    world = world_with("x", "y")
    put_topic(world.target, "a.foreign")
    del world.source.topics["x"]
    observe(world)
    assert "a.x" not in world.target.topics
    assert {"a.y", "a.foreign"} <= world.target.topics.keys()
    assert world.ledger().owned(Kind.TOPIC) == {("a.y",)}


@pytest.mark.parametrize(("times", "after"), [(OBSERVATIONS - 1, SECONDS), (20, 1.0)])
def test_missing_too_seldom_or_too_shortly_is_not_gone(times: int, after: float) -> None:
    world = world_with("x", "y")
    del world.source.topics["x"]
    observe(world, times, after)
    assert "a.x" in world.target.topics


def test_topic_that_is_deleted_and_recreated_keeps_its_copy() -> None:
    world = world_with("x", "y")
    for _ in range(4):
        del world.source.topics["x"]
        observe(world, OBSERVATIONS - 1)
        put_topic(world.source, "x")
        observe(world, 1)
    assert "a.x" in world.target.topics


def test_topics_that_the_job_may_no_longer_describe_are_not_gone() -> None:
    class Hiding(MemoryCluster):
        def list_topics(self) -> dict[str, int]:
            return {name: count for name, count in super().list_topics().items() if name == "x0"}

        def confirmed_absent(self, topics: Collection[str]) -> set[str]:
            return set()

    world = world_with(*(f"x{number}" for number in range(8)))
    world.source.__class__ = Hiding
    observe(world, 10)
    assert len([name for name in world.target.topics if name.startswith("a.x")]) == 8


def test_topic_that_somebody_recreated_on_the_target_is_not_ours_any_more() -> None:
    world = world_with("x", "y")
    del world.target.topics["a.x"]
    put_topic(world.target, "a.x")
    del world.source.topics["x"]
    observe(world, 10)
    assert "a.x" in world.target.topics


def test_topic_that_somebody_recreates_right_before_the_request_stays() -> None:
    class Recreated(MemoryCluster):
        def delete_topics(self, topics: Collection[str], ids: Mapping[str, str] | None = None) -> Faults:
            for name in topics:
                del self.topics[name]
                put_topic(self, name)
            return super().delete_topics(topics, ids)

    world = world_with("x", "y")
    world.target.__class__ = Recreated
    del world.source.topics["x"]
    observe(world, 10)
    assert "a.x" in world.target.topics
    assert ("a.x",) not in world.ledger().owned(Kind.TOPIC)


def test_under_names_that_stay_the_same_no_topic_is_deleted() -> None:
    policy = IdentityReplicationPolicy()
    world = world_with("x", "y", settings=flow_settings(topic_deletes=True, policy=policy))
    del world.source.topics["x"]
    observe(world, 10)
    assert "x" in world.target.topics


def test_topic_that_the_filter_leaves_out_now_is_not_deleted() -> None:
    world = world_with("x", "y")
    world.settings = flow_settings({"topics.exclude": "x"}, topic_deletes=True)
    world.restart()
    observe(world, 10)
    assert "a.x" in world.target.topics


@pytest.mark.parametrize(
    ("topic", "before", "now"),
    [("my_orders", ".", "_"), ("us-east.orders", ".", "-"), ("x", "..", "."), ("x", "__", "_"), ("x", ".", "")],
)
def test_former_name_that_another_separator_takes_for_another_topic_deletes_nothing(
    topic: str, before: str, now: str
) -> None:
    world = world_with(topic, "y", settings=flow_settings(topic_deletes=True, policy=separated_by(before)))
    assert f"a{before}{topic}" in world.target.topics
    # The flow goes on with the ledger that it has.
    world.settings = replace(
        flow_settings(topic_deletes=True, policy=separated_by(now)), internal=world.settings.internal
    )
    world.restart()
    observe(world, 10)
    assert f"a{before}{topic}" in world.target.topics


def test_name_kept_by_the_policy_before_deletes_nothing() -> None:
    world = world_with("a.orders", "y", settings=flow_settings(topic_deletes=True, policy=IdentityReplicationPolicy()))
    assert ("a.orders",) in world.ledger().owned(Kind.TOPIC)
    world.settings = replace(flow_settings(topic_deletes=True), internal=world.settings.internal)
    world.restart()
    observe(world, 10)
    assert "a.orders" in world.target.topics


def test_former_name_of_a_topic_that_listings_lack_deletes_nothing() -> None:
    class Hiding(MemoryCluster):
        def list_topics(self) -> dict[str, int]:
            return {name: count for name, count in super().list_topics().items() if name != "x"}

    world = world_with("x", "y", settings=flow_settings(topic_deletes=True, policy=separated_by("..")))
    world.settings = replace(
        flow_settings(topic_deletes=True, policy=separated_by(".")), internal=world.settings.internal
    )
    world.source.__class__ = Hiding
    world.restart()
    observe(world, 10)
    assert "a..x" in world.target.topics


def test_nothing_is_deleted_unless_it_is_asked_for() -> None:
    world = world_with("x", "y", settings=flow_settings())
    del world.source.topics["x"]
    observe(world, 10)
    assert "a.x" in world.target.topics


def test_restart_of_the_job_counts_anew() -> None:
    world = world_with("x", "y")
    del world.source.topics["x"]
    for _ in range(5):
        observe(world, OBSERVATIONS - 1)
        world.restart()
    assert "a.x" in world.target.topics
