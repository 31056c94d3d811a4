"""Who lets the flows take their steps: the query's batches, or, where there are none, the fallback."""

from __future__ import annotations

import threading

import pytest

from app.job.query_fallback import QueryFallback
from streaming.restarts import step_is_due
from tests.app.job.query_script import NO_BATCH


class World:
    """A fallback of a trigger interval of two seconds."""

    def __init__(self) -> None:
        self.now, self.steps = 0.0, 0
        self.error: Exception | None = None
        self.fallback = QueryFallback(self.step, 2.0, lambda: self.now)

    def step(self) -> None:
        self.steps += 1
        if self.error is not None:
            raise self.error

    def after(self, seconds: float) -> bool:
        self.now += seconds
        return self.fallback.look()


@pytest.mark.parametrize(
    ("idle", "running", "due"),
    [(1.9, False, False), (2.0, False, True), (9.9, True, False), (10.0, True, True)],
)
def test_a_step_is_due_at_every_trigger_and_later_where_a_query_runs_and_may_be_slow(
    idle: float, running: bool, due: bool
) -> None:
    assert step_is_due(idle, running, interval=2.0) is due


def test_a_slow_trigger_leaves_a_running_query_the_time_of_three() -> None:
    assert [step_is_due(idle, True, interval=60.0) for idle in (179.0, 180.0)] == [False, True]


def test_without_a_query_the_flows_take_a_step_at_every_trigger() -> None:
    world = World()
    assert [world.after(1.0) for _ in range(4)] == [False, True, False, True]
    assert world.steps == 2


def test_a_batch_is_a_step() -> None:
    world = World()
    sink = world.fallback.guard(lambda batch, number: None)
    world.now = 1.5
    sink(NO_BATCH, 0)
    assert [world.after(1.0) for _ in range(2)] == [False, True]


def test_no_step_is_taken_while_a_batch_runs() -> None:
    world = World()
    inside, go_on = threading.Event(), threading.Event()

    def slow(batch: object, number: int) -> None:
        inside.set()
        assert go_on.wait(10.0)

    batch = threading.Thread(target=world.fallback.guard(slow), args=(NO_BATCH, 0))
    batch.start()
    assert inside.wait(10.0)
    assert not world.after(60.0)
    go_on.set()
    batch.join()
    assert world.steps == 0


def test_a_step_that_fails_is_followed_by_the_next() -> None:
    world = World()
    world.error = RuntimeError("a bug")
    assert world.after(2.0)
    assert world.after(2.0)
    assert world.steps == 2


def test_no_step_is_taken_after_the_end() -> None:
    world = World()
    world.fallback.close()
    assert not world.after(60.0)
