"""A command whose plan no person sees, `apply --yes`, deletes nothing on one moment's answer."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from app.single_pass import SinglePass
from app.wiring import FlowClusters
from sinks.engine.deletion_checks import SECOND_LOOK_AFTER_S
from sinks.model.changes import Kind
from tests.memory.memory_acls import MemoryAcls
from tests.sinks.builders import World, flow_settings, put_topic
from tests.sinks.kinds.acls.acl_builders import acl

READ, OTHER = acl("ALLOW READ User:u TOPIC x"), acl("ALLOW READ User:other TOPIC x")
READ_THERE, OTHER_THERE = acl("ALLOW READ User:u TOPIC a.x"), acl("ALLOW READ User:other TOPIC a.x")


@pytest.fixture
def world() -> World:
    """Two ACLs in step; then the source lacks one of them, and a command of its own process begins."""
    world = World(flow_settings(topic_deletes=True), source_acls=MemoryAcls("a", {READ, OTHER}))
    for topic in ("x", "y"):
        put_topic(world.source, topic)
    world.settle()
    world.source_acls.bindings = {OTHER}
    return world


def command(world: World, *, reviewed: bool) -> SinglePass:
    world.reviewed = reviewed
    world.restart()

    def wait(seconds: float) -> None:
        world.clock.now += seconds

    made = tuple(world.controllers)
    return SinglePass(world.settings, cast(FlowClusters, None), world.reconcile, made, reviewed=reviewed, wait=wait)


def test_what_the_source_lacks_twice_goes(world: World) -> None:
    one, began = command(world, reviewed=False), world.clock.now
    compared = one.compare()
    assert world.clock.now == began + SECOND_LOOK_AFTER_S
    one.reconcile.apply(compared)
    assert world.target_acls.bindings == {OTHER_THERE}
    assert compared.waiting == ()


def test_what_one_answer_alone_lacked_stays(world: World) -> None:
    one = command(world, reviewed=False)

    def wait(seconds: float) -> None:
        world.clock.now += seconds
        world.source_acls.bindings = {READ, OTHER}

    compared = replace(one, wait=wait).compare()
    one.reconcile.apply(compared)
    assert world.target_acls.bindings == {READ_THERE, OTHER_THERE}
    assert compared.waiting == ()


def test_topic_is_left_to_the_job_and_to_a_reviewed_plan(world: World) -> None:
    world.source.delete_topics(["y"])
    one = command(world, reviewed=False)
    compared = one.compare()
    one.reconcile.apply(compared)
    assert "a.y" in world.target.topics
    assert [(row.kind, row.key) for row in compared.waiting] == [(Kind.TOPIC, ("a.y",))]
    seen = command(world, reviewed=True)
    compared = seen.compare()
    assert compared.waiting == ()
    seen.reconcile.apply(compared)
    assert "a.y" not in world.target.topics


def test_nothing_waits_where_nothing_is_deleted_or_a_person_sees_it(world: World) -> None:
    began = world.clock.now
    assert command(world, reviewed=True).compare().plan.changes
    world.source_acls.bindings = {READ, OTHER}
    assert not command(world, reviewed=False).compare().plan.changes
    assert world.clock.now == began
