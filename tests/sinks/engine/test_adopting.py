"""`lockstep adopt` takes over what the target has just as the source has it, and nothing else."""

from __future__ import annotations

import pytest

from sinks.engine.adopting import adoptable, take_over
from sinks.engine.cluster_guard import ClusterGuard
from sinks.flow_settings import AclRules
from sinks.kafka.ports.acl_binding import AclBinding
from sinks.kinds.acls.controller import REST
from sinks.kinds.quotas.controller import PORT
from sinks.kinds.quotas.quota_port import Entity
from sinks.kinds.users.rules import UNPROVEN, DesiredUsers, WantedUser, alike_users
from sinks.ledger.adoption import AdoptionPlan, Alike
from sinks.ledger.audit import Audit
from sinks.ledger.failover_record import FailoverRecord, State
from sinks.ledger.ledger_entries import Entry
from sinks.model.changes import Change, Kind
from sinks.model.principals import ADOPT, NamedPrincipals
from streaming.errors import LockstepError
from tests.memory.memory_acls import MemoryAcls
from tests.memory.memory_quotas import MemoryQuotas
from tests.sinks.builders import World, flow_settings, put_topic
from tests.sinks.kinds.acls.acl_builders import acl, identity

READ, WRITE = acl("ALLOW READ User:alice TOPIC x"), acl("ALLOW WRITE User:alice TOPIC x")
READ_THERE, WRITE_THERE = acl("ALLOW READ User:alice TOPIC a.x"), acl("ALLOW WRITE User:alice TOPIC a.x")
ALICE = ("alice", "SCRAM-SHA-512")


def world_with(*source: AclBinding, target: AclBinding | None = READ_THERE, rules: AclRules | None = None) -> World:
    """A topic in step, ACLs on the source, and one that another hand made on the target."""
    there = {target} if target else set()
    world = World(flow_settings(acls=rules), source_acls=MemoryAcls("a", {*source}), target_acls=MemoryAcls("b", there))
    put_topic(world.source, "x")
    world.settle()
    return world


def adoption(world: World, kind: Kind) -> AdoptionPlan:
    """As a command sees it, which has compared nothing before."""
    world.restart()
    return adoptable(world.reconcile, kind).plan


def adopt(world: World, kind: Kind) -> AdoptionPlan:
    plan = adoption(world, kind)
    guard = ClusterGuard(world.settings.flow, world.source, world.target)
    take_over(plan, world.ledger(), guard, Audit(world.settings.internal.audit, world.target, 1, "tester", world.now))
    world.restart()
    return plan


def test_adopted_acl_is_revoked_with_the_sources() -> None:
    world = world_with(READ, WRITE)
    assert adopt(world, Kind.ACL).items == {READ_THERE.key: ""}
    world.source_acls.bindings = {WRITE}
    world.run_until_deleted(after=REST)
    assert world.target_acls.bindings == {WRITE_THERE}


def test_nothing_is_written_but_the_ledger_and_an_event_for_each() -> None:
    world = world_with(READ, WRITE)
    before, writes = len(world.events()), world.target_acls.writes
    plan = adopt(world, Kind.ACL)
    (event,) = world.events()[before:]
    assert (event.op, event.kind, event.key, event.result) == ("adopt", "acl", READ_THERE.key, "applied")
    assert (event.digest, world.target_acls.writes) == (plan.digest, writes)


def test_what_the_source_has_not_is_not_adopted() -> None:
    assert not adoption(world_with(WRITE), Kind.ACL).items


def test_what_is_lockstep_s_already_is_counted_and_not_adopted_again() -> None:
    world = world_with(READ, WRITE)
    adopt(world, Kind.ACL)
    events = len(world.events())
    plan = adopt(world, Kind.ACL)
    assert (plan.items, plan.owned, len(world.events())) == ({}, 2, events)


def test_acl_of_a_protected_principal_is_not_adopted() -> None:
    rules = AclRules(full=True, protected=NamedPrincipals(ADOPT, "User:alice"))
    assert not adoption(world_with(READ, rules=rules), Kind.ACL).items


def test_acl_that_covers_lockstep_s_own_topics_is_refused_with_its_reason() -> None:
    wide = acl("ALLOW WRITE User:bob TOPIC *")
    acls = MemoryAcls("a", {wide}), MemoryAcls("b", {wide})
    world = World(flow_settings(policy=identity()), source_acls=acls[0], target_acls=acls[1])
    put_topic(world.source, "x")
    plan = adoption(world, Kind.ACL)
    assert (plan.items, list(plan.refused)) == ({}, [wide.key])


def test_a_source_that_shows_no_acl_leaves_nothing_to_adopt() -> None:
    world = world_with(READ, WRITE)
    world.source_acls.bindings = set()
    assert not adoption(world, Kind.ACL).items


def test_paused_kind_is_not_adopted() -> None:
    world = world_with(READ)
    world.ledger().put({(Entry.PAUSED, ("acl",)): ""})
    assert not adoption(world, Kind.ACL).items


def test_nothing_is_adopted_for_a_flow_that_has_ended() -> None:
    world = world_with(READ)
    world.ledger().put({(Entry.FAILOVER, ("state",)): FailoverRecord(State.PROMOTED).to_text()})
    with pytest.raises(LockstepError, match="the flow is PROMOTED"):
        adoption(world, Kind.ACL)


def test_a_kind_that_cannot_be_seen_is_an_error() -> None:
    world = World(source_acls=MemoryAcls("a", authorizer=False))
    put_topic(world.source, "x")
    with pytest.raises(LockstepError, match="acl: a: no authorizer"):
        adoption(world, Kind.ACL)


def test_an_intent_that_was_open_is_answered_by_the_adoption() -> None:
    world = world_with(READ)
    world.ledger().intend([Change(Kind.ACL, READ_THERE.key, None, "ALLOW")])
    adopt(world, Kind.ACL)
    assert (world.ledger().unsettled(Kind.ACL), world.ledger().owned(Kind.ACL)) == (set(), {READ_THERE.key})


def test_equal_quota_is_adopted_and_another_value_is_not() -> None:
    alice, bob, rate = Entity(user="alice"), Entity(user="bob"), "producer_byte_rate"
    there = MemoryQuotas("b", {alice: {rate: 1.0}, bob: {rate: 7.0}})
    quotas = {"a": MemoryQuotas("a", {alice: {rate: 1.0}, bob: {rate: 2.0}}), "b": there}
    world = World(flow_settings(enabled=[Kind.TOPIC, Kind.CLIENT_QUOTA]), others={PORT: quotas})
    put_topic(world.source, "x")
    assert adoption(world, Kind.CLIENT_QUOTA).items == {(*alice, rate): ""}


def test_user_is_adopted_only_once_lockstep_wrote_its_password() -> None:
    desired = DesiredUsers({ALICE: WantedUser("alice", 4096, "1")})
    there = {"alice": {"SCRAM-SHA-512": 4096}}
    assert alike_users(desired, there, {}) == Alike({}, {ALICE: UNPROVEN})
    assert alike_users(desired, there, {ALICE: "1"}) == Alike({ALICE: ""})
    assert alike_users(desired, {"alice": {"SCRAM-SHA-512": 8192}}, {ALICE: "1"}) == Alike()
