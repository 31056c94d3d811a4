"""A metadata-change signal comes once: a pass that fails in between does not lose it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from sinks.engine.flow_task import FlowTask
from sinks.engine.metrics import Metrics
from sinks.engine.report import Report
from sinks.faults import ClusterUnreachable
from sinks.kinds.controller import PassContext
from tests.sinks.builders import overrides_of, put_topic, set_config, world_in_step
from tests.sinks.scripted_pass import ScriptedPass


class OneSignal:
    """Works, and tells what is put into it once."""

    works = True

    def __init__(self) -> None:
        self.records = 0

    def signalled(self) -> int:
        records, self.records = self.records, 0
        return records

    def close(self) -> None:
        """Nothing to close."""


def test_signal_of_a_pass_that_breaks_off_reaches_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    world, signal = world_in_step(), OneSignal()
    put_topic(world.source, "x", 1, retention_ms="1")
    world.reconcile._components = replace(world.reconcile._components, signal=signal)
    for _ in range(4):
        world.run_pass()
    set_config(world.source, "x", "retention.ms", "2")
    signal.records = 1

    def silent(context: PassContext) -> Sequence[str]:
        raise ClusterUnreachable("silent for a moment")

    with monkeypatch.context() as broken:
        broken.setattr(world.controllers[0], "poll", silent)
        with pytest.raises(ClusterUnreachable):
            world.run_pass(after=1.0)
    world.run_pass(after=1.0)
    assert overrides_of(world.target, "a.x")["retention.ms"] == "2"


def test_pass_that_failed_is_tried_again_when_its_retry_is_due_however_far_the_next_poll_is() -> None:
    passes = ScriptedPass()
    task = FlowTask(passes, Metrics("1"), clock=lambda: 100.0)
    task._report = Report(task._report.plan, due=700.0)
    assert task.due_at() == 700.0
    passes.error = ClusterUnreachable("silent for a moment")
    task.step(None)
    assert task.due_at() == 101.0
