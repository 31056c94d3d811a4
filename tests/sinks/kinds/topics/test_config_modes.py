"""`use.incremental.alter.configs` in a pass (KIP-894): what a flow and its plan say of the mode."""

from __future__ import annotations

from sinks.engine.flow_task import FlowTask
from sinks.engine.metrics import Metrics
from sinks.engine.report import Report
from sinks.engine.status import FlowState
from sinks.flow_settings import Incremental
from sinks.model.changes import Kind
from tests.memory.memory_acls import MemoryAcls
from tests.memory.memory_cluster import MemoryCluster
from tests.sinks.builders import World, flow_settings, overrides_of, put_topic, set_config
from tests.sinks.kinds.acls.acl_builders import acl

OLD_API = "topic configs are written with the deprecated AlterConfigs, which replaces all configs of a topic"


def world(mode: Incremental, *, incremental: bool = False) -> World:
    """A target without IncrementalAlterConfigs, and a topic that has another retention there."""
    built = World(
        flow_settings(incremental=mode),
        target=MemoryCluster("b", "id-of-b", incremental=incremental),
        source_acls=MemoryAcls("a", {acl("ALLOW READ User:al TOPIC orders")}),
    )
    put_topic(built.source, "orders", retention_ms="5")
    put_topic(built.target, "a.orders", retention_ms="1")
    return built


def notes_of_mode(report: Report) -> list[str]:
    return [note for note in report.plan.notes if "AlterConfigs" in note]


def test_required_ends_in_error_with_its_reason_and_stays_so_and_other_kinds_are_written() -> None:
    built = world(Incremental.REQUIRED)
    task = FlowTask(built.reconcile, Metrics("test"), built.clock)
    for _ in range(3):
        status = task.step(None)
        assert status.state is FlowState.ERROR
        assert "use.incremental.alter.configs=required" in (status.reason or "")
        built.clock.now += 20
    assert overrides_of(built.target, "a.orders") == {"retention.ms": "1"}
    assert built.target_acls.bindings == {acl("ALLOW READ User:al TOPIC a.orders")}
    failed = [event for event in built.events() if event.kind == Kind.TOPIC_CONFIG]
    assert failed
    assert {event.result for event in failed} == {"failed"}


def test_required_works_again_once_the_brokers_have_the_api() -> None:
    built = world(Incremental.REQUIRED)
    task = FlowTask(built.reconcile, Metrics("test"), built.clock)
    task.step(None)
    built.target.incremental = True
    built.clock.now += 120
    assert task.step(None).state is not FlowState.ERROR
    assert overrides_of(built.target, "a.orders") == {"retention.ms": "5"}


def test_plan_says_that_never_writes_with_the_deprecated_api() -> None:
    (note,) = notes_of_mode(world(Incremental.NEVER).run_pass())
    assert note.startswith(OLD_API)
    assert "use.incremental.alter.configs=never" in note


def test_plan_says_so_from_the_fallback_on() -> None:
    built = world(Incremental.REQUESTED)
    assert not notes_of_mode(built.run_pass())
    set_config(built.source, "orders", "retention.ms", "6")
    (note,) = notes_of_mode(built.run_pass(everything=True))
    assert note.startswith(OLD_API)
    assert "b has no IncrementalAlterConfigs" in note


def test_nothing_is_said_of_the_mode_where_no_config_is_written_or_the_new_api_is() -> None:
    built = world(Incremental.NEVER)
    built.settle()
    assert not notes_of_mode(built.run_pass(everything=True))
    assert not notes_of_mode(world(Incremental.REQUESTED, incremental=True).run_pass())
