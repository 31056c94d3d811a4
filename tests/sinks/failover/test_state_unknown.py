"""How far a failover is comes from the ledger: where that cannot be read, it is unknown."""

from __future__ import annotations

import math
from typing import Any

import pytest

from app.cli.status_text import print_status
from sinks.engine.flow_task import FlowTask
from sinks.engine.metrics import Metrics
from sinks.failover.preflight import NOT_READ
from sinks.ledger.failover_record import FailoverRecord, State
from sinks.ledger.ledger_entries import Entry
from tests.sinks.builders import World, world_in_step


def failover_of(task: FlowTask) -> dict[str, Any]:
    """`failover` of `status`, after one more pass."""
    found: dict[str, Any] = task.step(None, everything=True).as_json()["failover"]
    return found


@pytest.fixture
def world() -> World:
    return world_in_step()


@pytest.fixture
def task(world: World) -> FlowTask:
    return FlowTask(world.reconcile, Metrics("0"), world.clock)


def test_before_the_first_pass_it_is_not_known(world: World) -> None:
    found = FlowTask(World().reconcile, Metrics("0")).status().as_json()["failover"]
    assert (found["state"], found["reason"]) == (None, NOT_READ)


def test_a_ledger_that_cannot_be_read_any_more_says_nothing_of_a_failover(world: World, task: FlowTask) -> None:
    assert failover_of(task) == failover_of(task) | {"state": "MIRRORING", "reason": None}
    world.target.reachable = False
    world.clock.now += 60
    found = failover_of(task)
    assert found == found | {"state": None, "doing": None, "who": None, "at": None}
    assert "no answer" in found["reason"]
    world.target.reachable = True
    world.clock.now += 600
    assert failover_of(task)["state"] == "MIRRORING"


def test_a_failover_that_began_meanwhile_is_known_though_the_source_is_gone(world: World, task: FlowTask) -> None:
    world.ledger().put({(Entry.FAILOVER, ("state",)): FailoverRecord(State.FENCED).to_text()})
    world.source.reachable = False
    world.clock.now += 60
    assert (failover_of(task)["state"], task.status().state) == ("FENCED", "ERROR")


def test_people_read_that_it_is_not_known_and_the_reason_once(
    world: World, task: FlowTask, capsys: pytest.CaptureFixture[str]
) -> None:
    world.target.reachable = False
    status = task.step(None, everything=True)
    print_status(status.as_json())
    lines = capsys.readouterr().out.splitlines()
    assert "  failover: not known" in lines
    assert status.reason is not None and sum(status.reason in line for line in lines) == 1
    said = next(one for one in status.readiness().as_json()["findings"] if one["about"] == "failover")
    assert (said["reason"], said["blocks"]) == ("it is not known whether a failover is under way", False)


def test_its_metric_is_no_number_while_it_is_not_known(world: World) -> None:
    metrics = Metrics("0")
    world.target.reachable = False
    FlowTask(world.reconcile, metrics).step(None, everything=True)
    labels = {"source": "a", "target": "b", "state": "MIRRORING"}
    found = metrics.registry.get_sample_value("lockstep_failover_state", labels)
    assert found is not None and math.isnan(found)
