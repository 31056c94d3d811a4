"""What was Lockstep's and is gone from the target is not Lockstep's any more, though nothing of its kind is left."""

from __future__ import annotations

import pytest

from sinks.kinds.quotas.controller import PORT
from sinks.kinds.quotas.quota_port import Entity, Quotas
from sinks.model.changes import Kind
from tests.memory.memory_acls import MemoryAcls
from tests.memory.memory_quotas import MemoryQuotas
from tests.memory.memory_users import MemoryUsers, Stored
from tests.sinks.builders import World, flow_settings, put_topic
from tests.sinks.kinds.acls.acl_builders import acl

READ, OTHER = acl("ALLOW READ User:alice TOPIC x"), acl("ALLOW READ User:bob TOPIC x")
NOT_SYNCED = acl("ALLOW READ User:carol TOPIC __consumer_offsets")
THERE = acl("ALLOW READ User:alice TOPIC a.x")
ALICE = ("alice", "SCRAM-SHA-512")
THEIRS = Stored(8192, "the operator's own")
OF_ALICE, OF_BOB = Entity(user="alice"), Entity(user="bob")


@pytest.fixture
def world() -> World:
    """alice's ACL, user and quota are on both sides, and no others."""
    built = World(
        flow_settings(enabled=[Kind.TOPIC, Kind.ACL, Kind.SCRAM_USER, Kind.CLIENT_QUOTA]),
        source_acls=MemoryAcls("a", {READ, NOT_SYNCED}),
        source_users=MemoryUsers("a", {ALICE: Stored(4096, "s")}),
        others={PORT: {"a": MemoryQuotas("a", {OF_ALICE: {"producer_byte_rate": 1.0}}), "b": MemoryQuotas("b")}},
    )
    built.provider.known = {"alice": ("hush", "1")}
    put_topic(built.source, "x")
    for _ in range(4):
        built.run_pass(after=15.0)
    return built


def remove_alice(world: World) -> None:
    """From both clusters, and by another hand."""
    world.source_acls.bindings.remove(READ)
    world.target_acls.bindings.clear()
    world.target_users.stored.clear()
    for quotas in world.others[PORT].values():
        quotas.quotas = {}


def owned(world: World) -> set[Kind]:
    return {kind for kind in (Kind.ACL, Kind.SCRAM_USER, Kind.CLIENT_QUOTA) if world.ledger().owned(kind)}


def test_what_was_made_by_hand_long_after_lockstep_s_own_was_removed_stays(world: World) -> None:
    assert owned(world) == {Kind.ACL, Kind.SCRAM_USER, Kind.CLIENT_QUOTA}
    remove_alice(world)
    for _ in range(10):
        world.run_pass(after=15.0)
    assert owned(world) == set()
    world.target_acls.bindings.add(THERE)
    world.target_users.stored[ALICE] = THEIRS
    world.others[PORT]["b"].quotas = {OF_ALICE: {"producer_byte_rate": 7.0}}
    world.source_acls.bindings.add(OTHER)
    world.others[PORT]["a"].quotas = {OF_BOB: {"producer_byte_rate": 2.0}}
    for _ in range(10):
        world.run_pass(after=15.0)
    assert THERE in world.target_acls.bindings
    assert world.target_users.stored[ALICE] == THEIRS
    assert world.others[PORT]["b"].quotas[OF_ALICE] == {"producer_byte_rate": 7.0}


def test_target_that_shows_nothing_for_a_moment_has_not_lost_it(world: World) -> None:
    remove_alice(world)
    for _ in range(4):
        world.run_pass(after=14.0)
    assert owned(world) == {Kind.ACL, Kind.SCRAM_USER, Kind.CLIENT_QUOTA}


def test_kind_of_which_nothing_is_left_is_polled_no_more_often_than_before(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove_alice(world)
    asked: list[float] = []
    describe = world.others[PORT]["b"].describe

    def counted() -> Quotas:
        asked.append(world.clock.now)
        return describe()

    monkeypatch.setattr(world.others[PORT]["b"], "describe", counted)
    for _ in range(60):
        world.run_pass(after=1.0)
    assert 3 <= len(asked) <= 7


def test_what_was_removed_before_anybody_saw_it_is_let_go_of_although_nothing_else_changes() -> None:
    world = World(flow_settings(enabled=[Kind.TOPIC, Kind.ACL]), source_acls=MemoryAcls("a", {READ, OTHER}))
    put_topic(world.source, "x")
    world.run_pass()
    assert THERE in world.target_acls.bindings
    world.target_acls.bindings.discard(THERE)
    world.source_acls.bindings.discard(READ)
    for _ in range(10):
        world.run_pass(after=60.0)
    assert THERE.key not in world.ledger().owned(Kind.ACL)
