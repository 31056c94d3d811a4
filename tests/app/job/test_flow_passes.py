"""Passes of several flows: each at its reasons, and one that is held up does not hold up the others."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import cast

import pytest

from app.job.flow_passes import FlowPasses, Work
from app.local.waiting import wait_for
from sinks.background import begun
from sinks.engine.flow_task import FlowTask
from sinks.engine.metrics import Metrics
from sinks.engine.pass_schedule import Reason
from streaming.flow import Flow
from streaming.hints import Hints
from tests.sinks.scripted_pass import ScriptedPass

AB, CB = Flow("a", "b"), Flow("c", "b")
NEVER = float("inf")
WITHIN = 60.0


@dataclass
class ScriptedFlow:
    """A flow whose pass can be held up, or raise; `due`: what it says when the next one is wanted."""

    flow: Flow
    go: threading.Event = field(default_factory=threading.Event)
    error: Exception | None = None
    due: float = NEVER
    wants_stream: bool = False
    passes: int = 0
    everything: bool = False
    reconcile: ScriptedPass = field(default_factory=ScriptedPass)

    def step(self, _: object, *, everything: bool) -> None:
        self.passes += 1
        self.everything = everything
        assert self.go.wait(WITHIN)
        if self.error is not None:
            raise self.error

    def due_at(self) -> float:
        return self.due


def flows(*scripted: ScriptedFlow, held_up: bool = False) -> FlowPasses:
    passes = FlowPasses(Metrics("test"), shortest=0.0)
    for one in scripted:
        if not held_up:
            one.go.set()
        passes.take_on(cast(FlowTask, one))
    return passes


@contextmanager
def serving(passes: FlowPasses, *, in_batch: bool = True) -> Iterator[threading.Thread]:
    """A thread that serves for longer than a test takes; afterwards all is stopped."""
    thread = threading.Thread(target=lambda: passes.serve(60.0, in_batch=in_batch))
    thread.start()
    try:
        yield thread
    finally:
        passes.stop()
        thread.join(WITHIN)
        passes.close()
        assert not thread.is_alive()


def has(count: int, one: ScriptedFlow) -> Callable[[], bool]:
    return lambda: one.passes == count


def test_the_first_pass_of_each_flow_needs_no_reason() -> None:
    one, other = ScriptedFlow(AB), ScriptedFlow(CB)
    with serving(flows(one, other)):
        wait_for(lambda: (one.passes, other.passes) == (1, 1), WITHIN, "a pass of each")


def test_a_reason_gives_a_pass_to_its_flow_and_to_no_other() -> None:
    heard, unheard = ScriptedFlow(AB), ScriptedFlow(CB)
    passes = flows(heard, unheard)
    with serving(passes):
        wait_for(lambda: (heard.passes, unheard.passes) == (1, 1), WITHIN, "the first passes")
        passes.give(AB, Reason.SIGNAL)
        wait_for(has(2, heard), WITHIN, "the pass of the signal")
    assert unheard.passes == 1


def test_a_flow_that_is_held_up_does_not_hold_up_another_and_answers_what_came_meanwhile_once() -> None:
    silent, sound = ScriptedFlow(AB), ScriptedFlow(CB)
    passes = flows(silent, sound, held_up=True)
    sound.go.set()
    with serving(passes):
        for count in (1, 2, 3):
            wait_for(has(count, sound), WITHIN, "a pass of the sound flow")
            for flow in (AB, CB):
                passes.give(flow, Reason.SIGNAL)
        assert silent.passes == 1
        silent.go.set()
        wait_for(has(2, silent), WITHIN, "the pass that was waited for")


def test_a_pass_that_is_due_needs_no_other_reason() -> None:
    one = ScriptedFlow(AB, due=0.0)
    with serving(flows(one)):
        wait_for(lambda: one.passes >= 2, WITHIN, "the pass that was due")


def test_what_no_flow_expects_stops_neither_the_other_flows_nor_the_query(caplog: pytest.LogCaptureFixture) -> None:
    broken, sound = ScriptedFlow(AB, error=ZeroDivisionError("a bug")), ScriptedFlow(CB)
    passes = flows(broken, sound)
    with serving(passes):
        for count in (1, 2):
            wait_for(lambda: (broken.passes, sound.passes) == (count, count), WITHIN, "passes")  # noqa: B023  # at once
            passes.give(AB, Reason.SIGNAL)
            passes.give(CB, Reason.SIGNAL)
    assert "ZeroDivisionError" in caplog.text


def test_a_batch_is_a_reason_for_every_flow() -> None:
    one, other = ScriptedFlow(AB), ScriptedFlow(CB)
    passes = flows(one, other)
    with serving(passes):
        wait_for(lambda: (one.passes, other.passes) == (1, 1), WITHIN, "the first passes")
        passes.take_in(Hints())
        wait_for(lambda: (one.passes, other.passes) == (2, 2), WITHIN, "the passes of the batch")


def test_a_batch_ends_when_it_is_let_go_and_whoever_serves_without_one_goes_on() -> None:
    passes = flows(ScriptedFlow(AB))
    with serving(passes) as batch, serving(passes, in_batch=False) as fallback:
        passes.hold(False)
        batch.join(WITHIN)
        assert not batch.is_alive()
        assert fallback.is_alive()


def test_who_serves_hears_at_once_that_the_time_is_shorter() -> None:
    passes, shortened = flows(ScriptedFlow(AB)), threading.Event()
    server = begun(lambda: passes.serve(3600.0, in_batch=True, is_over=shortened.is_set), "serve")
    shortened.set()
    passes.wake()
    server.result(WITHIN)


def test_while_a_batch_reads_passes_begin_as_at_any_other_time() -> None:
    one = ScriptedFlow(AB)
    passes = flows(one)
    with passes.serving():
        wait_for(has(1, one), WITHIN, "the first pass")
        passes.give(AB, Reason.SIGNAL)
        wait_for(has(2, one), WITHIN, "the pass of the signal")
    passes.give(AB, Reason.SIGNAL)
    passes.close()
    assert one.passes == 2


def test_a_batch_ends_when_the_stream_has_what_a_flow_waits_for() -> None:
    one = ScriptedFlow(AB)
    passes = flows(one)
    with serving(passes) as batch:
        wait_for(has(1, one), WITHIN, "the first pass")
        one.wants_stream = True
        passes.give(AB, Reason.POLL)
        batch.join(WITHIN)
        assert not batch.is_alive()


def test_what_is_due_begins_in_a_batch_that_may_not_stay() -> None:
    one = ScriptedFlow(AB)
    passes = flows(one)
    passes.hold(False)
    passes.serve(60.0, in_batch=True)
    wait_for(has(1, one), WITHIN, "the pass")
    passes.close()


def test_everything_is_compared_by_every_flow_before_it_returns() -> None:
    scripted = [ScriptedFlow(Flow(source, "z")) for source in "abc"]
    passes = flows(*scripted)
    passes.compare_everything()
    assert [(one.passes, one.everything) for one in scripted] == [(1, True)] * 3
    passes.close()


def test_work_says_how_many_passes_ran_and_why_since_it_was_last_asked_for() -> None:
    passes = flows(ScriptedFlow(AB))
    passes.compare_everything()
    work = passes.worked()
    assert (work.passes, dict(work.reasons)) == (1, {Reason.POLL: 1})
    assert str(passes.worked()) == "0 passes (no reason), 0.00 s of work"
    passes.close()


def test_work_of_two_stretches_is_that_of_both() -> None:
    one = Work(Counter({Reason.SIGNAL: 2}), 2, 1.5)
    assert one + Work(Counter({Reason.SIGNAL: 1}), 1, 0.25) == Work(Counter({Reason.SIGNAL: 3}), 3, 1.75)
