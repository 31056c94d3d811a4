"""The source's ends, kept in the ledger beside the passes of a job."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from typing import Any

from sinks.engine.ledger_entries import Entry
from sinks.failover.source_end_offsets import SourceEndOffsetStore, known_end_offsets
from tests.inline_executor import InlineExecutor
from tests.sinks.failover.scenes import look, stage


def test_ends_are_looked_at_in_their_interval_and_written_where_they_moved() -> None:
    built = stage()
    reads, times = list[float](), iter([1.0, 2.0, 3.0, 4.0])
    keeper = SourceEndOffsetStore(built.here, 5.0, lambda: next(times), InlineExecutor())

    def at(now: float) -> int:
        look(built, now, keeper)
        seen = known_end_offsets(built.ledger())
        assert seen is not None
        reads.append(seen.at_ms)
        return sum(map(sum, seen.ends.values()))

    assert at(1000.0) == 30
    built.write("y")
    assert at(1004.0) == 30
    assert at(1005.0) == 31
    assert at(1015.0) == 31
    assert at(1066.0) == 31
    assert reads == [1, 1, 2, 2, 4]


def test_topics_that_are_gone_leave_the_kept_ends() -> None:
    built = stage()
    keeper = SourceEndOffsetStore(built.here, 5.0, executor=InlineExecutor())
    look(built, 1000.0, keeper)
    for topic in ("x", "y"):
        del built.world.source.topics[topic]
    look(built, 1010.0, keeper)
    assert built.ledger().values(Entry.SOURCE_ENDS) == {}


def test_a_source_that_takes_its_time_holds_up_no_pass_and_its_ends_are_written_after_a_later_one() -> None:
    built, go_on, started = stage(), Event(), list[Future[Any]]()

    class Slow(InlineExecutor):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            started.append(thread.submit(lambda: (go_on.wait(30), fn(*args, **kwargs))[1]))
            return started[-1]

    with ThreadPoolExecutor(1) as thread:
        keeper = SourceEndOffsetStore(built.here, 5.0, executor=Slow())
        look(built, 1000.0, keeper)
        look(built, 1010.0, keeper)
        assert known_end_offsets(built.ledger()) is None
        go_on.set()
        started[0].result(30)
        look(built, 1011.0, keeper)
    assert known_end_offsets(built.ledger()) is not None
    assert len(started) == 2
