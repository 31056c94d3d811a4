"""A source that was made to flood the target is stopped, and an ordinary first contact is not."""

from __future__ import annotations

from datetime import timedelta

from sinks.flow_settings import Limits
from sinks.kafka.ports.acl_binding import AclBinding
from sinks.kinds.acls.controller import REST
from sinks.model.changes import Kind
from tests.memory.memory_acls import MemoryAcls
from tests.sinks.builders import NOON, World, flow_settings, put_topic
from tests.sinks.kinds.acls.acl_builders import acl

HOUR = 3600.0


def granted(count: int, since: int = 0) -> set[AclBinding]:
    return {acl(f"ALLOW READ User:u{number} TOPIC x") for number in range(since, since + count)}


def world_with(count: int, limit: int) -> World:
    world = World(flow_settings(limits=Limits(max_create=limit)), source_acls=MemoryAcls("a", granted(count)))
    put_topic(world.source, "x")
    return world


def test_first_contact_within_the_limit_creates_all_at_once() -> None:
    world = world_with(20, 20)
    world.run_pass()
    assert len(world.target_acls.bindings) == 20


def test_flood_is_held_with_the_figures_and_the_rest_goes_on() -> None:
    world = world_with(5, 10)
    world.settle()
    world.source_acls.bindings |= granted(100, since=50)
    put_topic(world.source, "y")
    for _ in range(3):
        report = world.run_pass(after=REST)
        reason = report.trouble.held[Kind.ACL]
        assert all(part in reason for part in ("100", "lockstep.limits.max.create=10", "`lockstep apply --force`"))
        assert len(report.plan.refused) == 100
    assert len(world.target_acls.bindings) == 5
    assert "a.y" in world.target.topics


def test_flood_in_small_steps_is_held_as_well_until_an_hour_is_over() -> None:
    world = world_with(5, 10)
    world.settle()
    for step in range(10):
        world.source_acls.bindings |= granted(2, since=50 + 2 * step)
        world.run_pass(after=REST)
        world.run_pass(after=REST)
    assert len(world.target_acls.bindings) <= 10
    world.source_acls.bindings -= granted(12, since=58)
    world.run_pass(after=HOUR)
    world.run_pass(after=REST)
    assert len(world.target_acls.bindings) > 10


def test_restarted_job_counts_what_was_created_before_until_an_hour_is_over() -> None:
    world = world_with(5, 10)
    began = world.clock.now
    world.now = lambda: NOON + timedelta(seconds=world.clock.now - began)
    put_topic(world.source, "large", 8)
    world.settle()
    for step in range(10):
        world.restart()
        world.source_acls.bindings |= granted(2, since=50 + 2 * step)
        put_topic(world.source, f"y{step}")
        world.run_pass(after=REST)
        report = world.run_pass(after=REST)
    assert len(world.target_acls.bindings) <= 10
    assert sum(world.target.list_topics()[name] for name in world.target.list_topics() if name.startswith("a.")) <= 10
    assert report.trouble.held.keys() == {Kind.ACL, Kind.TOPIC}
    world.source_acls.bindings -= granted(12, since=58)
    world.restart()
    world.run_pass(after=HOUR)
    world.run_pass(after=REST)
    assert len(world.target_acls.bindings) > 10


def test_person_who_forces_it_lifts_the_limit() -> None:
    world = world_with(100, 10)
    world.reconcile.apply(world.reconcile.compare(everything=True, force=True))
    assert len(world.target_acls.bindings) == 100


def test_topics_count_as_their_partitions_also_where_they_grow() -> None:
    world = World(flow_settings(limits=Limits(max_create=10)))
    put_topic(world.source, "small", 2)
    world.settle()
    put_topic(world.source, "large", 100)
    world.source.create_partitions({"small": 50})
    report = world.run_pass(after=REST)
    assert "lockstep.limits.max.create=10" in report.trouble.held[Kind.TOPIC]
    assert world.target.topics["a.small"].partitions == 2
    assert "a.large" not in world.target.topics
