"""SCRAM users that Lockstep made under `sync.full.acl.enabled` go with it: they are Lockstep's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.failover_facts import in_step_of_pass
from sinks.engine.flow_task import FlowTask
from sinks.engine.metrics import Metrics
from sinks.engine.status import KindStatus, Task, in_step_of_status
from sinks.every_kind.comparison import GroupSummary
from sinks.flow_settings import AclRules
from sinks.kinds.polled_controller import REST
from sinks.model.changes import Kind
from tests.memory.memory_acls import MemoryAcls
from tests.memory.memory_users import MemoryUsers, Stored
from tests.sinks.builders import World, put_topic
from tests.sinks.kinds.acls.acl_builders import acl

READ = acl("ALLOW READ User:alice TOPIC x")
ALICE, BOB = ("alice", "SCRAM-SHA-512"), ("bob", "SCRAM-SHA-256")


@pytest.fixture
def world() -> World:
    """Alice is Lockstep's on the target, Bob is not. The file asks for all ACLs no more."""
    built = World(
        source_acls=MemoryAcls("a", {READ}),
        source_users=MemoryUsers("a", {ALICE: Stored(4096, "source's")}),
        target_users=MemoryUsers("b", {BOB: Stored(4096, "by hand")}),
    )
    built.provider.known = {"alice": ("hush", "1")}
    put_topic(built.source, "x")
    built.settle()
    built.run_pass(after=REST)
    assert built.target_users.stored.keys() == {ALICE, BOB}
    turn_off(built)
    return built


def turn_off(world: World, *, acls: bool = True) -> None:
    enabled = {**world.settings.enabled, Kind.SCRAM_USER: False, Kind.ACL: acls}
    world.settings = replace(world.settings, acls=AclRules(full=False), provider=None, enabled=enabled)
    world.restart()


def pass_again(world: World, times: int = 3) -> None:
    for _ in range(times):
        world.run_pass(after=REST)


def test_user_whom_the_source_still_has_is_held_until_a_person_confirms_it(world: World) -> None:
    pass_again(world)
    assert ALICE in world.target_users.stored
    (refusal,) = [one for one in world.run_pass(after=REST).plan.refused if one.kind is Kind.SCRAM_USER]
    assert refusal.key == ALICE
    assert "lockstep apply --force" in refusal.reason
    with world.reconcile.leading():
        world.reconcile.apply(world.reconcile.compare(force=True))
    assert world.target_users.stored.keys() == {BOB}
    assert world.ledger().owned(Kind.SCRAM_USER) == set()


def test_kind_that_is_not_enabled_shows_that_its_users_are_held_and_is_not_enabled_again_after_that(
    world: World,
) -> None:
    task = FlowTask(world.reconcile, Metrics("test"), clock=world.clock)

    def shown() -> KindStatus:
        world.clock.now += REST
        return task.step(None).kinds[Kind.SCRAM_USER]

    assert shown().task is not Task.HELD
    for _ in range(3):
        held = shown()
    assert (held.task, held.drift) == (Task.HELD, 1)
    assert "lockstep apply --force" in (held.reason or "")
    with world.reconcile.leading():
        world.reconcile.apply(world.reconcile.compare(force=True))
    assert (shown().task, shown().reason) == (Task.DISABLED, "not enabled")


def test_preflight_says_of_users_that_are_held_what_the_page_says(world: World) -> None:
    task = FlowTask(world.reconcile, Metrics("test"), clock=world.clock)
    for _ in range(4):
        status = task.step(None)
        world.clock.now += REST
    enabled = [kind for kind in Kind if world.settings.enabled[kind]]
    world.clock.now += REST
    by_pass = in_step_of_pass(world.reconcile.report_only(world.reconcile.compare()), enabled, GroupSummary({}, {}))
    by_job = in_step_of_status(status)
    assert by_job.faulted.get(Kind.SCRAM_USER) == by_pass.faulted[Kind.SCRAM_USER]
    assert by_job.drift[Kind.SCRAM_USER] == by_pass.drift[Kind.SCRAM_USER] == 1


def test_user_whom_the_source_lost_is_deleted(world: World) -> None:
    world.source_users.stored.clear()
    pass_again(world)
    assert world.target_users.stored.keys() == {BOB}


def test_no_user_is_asked_for_where_none_is_lockstep_s() -> None:
    built = World(source_acls=MemoryAcls("a", {READ}))
    put_topic(built.source, "x")
    turn_off(built)
    built.source_users.denied = built.target_users.denied = {"describe"}
    for _ in range(3):
        report = built.run_pass(after=REST)
        assert not report.trouble.faulted
        assert not report.plan.errors


def test_users_stay_where_acls_are_not_synced_at_all(world: World) -> None:
    turn_off(world, acls=False)
    world.source_users.stored.clear()
    pass_again(world)
    assert world.target_users.stored.keys() == {ALICE, BOB}
