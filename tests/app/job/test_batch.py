"""A batch of several flows: one that is held up does not hold up the others."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import cast

import pytest

from app.job.batch import Batch, News
from sinks.engine.flow_task import FlowTask
from sinks.engine.metrics import Metrics
from streaming.flow import Flow


@dataclass
class Walker:
    """A flow whose walk can be held up, or raise."""

    flow: Flow
    go: threading.Event = field(default_factory=threading.Event)
    error: Exception | None = None
    walks: int = 0

    def step(self, _: object, *, everything: bool) -> None:
        self.walks += 1
        assert self.go.wait(10)
        if self.error is not None:
            raise self.error


def batch(*walkers: Walker) -> Batch:
    return Batch([cast(FlowTask, walker) for walker in walkers], Metrics("test"))


def test_a_flow_that_is_held_up_is_left_out_until_its_walk_is_done() -> None:
    silent, sound = Walker(Flow("a", "b")), Walker(Flow("c", "b"))
    sound.go.set()
    flows = batch(silent, sound)
    for _ in range(3):
        flows.step(0.2)
    assert (silent.walks, sound.walks) == (1, 3)
    silent.go.set()
    flows.step()
    flows.step()
    assert silent.walks in (2, 3)
    flows.close()


def test_without_a_limit_every_flow_has_walked() -> None:
    walkers = [Walker(Flow(source, "z")) for source in "abc"]
    for walker in walkers:
        walker.go.set()
    flows = batch(*walkers)
    flows.step(everything=True)
    assert [walker.walks for walker in walkers] == [1, 1, 1]
    flows.close()


def test_what_no_flow_expects_ends_the_query_with_its_reason() -> None:
    broken = Walker(Flow("a", "b"), error=ZeroDivisionError("a bug"))
    broken.go.set()
    flows = batch(broken)
    with pytest.raises(ZeroDivisionError):
        flows.step()
    flows.close()


def test_news_lets_the_flows_walk_that_it_is_about_and_no_others() -> None:
    heard, unheard = Walker(Flow("a", "b")), Walker(Flow("c", "b"))
    for walker in (heard, unheard):
        walker.go.set()
    news = News()
    flows = Batch([cast(FlowTask, walker) for walker in (heard, unheard)], Metrics("test"), news=news)
    news.hear(Flow("a", "b"))
    flows.listen(10.0)
    assert (heard.walks, unheard.walks) == (1, 0)
    flows.close()


def test_without_news_a_batch_ends_when_its_time_is_over() -> None:
    walker = Walker(Flow("a", "b"))
    flows = batch(walker)
    flows.listen(0.05)
    flows.listen(-1.0)
    assert walker.walks == 0
    flows.close()


def test_stopping_ends_the_wait_for_news() -> None:
    walker = Walker(Flow("a", "b"))
    flows = batch(walker)
    listening = threading.Thread(target=flows.listen, args=(60.0,))
    listening.start()
    flows.stop()
    listening.join(10.0)
    assert not listening.is_alive()
    flows.close()


def test_news_is_told_once() -> None:
    news = News()
    news.hear(Flow("a", "b"))
    news.hear(Flow("a", "b"))
    assert news.wait(0) == {Flow("a", "b")}
    assert news.wait(0) == frozenset()
