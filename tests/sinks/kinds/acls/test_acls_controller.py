"""The pass keeps ACLs: what the source has comes, what it had goes if it is ours, and trouble stays their own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sinks.flow_settings import AclRules
from sinks.kafka.ports.acl_binding import AclBinding
from sinks.kinds.acls.controller import REST
from sinks.kinds.polled_controller import PolledController
from sinks.model.changes import Kind
from tests.memory.memory_acls import MemoryAcls, PlainAclWatch
from tests.sinks.builders import World, flow_settings, put_topic
from tests.sinks.kinds.acls.acl_builders import acl

READ, WRITE = acl("ALLOW READ User:alice TOPIC x"), acl("ALLOW WRITE User:alice TOPIC x")
READ_THERE, WRITE_THERE = acl("ALLOW READ User:alice TOPIC a.x"), acl("ALLOW WRITE User:alice TOPIC a.x")
INTERVAL = 60.0


@pytest.fixture
def world() -> World:
    return world_with(READ)


def world_with(*acls: AclBinding, rules: AclRules | None = None) -> World:
    built = World(flow_settings(acls=rules), source_acls=MemoryAcls("a", set(acls)))
    put_topic(built.source, "x")
    built.settle()
    built.run_pass(after=REST)
    built.target_acls.writes = 0
    return built


def test_new_acl_arrives_and_with_nothing_to_do_nothing_is_written(world: World) -> None:
    assert world.target_acls.bindings == {READ_THERE}
    world.source_acls.bindings.add(WRITE)
    world.run_pass(after=REST)
    assert world.target_acls.bindings == {READ_THERE, WRITE_THERE}
    for _ in range(5):
        world.run_pass(after=REST)
    world.run_pass(after=INTERVAL)
    assert world.target_acls.writes == 1


def test_acl_that_the_source_has_no_more_is_revoked(world: World) -> None:
    world.source_acls.bindings = {WRITE}
    world.run_until_deleted(after=REST)
    assert world.target_acls.bindings == {WRITE_THERE}
    assert world.ledger().owned(Kind.ACL) == {WRITE_THERE.key}


def test_acl_that_somebody_else_created_is_never_revoked_even_if_equal() -> None:
    world = World(source_acls=MemoryAcls("a", {READ}), target_acls=MemoryAcls("b", {READ_THERE}))
    put_topic(world.source, "x")
    world.settle()
    world.source_acls.bindings = {WRITE}
    world.run_until_deleted(after=REST)
    assert world.target_acls.bindings == {READ_THERE, WRITE_THERE}


def test_revocation_can_be_turned_off() -> None:
    world = world_with(READ, rules=AclRules(full=True, deletes=False))
    world.source_acls.bindings = {WRITE}
    world.run_until_deleted(after=REST)
    assert world.target_acls.bindings == {READ_THERE, WRITE_THERE}


def test_source_without_any_acl_is_not_believed(world: World) -> None:
    world.source_acls.bindings = set()
    report = world.run_until_deleted(after=REST)
    assert world.target_acls.bindings == {READ_THERE}
    assert ["shows no ACL" in error.reason for error in report.plan.errors] == [True]


def test_more_revocations_than_the_limit_are_refused_whole() -> None:
    many = [acl(f"ALLOW READ User:u{number} TOPIC x") for number in range(10)]
    world = world_with(*many)
    world.source_acls.bindings = set(many[4:])
    world.run_until_deleted(after=REST)
    for _ in range(3):
        report = world.run_pass(after=REST)
        assert "deletes 4 of 10 of the kind acl" in report.trouble.faulted[Kind.ACL]
    assert len(world.target_acls.bindings) == 10


def test_what_changed_on_the_target_is_mended_at_the_full_comparison(world: World) -> None:
    world.target_acls.bindings = set()
    world.run_pass(after=REST)
    assert world.target_acls.bindings == set()
    world.run_pass(after=INTERVAL)
    assert world.target_acls.bindings == {READ_THERE}


def test_refused_acl_is_set_aside_and_the_others_are_written(world: World) -> None:
    world.target_acls.policy = lambda binding: "no writers here" if binding.operation == "WRITE" else None
    other = acl("ALLOW DESCRIBE User:alice TOPIC x")
    world.source_acls.bindings |= {WRITE, other}
    world.run_pass(after=REST)
    assert world.target_acls.bindings == {READ_THERE, acl("ALLOW DESCRIBE User:alice TOPIC a.x")}
    writes = world.target_acls.writes
    for _ in range(10):
        (refusal,) = world.run_pass(after=REST).plan.refused
        assert refusal.key == WRITE_THERE.key
    assert world.target_acls.writes == writes
    world.target_acls.policy = lambda binding: None
    world.run_pass(after=30.0)
    assert WRITE_THERE in world.target_acls.bindings


@pytest.mark.parametrize("side", ["source_acls", "target_acls"])
def test_cluster_without_an_authorizer_is_said_once_and_topics_go_on(side: str) -> None:
    world = World(source_acls=MemoryAcls("a", {READ}))
    getattr(world, side).authorizer = False
    put_topic(world.source, "x")
    for _ in range(3):
        report = world.run_pass(after=REST)
        assert "no authorizer" in report.trouble.unsupported[Kind.ACL]
        assert report.plan.errors == ()
    assert "a.x" in world.target.topics
    getattr(world, side).authorizer = True
    report = world.run_pass(after=INTERVAL)
    assert report.trouble.unsupported == {}
    assert world.target_acls.bindings == {READ_THERE}


@pytest.mark.parametrize("side", ["source_acls", "target_acls"])
def test_acls_that_may_not_be_read_stop_their_own_kind_alone(side: str) -> None:
    world = World(source_acls=MemoryAcls("a", {READ}))
    getattr(world, side).denied = {"describe"}
    put_topic(world.source, "x")
    report = world.run_pass()
    assert [(error.kind, "DESCRIBE on the CLUSTER" in error.reason) for error in report.plan.errors] == [
        (Kind.ACL, True)
    ]
    assert "a.x" in world.target.topics
    getattr(world, side).denied = set()
    report = world.run_pass(after=INTERVAL)
    assert report.plan.errors == ()
    assert world.target_acls.bindings == {READ_THERE}


def test_acls_that_may_not_be_written_arrive_within_a_minute_after_the_right_was_granted() -> None:
    """However long it was missing, and however many they are."""
    several = {acl(f"ALLOW READ User:{number} TOPIC x") for number in range(20)}
    world = World(source_acls=MemoryAcls("a", several))
    put_topic(world.source, "x")
    world.target_acls.denied = {"alter"}
    for _ in range(120):
        world.run_pass(after=60.0)
    world.target_acls.denied = set()
    granted, report = world.clock.now, world.run_pass(after=60.0)
    while len(world.target_acls.bindings) < len(several):
        assert report.due <= world.clock.now, "the others have no reason"
        report = world.run_pass(after=0.2)
    assert report.now - granted <= 61.0


def test_acl_of_a_topic_that_comes_later_comes_with_it(world: World) -> None:
    prefixed = acl("ALLOW READ User:bob TOPIC y…")
    world.source_acls.bindings.add(prefixed)
    put_topic(world.source, "y1")
    world.run_pass(after=REST)
    assert acl("ALLOW READ User:bob TOPIC a.y…") in world.target_acls.bindings


class Overtaken(PlainAclWatch):
    """A look that is out of date at once: something happens right after it."""

    def __init__(self, acls: MemoryAcls) -> None:
        super().__init__(acls)
        self.then: list[Callable[[], object]] = []

    def changed(self) -> bool:
        differs = super().changed()
        if self.then:
            self.then.pop(0)()
        return differs


def test_acl_that_is_granted_behind_a_look_and_revoked_before_the_next_is_revoked_soon(world: World) -> None:
    acls, controller = world.source_acls, world.controller(Kind.ACL)
    assert isinstance(controller, PolledController) and controller._watches
    watch = Overtaken(acls)
    controller._watches = (watch, controller._watches[1])
    world.run_pass(after=REST)
    acls.bindings.add(acl("ALLOW DESCRIBE User:alice TOPIC x"))
    watch.then = [lambda: acls.bindings.add(WRITE)]
    world.run_pass(after=REST)
    world.run_pass(after=0.1)
    assert WRITE_THERE in world.target_acls.bindings
    acls.bindings.remove(WRITE)
    world.run_pass(after=REST)
    world.run_until_deleted(after=REST)
    assert WRITE_THERE not in world.target_acls.bindings
