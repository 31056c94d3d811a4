"""Deletions that are too many, or of what is not Lockstep's any more, are refused with the reason."""

from __future__ import annotations

import pytest

from sinks.engine.deletion_checks import SECOND_LOOK_AFTER_S, beyond_limit
from sinks.engine.reconcile import FlowReconcile
from sinks.flow_settings import Limits
from sinks.kinds.acls.controller import REST
from sinks.ledger.ledger_entries import Entry
from sinks.model.changes import Kind
from sinks.model.plan import Plan, make_plan
from tests.memory.memory_acls import MemoryAcls
from tests.sinks.builders import FLOW, World, config_change, put_topic, topic_change
from tests.sinks.kinds.acls.acl_builders import acl


def deleting(deletes: int, existing: int, kind: Kind = Kind.TOPIC) -> Plan:
    """A plan with so many deletions of what Lockstep may delete."""
    changes = [
        topic_change(f"a.{n}", 1, None) if kind is Kind.TOPIC else config_change(f"a.{n}", "retention.ms", "1", None)
        for n in range(deletes)
    ]
    return make_plan(FLOW, changes, existing={kind: existing})


def test_too_many_deletions_are_refused_with_numbers_and_remedy() -> None:
    reason = beyond_limit(deleting(4, 10), Limits())[Kind.TOPIC]
    for part in ("a->b", "4 of 10", "topic", "allows (3)", "lockstep.limits.max.delete.percent=30", "was written"):
        assert part in reason
    assert "`lockstep apply --force`" in reason


@pytest.mark.parametrize(("deletes", "existing"), [(3, 10), (3, 9), (1, 1), (0, 0), (30, 100)])
def test_up_to_the_limit_nothing_is_refused(deletes: int, existing: int) -> None:
    assert beyond_limit(deleting(deletes, existing), Limits()) == {}


@pytest.mark.parametrize(("deletes", "existing"), [(4, 4), (4, 8), (9, 9), (31, 100)])
def test_limit_holds_for_small_numbers_as_well(deletes: int, existing: int) -> None:
    assert set(beyond_limit(deleting(deletes, existing), Limits())) == {Kind.TOPIC}


@pytest.mark.parametrize(("percent", "deletes"), [(0.0, 1), (50.0, 6), (29.9, 3)])
def test_limit_is_what_the_properties_say(percent: float, deletes: int) -> None:
    assert beyond_limit(deleting(deletes, 10), Limits(max_delete_percent=percent))


def test_minimum_is_what_the_properties_say() -> None:
    assert beyond_limit(deleting(2, 2), Limits(max_delete_minimum=2))


def test_deletions_of_topic_configs_have_no_limit() -> None:
    assert beyond_limit(deleting(100, 100, Kind.TOPIC_CONFIG), Limits(max_delete_percent=0)) == {}


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
    world.reviewed = True
    world.restart()
    return job, world.reconcile


def test_acl_that_a_command_deleted_and_somebody_added_again_is_not_deleted_by_the_running_job(world: World) -> None:
    job, command = beside_a_command(world)
    world.source_acls.bindings = {WRITE}
    world.clock.now += REST
    job.run_pass()
    command.run_pass()
    assert world.target_acls.bindings == {WRITE_THERE}
    world.target_acls.bindings.add(READ_THERE)
    world.clock.now += SECOND_LOOK_AFTER_S
    report = job.run_pass()
    assert world.target_acls.bindings == {READ_THERE, WRITE_THERE}
    assert [(refusal.key, "the ledger released the item" in refusal.reason) for refusal in report.plan.refused] == [
        (READ_THERE.key, True)
    ]
    world.clock.now += REST
    assert job.run_pass().plan.refused == ()


def test_deletion_of_a_kind_that_a_command_paused_meanwhile_is_not_made(world: World) -> None:
    job, _ = beside_a_command(world)
    world.ledger().put({(Entry.PAUSED, (Kind.ACL.value,)): ""})
    world.source_acls.bindings = {WRITE}
    for seconds in (REST, SECOND_LOOK_AFTER_S):
        world.clock.now += seconds
        report = job.run_pass()
    assert [refusal.key for refusal in report.plan.refused] == [READ_THERE.key]
    assert world.target_acls.bindings == {READ_THERE, WRITE_THERE}
