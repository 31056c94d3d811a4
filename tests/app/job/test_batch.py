"""A batch of several flows: one that is held up does not hold up the others."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import cast

import pytest

from app.job.batch import Batch, ChangedFlows
from sinks.engine.flow_task import FlowTask
from sinks.engine.metrics import Metrics
from streaming.flow import Flow


@dataclass
class ScriptedFlow:
    """A flow whose pass can be held up, or raise."""

    flow: Flow
    go: threading.Event = field(default_factory=threading.Event)
    error: Exception | None = None
    passes: int = 0

    def step(self, _: object, *, everything: bool) -> None:
        self.passes += 1
        assert self.go.wait(10)
        if self.error is not None:
            raise self.error


def batch(*scripted: ScriptedFlow) -> Batch:
    return Batch([cast(FlowTask, scripted_flow) for scripted_flow in scripted], Metrics("test"))


def test_a_flow_that_is_held_up_is_left_out_until_its_pass_is_done() -> None:
    silent, sound = ScriptedFlow(Flow("a", "b")), ScriptedFlow(Flow("c", "b"))
    sound.go.set()
    flows = batch(silent, sound)
    for _ in range(3):
        flows.step(0.2)
    assert (silent.passes, sound.passes) == (1, 3)
    silent.go.set()
    flows.step()
    flows.step()
    assert silent.passes in (2, 3)
    flows.close()


def test_without_a_limit_every_flow_had_its_pass() -> None:
    scripted = [ScriptedFlow(Flow(source, "z")) for source in "abc"]
    for scripted_flow in scripted:
        scripted_flow.go.set()
    flows = batch(*scripted)
    flows.step(everything=True)
    assert [scripted_flow.passes for scripted_flow in scripted] == [1, 1, 1]
    flows.close()


def test_what_no_flow_expects_stops_neither_the_other_flows_nor_the_query(caplog: pytest.LogCaptureFixture) -> None:
    broken, sound = ScriptedFlow(Flow("a", "b"), error=ZeroDivisionError("a bug")), ScriptedFlow(Flow("c", "b"))
    for flow in (broken, sound):
        flow.go.set()
    flows = batch(broken, sound)
    for _ in range(2):
        flows.step()
    assert (broken.passes, sound.passes) == (2, 2)
    assert "ZeroDivisionError" in caplog.text
    flows.close()


def test_signal_gives_a_pass_to_the_flows_that_it_is_about_and_no_others() -> None:
    heard, unheard = ScriptedFlow(Flow("a", "b")), ScriptedFlow(Flow("c", "b"))
    for scripted_flow in (heard, unheard):
        scripted_flow.go.set()
    changed = ChangedFlows()
    tasks = [cast(FlowTask, scripted_flow) for scripted_flow in (heard, unheard)]
    flows = Batch(tasks, Metrics("test"), changed=changed)
    changed.hear(Flow("a", "b"))
    flows.listen(10.0)
    assert (heard.passes, unheard.passes) == (1, 0)
    flows.close()


def test_without_news_a_batch_ends_when_its_time_is_over() -> None:
    scripted_flow = ScriptedFlow(Flow("a", "b"))
    flows = batch(scripted_flow)
    flows.listen(0.05)
    flows.listen(-1.0)
    assert scripted_flow.passes == 0
    flows.close()


def test_stopping_ends_the_wait_for_news() -> None:
    scripted_flow = ScriptedFlow(Flow("a", "b"))
    flows = batch(scripted_flow)
    listening = threading.Thread(target=flows.listen, args=(60.0,))
    listening.start()
    flows.stop()
    listening.join(10.0)
    assert not listening.is_alive()
    flows.close()


def test_news_is_told_once() -> None:
    changed = ChangedFlows()
    changed.hear(Flow("a", "b"))
    changed.hear(Flow("a", "b"))
    assert changed.wait(0) == {Flow("a", "b")}
    assert changed.wait(0) == frozenset()
