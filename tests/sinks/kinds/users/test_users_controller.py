"""The pass keeps SCRAM users: those whom the synced ACLs name and whose password is known, and no others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sinks.flow_settings import AclRules
from sinks.kinds.polled_controller import REST
from sinks.ledger.ledger import Entry
from sinks.model.changes import Kind
from sinks.model.principals import ADOPT, PROTECTED, NamedPrincipals
from tests.memory.memory_acls import MemoryAcls
from tests.memory.memory_users import MemoryUsers, Stored
from tests.sinks.builders import World, flow_settings, put_topic
from tests.sinks.kinds.acls.acl_builders import acl

READ = acl("ALLOW READ User:alice TOPIC x")
ALICE = ("alice", "SCRAM-SHA-512")
BOB = ("bob", "SCRAM-SHA-256")


def users(*keys: tuple[str, str], iterations: int = 4096) -> MemoryUsers:
    return MemoryUsers("a", {key: Stored(iterations, "source's") for key in keys})


@pytest.fixture
def world() -> World:
    built = World(source_acls=MemoryAcls("a", {READ}), source_users=users(ALICE, BOB))
    built.provider.known = {"alice": ("hush", "1"), "bob": ("hush", "1")}
    put_topic(built.source, "x")
    built.settle()
    built.run_pass(after=REST)
    built.target_users.writes = 0
    return built


def test_users_of_the_acls_get_their_password_and_the_sources_iterations(world: World) -> None:
    assert world.target_users.stored == {ALICE: Stored(4096, "hush")}
    assert world.ledger().owned(Kind.SCRAM_USER) == {ALICE}
    assert world.ledger().versions(Kind.SCRAM_USER) == {ALICE: "1"}


def test_with_nothing_to_do_nothing_is_written(world: World) -> None:
    for _ in range(5):
        world.run_pass(after=REST)
    assert world.target_users.writes == 0


def test_newer_password_is_written_once(world: World) -> None:
    world.provider.known["alice"] = ("newer", "2")
    for _ in range(3):
        world.run_pass(after=REST)
    assert world.target_users.logs_in("alice", "newer", ALICE[1])
    assert world.target_users.writes == 1


def test_other_iterations_on_the_source_are_written(world: World) -> None:
    world.source_users.stored[ALICE] = Stored(8192, "source's")
    world.run_pass(after=REST)
    assert world.target_users.stored[ALICE].iterations == 8192


def test_user_without_a_credential_is_drift_and_fails_nobody_else() -> None:
    world = World(
        source_acls=MemoryAcls("a", {READ, acl("ALLOW READ User:bob TOPIC x")}), source_users=users(ALICE, BOB)
    )
    world.provider.known = {"bob": ("hush", "1")}
    put_topic(world.source, "x")
    for _ in range(3):
        report = world.run_pass(after=REST)
    assert world.target_users.stored.keys() == {BOB}
    assert [(refusal.key, refusal.reason) for refusal in report.plan.refused] == [(ALICE, "no credential")]


def test_user_who_was_revoked_before_anybody_wrote_down_who_created_him_is_deleted(world: World) -> None:
    place = (Kind.SCRAM_USER.value, *ALICE)
    # The process died between the creation and its record.
    world.ledger().put({(Entry.OWNED, place): None, (Entry.VERSION, place): None, (Entry.INTENT, place): ""})
    world.source_acls.bindings = {acl("ALLOW READ User:bob TOPIC x")}
    world.restart()
    for _ in range(4):
        world.run_pass(after=REST)
    assert ALICE not in world.target_users.stored


def test_user_who_is_protected_for_a_while_stays_locksteps(world: World) -> None:
    rules = world.settings.acls
    world.source_acls.bindings.add(acl("ALLOW READ User:bob TOPIC x"))
    for protected in (NamedPrincipals(PROTECTED, "alice"), rules.protected):
        world.settings = replace(world.settings, acls=replace(rules, protected=protected))
        world.restart()
        for _ in range(4):
            world.run_pass(after=REST)
    assert world.ledger().owned(Kind.SCRAM_USER) == {ALICE, BOB}


def test_user_whom_no_acl_names_any_more_is_deleted_if_lockstep_created_him(world: World) -> None:
    world.source_acls.bindings = {acl("ALLOW READ User:bob TOPIC x")}
    world.run_pass(after=REST)
    world.run_pass(after=REST)
    assert world.target_users.stored.keys() == {BOB}


def test_user_whom_somebody_else_created_is_never_deleted() -> None:
    world = World(source_acls=MemoryAcls("a", {READ}), source_users=users(ALICE, BOB))
    world.target_users.stored = {ALICE: Stored(4096, "own"), BOB: Stored(4096, "own")}
    put_topic(world.source, "x")
    world.settle()
    world.source_acls.bindings = {acl("ALLOW READ User:carol TOPIC x")}
    for _ in range(3):
        world.run_pass(after=REST)
    assert world.target_users.stored == {ALICE: Stored(4096, "own"), BOB: Stored(4096, "own")}


def test_paused_users_are_left_alone(world: World) -> None:
    world.ledger().put({(Entry.PAUSED, (Kind.SCRAM_USER.value,)): ""})
    world.run_pass(after=60.0)
    world.provider.known["alice"] = ("newer", "2")
    world.run_pass(after=REST)
    assert world.target_users.logs_in("alice", "hush", ALICE[1])


def world_with_foreign_alice(acls: AclRules) -> World:
    world = World(flow_settings(acls=acls), source_acls=MemoryAcls("a", {READ}), source_users=users(ALICE))
    world.provider.known = {"alice": ("hush", "1")}
    world.target_users.stored = {ALICE: Stored(4096, "own")}
    put_topic(world.source, "x")
    return world


def test_user_whom_somebody_else_created_is_never_overwritten_and_is_drift() -> None:
    world = world_with_foreign_alice(AclRules(full=True))
    world.run_pass()
    for _ in range(3):
        report = world.run_pass(after=REST)
        assert [(refusal.key, "is not Lockstep's" in refusal.reason) for refusal in report.plan.refused] == [
            (ALICE, True)
        ]
    assert world.target_users.stored == {ALICE: Stored(4096, "own")}


def test_adopted_user_is_written_followed_and_never_deleted() -> None:
    world = world_with_foreign_alice(AclRules(full=True, adopted=NamedPrincipals(ADOPT, "al.*")))
    world.run_pass(after=REST)
    world.run_pass(after=REST)
    assert world.target_users.logs_in("alice", "hush", ALICE[1])
    world.settings = replace(world.settings, acls=AclRules(full=True))
    world.restart()
    world.provider.known["alice"] = ("newer", "2")
    world.run_pass(after=REST)
    world.run_pass(after=REST)
    assert world.target_users.logs_in("alice", "newer", ALICE[1])
    world.source_acls.bindings = {acl("ALLOW READ User:bob TOPIC x")}
    for _ in range(3):
        world.run_pass(after=REST)
    assert world.target_users.stored.keys() == {ALICE}


def test_protected_user_is_neither_altered_nor_deleted(world: World) -> None:
    world.settings = replace(world.settings, acls=AclRules(full=True, protected=NamedPrincipals(known=["User:alice"])))
    world.restart()
    world.provider.known["alice"] = ("newer", "2")
    world.run_pass(after=REST)
    world.source_acls.bindings = {acl("ALLOW READ User:bob TOPIC x")}
    for _ in range(3):
        report = world.run_pass(after=REST)
        assert not report.plan.refused
    assert world.target_users.stored == {ALICE: Stored(4096, "hush"), BOB: Stored(4096, "hush")}


@pytest.mark.parametrize("entry", [(Entry.PAUSED, (Kind.ACL.value,)), None])
def test_users_follow_the_sources_acls_while_acls_are_paused_or_not_synced(
    world: World, entry: tuple[Entry, tuple[str, ...]] | None
) -> None:
    if entry:
        world.ledger().put({entry: ""})
    else:
        world.settings = replace(world.settings, enabled={**world.settings.enabled, Kind.ACL: False})
    world.restart()
    world.source_acls.bindings.add(acl("ALLOW READ User:bob TOPIC x"))
    for _ in range(3):
        world.run_pass(after=REST)
    assert world.target_users.stored.keys() == {ALICE, BOB}
    world.source_acls.bindings.remove(READ)
    for _ in range(3):
        world.run_pass(after=REST)
    assert world.target_users.stored.keys() == {BOB}
    assert {binding.principal for binding in world.target_acls.bindings} == {"User:alice"}


def test_no_password_is_in_the_plan_the_ledger_or_the_audit(world: World) -> None:
    world.provider.known["alice"] = ("hush-hush", "2")
    report = world.run_pass(after=REST)
    assert report.outcomes
    kept = repr(report) + repr(world.events()) + repr(world.target.topics)
    assert "hush" not in kept
