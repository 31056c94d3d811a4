"""How far apart the job's preflights are, and that a defect ends none but the one."""

from __future__ import annotations

import math
import time
from pathlib import Path

import pytest

from app.http.page_history import FlowHistory
from app.job.preflight_watch import LONGEST_PREFLIGHT_S, TICK, PreflightWatch
from app.settings import Settings, load
from sinks.engine.flow_task import FlowTask
from sinks.engine.metrics import Metrics
from sinks.failover.preflight import Preflight, next_preflight
from sinks.failover.readiness_facts import FailoverLoss, ReadinessFacts
from sinks.flow_settings import FailoverRules
from streaming.hints import NewestHeartbeat
from tests.sinks.builders import NOON, World
from tests.sinks.memory_flow import Clock
from tests.sinks.scripted_pass import ScriptedPass


def test_a_quick_preflight_is_made_once_an_interval() -> None:
    assert next_preflight(began=100.0, ended=101.0, interval=60.0) == 160.0


def test_a_preflight_that_takes_long_takes_a_tenth_of_the_time_at_most() -> None:
    assert next_preflight(began=100.0, ended=140.0, interval=60.0) == 500.0


def test_a_defect_is_the_trouble_of_one_preflight_and_the_next_is_made() -> None:
    task = FlowTask(World().reconcile, Metrics("0"))

    def broken() -> Settings:
        raise KeyError("a.z-0")

    watch = PreflightWatch(task, FlowHistory(), broken, lambda: 100.0)
    for _ in range(2):
        watch.tick()
        made = task.status().failover.preflight
        assert made is not None
        assert made.trouble is not None
        assert made.trouble.startswith("KeyError: ")
        assert task.status().readiness().ready is not True


def task_at(clock: Clock) -> FlowTask:
    """Of a flow that is heard and in step."""
    world = World()
    world.clock = clock
    task = FlowTask(world.reconcile, Metrics("0"), clock=clock)
    task.step(NewestHeartbeat(round(time.time() * 1000)))
    return task


SEEN = ReadinessFacts(FailoverRules())


def test_preflight_counts_until_two_intervals_after_the_next_was_due_and_says_since_when_it_does_not() -> None:
    clock = Clock()
    task = task_at(clock)
    task.note_preflight(Preflight(NOON, 0.5, loss=FailoverLoss(0), facts=SEEN))
    interval = task.reconcile.settings.failover.preflight_interval
    clock.now += 3 * interval
    assert task.status().failover.not_checked is None
    assert task.status().as_json()["failover"]["preflight"]["ready"] is True
    clock.now += 1.0
    found = task.status().failover
    assert found.not_checked is not None
    assert found.not_checked.since == NOON
    assert "stands still" in found.not_checked.reason
    assert task.status().as_json()["failover"]["preflight"]["ready"] is None


def test_preflight_that_takes_long_counts_until_the_next_is_due_and_for_two_more_of_its_length() -> None:
    """The next of one that takes a minute is due after ten; to wait for three of these would be half an hour."""
    clock = Clock()
    task = task_at(clock)
    task.note_preflight(Preflight(NOON, 60.0))
    clock.now += 600.0 + 2 * 60.0
    assert task.status().failover.not_checked is None
    clock.now += 1.0
    assert task.status().failover.not_checked is not None


def test_metric_of_an_old_preflight_is_no_number_and_its_alert_still_sees_that_there_was_one() -> None:
    clock, metrics = Clock(), Metrics("0")
    task = FlowTask(World().reconcile, metrics, clock=clock)
    task.step(NewestHeartbeat(round(time.time() * 1000)))
    task.note_preflight(Preflight(NOON, 0.5, records=0, facts=SEEN))

    def shown(name: str) -> float | None:
        metrics.status(task.status())
        return metrics.registry.get_sample_value(f"lockstep_failover_{name}", {"source": "a", "target": "b"})

    assert (shown("ready"), shown("records_at_risk")) == (1.0, 0.0)
    clock.now += 1000.0
    for name in ("ready", "records_at_risk", "seconds_at_risk"):
        assert math.isnan(shown(name) or 0.0)
    assert shown("preflight_seconds") == 0.5


def test_before_the_first_preflight_and_where_none_is_made_the_reason_is_said() -> None:
    task = task_at(Clock())
    found = task.status().failover.not_checked
    assert found is not None
    assert found.since is not None
    assert "has made no preflight yet" in found.reason
    task.note_preflight(Preflight(NOON, 0.5, loss=FailoverLoss(0), facts=SEEN))
    task.note_preflight(None)
    assert task.status().failover.not_checked is not None


def test_preflight_whose_thread_stands_still_for_longer_than_one_may_take_hangs_until_it_turns_again() -> None:
    clock = Clock()
    watch = PreflightWatch(task_at(clock), FlowHistory(), load_nothing, clock)
    clock.now += LONGEST_PREFLIGHT_S
    assert not watch.hangs
    clock.now += 1.0
    assert watch.hangs
    watch.tick()
    assert not watch.hangs


def load_nothing() -> Settings:
    raise KeyError("a defect")


def test_a_flow_with_other_settings_is_checked_again_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, made = Clock(), list[object]()
    task, history = task_at(clock), FlowHistory()
    history.passed(ScriptedPass().report)
    file = tmp_path / "m.properties"
    file.write_text("clusters=a,b\na.bootstrap.servers=h:1\nb.bootstrap.servers=h:2\na->b.enabled=true\n")
    now = [load(file, environ={})]
    watch = PreflightWatch(task, history, lambda: now[-1], clock)

    def make(settings: Settings, flow: object) -> Preflight:
        made.append(flow)
        return Preflight(NOON, 0.5, loss=FailoverLoss(0), facts=SEEN)

    monkeypatch.setattr(watch, "_made", make)
    for _ in range(3):
        watch.tick()
        clock.now += TICK
    assert len(made) == 1
    now.append(load(file, environ={}))
    for _ in range(3):
        watch.tick()
        clock.now += TICK
    assert made == [now[0].flows[0], now[1].flows[0]]
