"""Who lets the flows have their passes: the query's batches, or, where there are none, the fallback."""

from __future__ import annotations

import threading

import pytest

from app.job.query_supervisor import QueryFallback
from streaming.query_restarts import LONGEST_GAP, serves_without_query
from tests.app.job.query_script import NO_BATCH


class World:
    """A fallback, and how often it served."""

    def __init__(self) -> None:
        self.now, self.slices = 0.0, 0
        self.error: Exception | None = None
        self.fallback = QueryFallback(self.serve, lambda: self.now)

    def serve(self, seconds: float) -> None:
        self.slices += 1
        if self.error is not None:
            raise self.error

    def after(self, seconds: float) -> bool:
        self.now += seconds
        return self.fallback.take_turn()


@pytest.mark.parametrize(
    ("idle", "running", "serves"),
    [(0.0, False, True), (LONGEST_GAP - 0.1, True, False), (LONGEST_GAP, True, True)],
)
def test_flows_are_served_without_a_query_at_once_and_beside_one_when_its_batch_is_late(
    idle: float, running: bool, serves: bool
) -> None:
    assert serves_without_query(idle, running) is serves


def test_a_batch_of_a_running_query_puts_off_the_fallback() -> None:
    world = World()
    world.fallback.running = True
    sink = world.fallback.guard(lambda batch, number: None)
    world.now = LONGEST_GAP
    sink(NO_BATCH, 0)
    assert [world.after(LONGEST_GAP - 0.5), world.after(0.5)] == [False, True]


def test_nobody_serves_while_a_batch_runs() -> None:
    world = World()
    inside, go_on = threading.Event(), threading.Event()

    def slow(batch: object, number: int) -> None:
        inside.set()
        assert go_on.wait(60.0)

    batch = threading.Thread(target=world.fallback.guard(slow), args=(NO_BATCH, 0))
    batch.start()
    assert inside.wait(60.0)
    assert not world.after(60.0)
    go_on.set()
    batch.join()
    assert world.slices == 0


def test_a_slice_that_fails_is_followed_by_the_next() -> None:
    world = World()
    world.error = RuntimeError("a bug")
    assert world.after(2.0)
    assert world.after(2.0)
    assert world.slices == 2


def test_nobody_serves_after_the_end() -> None:
    world = World()
    world.fallback.close()
    assert not world.after(60.0)
