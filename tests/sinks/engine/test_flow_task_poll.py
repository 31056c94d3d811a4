"""A look that is asked for from another thread reaches the next pass, and says when that was done."""

from __future__ import annotations

import threading
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.local.waiting import wait_for
from sinks.engine.flow_task import FlowTask
from sinks.engine.metrics import Metrics
from sinks.engine.reconcile import Report
from sinks.faults import (
    WrongCluster,
)
from streaming.errors import LockstepError
from tests.sinks.builders import (
    World,
    overrides_of,
    put_topic,
)
from tests.sinks.scripted_pass import ScriptedPass


def test_look_reaches_the_next_pass_once(task: FlowTask, passes: ScriptedPass) -> None:
    assert not task.request_pass(["x"], 0)
    task.request_pass(["y"], 0)
    task.step(None)
    task.step(None)
    assert passes.asked == [({"x", "y"}, False), (set(), False)]


def test_look_at_nothing_in_particular_is_a_look_at_everything(task: FlowTask, passes: ScriptedPass) -> None:
    task.request_pass([], 0)
    task.step(None)
    task.step(None)
    assert passes.asked == [(set(), True), (set(), False)]


def test_look_does_not_wait_for_the_time_of_the_next_try(task: FlowTask, passes: ScriptedPass) -> None:
    passes.error = WrongCluster("other")
    task.step(None)
    task.request_pass(["x"], 0)
    task.step(None)
    assert passes.asked == [(set(), False), ({"x"}, False)]


@pytest.mark.parametrize("error", [None, WrongCluster("other")])
def test_look_returns_when_a_pass_was_done_and_whether_it_went_well(
    task: FlowTask, passes: ScriptedPass, error: LockstepError | None
) -> None:
    passes.error = error
    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(task.request_pass, ["x"], 30.0)
        wait_for(lambda: task.mailbox.has_request(), 30.0, "the request for a look")
        task.step(None)
        assert looking.result(timeout=30) is (error is None)


def test_pass_under_way_when_a_look_is_asked_for_does_not_count(task: FlowTask, passes: ScriptedPass) -> None:
    asked, go_on = threading.Event(), threading.Event()
    whole = passes.run_pass

    def slow(requested: Collection[str] = (), everything: bool = False) -> Report:
        asked.set()
        assert go_on.wait(30), "the pass was not let go on within 30 s"
        return whole(requested, everything)

    passes.run_pass = slow  # type: ignore[method-assign]
    with ThreadPoolExecutor(2) as pool:
        stepping = pool.submit(task.step, None)
        assert asked.wait(30), "no pass began within 30 s"
        looking = pool.submit(task.request_pass, ["x"], 30.0)
        wait_for(lambda: task.mailbox.has_request(), 30.0, "the request for a look")
        go_on.set()
        stepping.result(timeout=30)
        assert not looking.done()
        task.step(None)
        assert looking.result(timeout=30)
    assert passes.asked == [(set(), False), ({"x"}, False)]


def test_look_gives_up_after_its_time(task: FlowTask) -> None:
    assert not task.request_pass(["x"], 0.01)


def test_pass_over_real_clusters_brings_the_change_that_was_asked_for() -> None:
    world = World()
    put_topic(world.source, "x", retention_ms="1")
    put_topic(world.target, "a.x", retention_ms="1")
    task = FlowTask(world.reconcile, Metrics("0"))
    task.step(None)
    world.target.topics["a.x"].overrides["retention.ms"] = "666"
    task.request_pass(["x"], 0)
    task.step(None)
    assert overrides_of(world.target, "a.x") == {"retention.ms": "1"}
