"""What one kind found of a signal no other kind looks for; what is left of it every kind does."""

from __future__ import annotations

import pytest

from sinks.kinds.acls.controller import SIGNALLED_REST
from tests.sinks.builders import World, overrides_of, put_topic, set_config
from tests.sinks.kinds.acls.acl_builders import acl
from tests.sinks.one_signal import OneSignal, with_signal

AL, BO = (acl(f"ALLOW READ User:{name} TOPIC x") for name in ("al", "bo"))
BO_THERE = acl("ALLOW READ User:bo TOPIC a.x")


@pytest.fixture
def world() -> World:
    """x and an ACL of it are in step, and a signal works."""
    world = World()
    put_topic(world.source, "x", retention_ms="1")
    world.source_acls.bindings = {AL}
    world.settle()
    with_signal(world)
    for _ in range(3):
        world.run_pass(after=0.2)
    return world


def signal(world: World, records: int) -> None:
    """The source's log grew by so many records."""
    found = world.reconcile._components.signal
    assert isinstance(found, OneSignal)
    found.records = records


def test_acls_are_not_polled_for_a_record_that_a_changed_config_explains(world: World) -> None:
    world.source_acls.reachable = False
    set_config(world.source, "x", "retention.ms", "2")
    signal(world, 1)
    for _ in range(3):
        world.run_pass(after=0.2)
    assert overrides_of(world.target, "a.x")["retention.ms"] == "2"


def test_acls_are_polled_at_once_for_a_record_more_than_configs_explain(world: World) -> None:
    set_config(world.source, "x", "retention.ms", "2")
    world.source_acls.bindings = {AL, BO}
    signal(world, 2)
    world.run_pass(after=0.2)
    assert BO_THERE in world.target_acls.bindings


def test_an_acl_whose_record_a_config_was_taken_for_comes_with_the_next_poll(world: World) -> None:
    set_config(world.source, "x", "retention.ms", "2")
    world.source_acls.bindings = {AL, BO}
    signal(world, 1)
    world.run_pass(after=0.2)
    assert BO_THERE not in world.target_acls.bindings
    world.run_pass(after=SIGNALLED_REST)
    assert BO_THERE in world.target_acls.bindings
