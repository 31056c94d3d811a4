"""A flow that a failover ended: the job writes nothing for it, and says so."""

from __future__ import annotations

import pytest

from sinks.engine.flow_status import first_status, kind_status
from sinks.engine.status import Task
from sinks.faults import ClusterUnreachable
from sinks.ledger.failover_record import ENDED, Command, FailoverRecord, State
from sinks.ledger.ledger_entries import Entry
from sinks.model.changes import Kind
from tests.sinks.builders import NOON, World, overrides_of, put_topic, set_config, world_in_step

INTERVAL = 60.0


def put_state(world: World, record: FailoverRecord) -> None:
    """By a command, beside the running job."""
    world.ledger().put({(Entry.FAILOVER, ("state",)): record.to_text()})


@pytest.mark.parametrize("state", sorted(ENDED))
def test_nothing_is_written_for_a_flow_that_has_ended(state: State) -> None:
    world = world_in_step()
    put_state(world, FailoverRecord(state))
    set_config(world.source, "x", "retention.ms", "2")
    put_topic(world.source, "new")
    for after in (1.0, INTERVAL, 1.0):
        world.run_pass(after=after)
    assert (world.target.writes, overrides_of(world.target, "a.x")) == (0, {"retention.ms": "1"})
    assert "a.new" not in world.target.topics


def test_a_comparison_of_a_flow_that_has_ended_says_why_it_plans_nothing() -> None:
    world = world_in_step()
    put_state(world, FailoverRecord(State.PROMOTED))
    put_topic(world.source, "new")
    world.clock.now += INTERVAL
    assert not world.reconcile.compare(everything=True).plan.changes
    (why,) = world.reconcile.warnings
    assert why.startswith("the flow is PROMOTED, so Lockstep writes nothing for it any more")


def test_a_flow_that_ends_between_comparison_and_write_is_not_written() -> None:
    world = world_in_step()
    set_config(world.source, "x", "retention.ms", "2")
    world.clock.now += 1
    compared = world.reconcile.compare()
    assert compared.plan.changes
    put_state(world, FailoverRecord(State.DRAINED, Command.PROMOTE))
    report = world.reconcile.apply(compared)
    assert (report.outcomes, world.target.writes) == ((), 0)
    assert report.ended is not None


def test_a_flow_that_ends_between_two_requests_of_a_pass_gets_no_second_one() -> None:
    world = world_in_step()
    set_config(world.source, "x", "retention.ms", "2")
    put_topic(world.source, "new")
    world.clock.now += 1
    compared = world.reconcile.compare()
    assert {change.kind for change in compared.plan.changes} == {Kind.TOPIC, Kind.TOPIC_CONFIG}

    def promote(done: int, total: int) -> None:
        put_state(world, FailoverRecord(State.DRAINED, Command.PROMOTE))

    report = world.reconcile.apply(compared, promote)
    assert [outcome.change.kind for outcome in report.outcomes] == [Kind.TOPIC]
    assert (overrides_of(world.target, "a.x"), report.ended is None) == ({"retention.ms": "1"}, False)
    assert world.ledger().owned(Kind.TOPIC) >= {("a.new",)}


def test_every_kind_says_why_nothing_is_written() -> None:
    world = world_in_step()
    put_state(world, FailoverRecord(State.PROMOTED))
    report = world.run_pass(after=INTERVAL)
    status = kind_status(Kind.TOPIC, first_status(Kind.TOPIC, world.settings), report, NOON)
    assert status.task is Task.PAUSED
    assert "the flow is PROMOTED" in (status.reason or "")


def test_a_pass_reports_how_far_a_failover_is() -> None:
    world = world_in_step()
    put_state(world, FailoverRecord(State.FENCED))
    assert world.run_pass(after=INTERVAL).failover.record.state is State.FENCED


def test_a_fenced_flow_is_kept_in_step() -> None:
    world = world_in_step()
    put_state(world, FailoverRecord(State.FENCED))
    set_config(world.source, "x", "retention.ms", "2")
    world.run_pass(after=INTERVAL)
    assert overrides_of(world.target, "a.x") == {"retention.ms": "2"}


def test_a_flow_that_mirrors_again_is_kept_in_step_again() -> None:
    world = world_in_step()
    put_state(world, FailoverRecord(State.FAILED_OVER))
    world.run_pass(after=INTERVAL)
    set_config(world.source, "x", "retention.ms", "2")
    put_state(world, FailoverRecord())
    world.run_pass(after=INTERVAL)
    world.run_pass(after=INTERVAL)
    assert overrides_of(world.target, "a.x") == {"retention.ms": "2"}


@pytest.mark.parametrize("restarted", [False, True])
def test_the_source_of_a_flow_that_failed_over_may_be_gone(restarted: bool) -> None:
    world = world_in_step()
    put_state(world, FailoverRecord(State.FAILED_OVER))
    world.source.reachable = False
    if restarted:
        world.restart()
    assert world.run_pass(after=INTERVAL).ended is not None


def test_source_is_not_asked_once_the_ledger_says_that_the_target_has_taken_over() -> None:
    """A source that is gone answers after its time limit alone, and `status` would say ERROR until then."""
    world = world_in_step()
    put_state(world, FailoverRecord(State.FAILED_OVER))
    asked: list[str] = []
    world.source.cluster_id = lambda: asked.append("id") or "id-of-a"  # type: ignore[method-assign, func-returns-value]
    assert world.run_pass(after=INTERVAL).ended is not None
    assert asked == []


def test_the_source_of_a_flow_that_goes_on_may_not_be_gone() -> None:
    world = world_in_step()
    world.source.reachable = False
    for _ in range(2):
        with pytest.raises(ClusterUnreachable):
            world.run_pass(after=INTERVAL)
        world.restart()
