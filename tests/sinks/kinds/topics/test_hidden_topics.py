"""A topic that the principal may not see is no topic that was deleted: the copy on the target tells of it."""

from __future__ import annotations

import pytest

from sinks.model.changes import Kind
from streaming.mm2.replication_policy import IdentityReplicationPolicy
from tests.sinks.builders import World, flow_settings, put_topic

FULL = 61.0
"""Seconds until everything is compared again."""


def in_step(world: World) -> World:
    for topic in ("x", "y"):
        put_topic(world.source, topic)
    world.settle()
    return world


def test_copies_whose_topics_are_hidden_are_said_with_the_right_that_is_missing() -> None:
    world = in_step(World())
    world.source.unseen |= {"x", "y"}
    report = world.run_pass(after=FULL)
    assert {error.kind for error in report.plan.errors} == {Kind.TOPIC, Kind.TOPIC_CONFIG}
    assert "a does not list x, y, and does not say either that they are gone" in report.plan.errors[0].reason
    assert "DESCRIBE" in report.plan.errors[0].reason


def test_hidden_topics_are_said_until_they_are_seen_again() -> None:
    world = in_step(World())
    world.source.unseen.add("x")
    world.run_pass(after=FULL)
    assert world.run_pass(after=1).plan.errors
    world.source.unseen.clear()
    assert not world.run_pass(after=FULL).plan.errors


def test_a_topic_that_a_broker_says_is_gone_is_not_hidden() -> None:
    world = in_step(World())
    del world.source.topics["x"]
    assert not world.run_pass(after=FULL).plan.errors


@pytest.mark.parametrize("topics", ["y", "others"])
def test_a_topic_that_the_file_leaves_out_is_not_hidden(topics: str) -> None:
    world = in_step(World())
    world.source.unseen.add("x")
    world.settings = flow_settings({"topics": topics})
    world.restart()
    assert not world.run_pass(after=FULL).plan.errors


def test_under_the_identity_policy_the_topics_that_lockstep_created_tell_of_hidden_ones() -> None:
    world = in_step(World(flow_settings(policy=IdentityReplicationPolicy())))
    world.source.unseen.add("x")
    assert "a does not list x" in world.run_pass(after=FULL).plan.errors[0].reason
