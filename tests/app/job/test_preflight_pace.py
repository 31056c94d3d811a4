"""How far apart the job's preflights are, and that a defect ends none but the one."""

from __future__ import annotations

from app.http.page_history import FlowHistory
from app.job.preflight_watch import PreflightWatch, next_preflight
from app.settings import Settings
from sinks.engine.flow_task import FlowTask
from sinks.engine.metrics import Metrics
from tests.sinks.builders import World


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
        assert made.ready is None
