"""What another process wrote to the ledger meanwhile holds for a deletion of the running job."""

from __future__ import annotations

import pytest

from sinks.engine.ledger_entries import Entry
from sinks.engine.model import Kind
from sinks.engine.reconcile import FlowReconcile
from sinks.kafka.memory.memory_acls import MemoryAcls
from sinks.kinds.acls.controller import REST
from tests.sinks.builders import World, put_topic
from tests.sinks.kinds.acls.acl_builders import acl

READ, WRITE = acl("ALLOW READ User:alice TOPIC x"), acl("ALLOW WRITE User:alice TOPIC x")
READ_THERE, WRITE_THERE = acl("ALLOW READ User:alice TOPIC a.x"), acl("ALLOW WRITE User:alice TOPIC a.x")


@pytest.fixture
def world() -> World:
    world = World(source_acls=MemoryAcls("a", {READ, WRITE}))
    put_topic(world.source, "x")
    world.settle()
    return world


def beside_a_command(world: World) -> tuple[FlowReconcile, FlowReconcile]:
    """The running job, and another process over the same clusters."""
    job = world.reconcile
    world.restart()
    return job, world.reconcile


def test_acl_that_a_command_deleted_and_somebody_added_again_is_not_deleted_by_the_running_job(world: World) -> None:
    job, command = beside_a_command(world)
    world.source_acls.bindings = {WRITE}
    command.run_pass()
    assert world.target_acls.bindings == {WRITE_THERE}
    world.target_acls.bindings.add(READ_THERE)
    world.clock.now += REST
    report = job.run_pass()
    assert world.target_acls.bindings == {READ_THERE, WRITE_THERE}
    assert [(refusal.key, "not Lockstep's" in refusal.reason) for refusal in report.plan.refused] == [
        (READ_THERE.key, True)
    ]
    world.clock.now += REST
    assert job.run_pass().plan.refused == ()


def test_deletion_of_a_kind_that_a_command_paused_meanwhile_is_not_made(world: World) -> None:
    job, _ = beside_a_command(world)
    world.ledger().put({(Entry.PAUSED, (Kind.ACL.value,)): ""})
    world.source_acls.bindings = {WRITE}
    world.clock.now += REST
    job.run_pass()
    assert world.target_acls.bindings == {READ_THERE, WRITE_THERE}
