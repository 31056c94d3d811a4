"""Records are looked for beside the passes, and what was found is what they get the next time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

import pytest

from sinks.faults import ClusterUnreachable
from sinks.kafka.ports.groups import GroupPartition
from sinks.kinds.offsets import record_finder
from sinks.kinds.offsets.record_finder import MatchCache
from sinks.kinds.offsets.record_search import Question
from streaming.mm2.records import TopicPartition
from tests.memory.memory_records import MemoryLog, MemoryRecords

A = TypeVar("A")
HERE, THERE = TopicPartition("t", 0), TopicPartition("a.t", 0)
WANTED: dict[GroupPartition, Question] = {("g", HERE): Question(HERE, 3, THERE, 0, None)}
OTHERS: dict[GroupPartition, Question] = {("h", HERE): Question(HERE, 4, THERE, 0, None)}


class Later:
    """A `Beside` whose calls are made when a test says so."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def __call__(self, call: Callable[[], A], name: str) -> Future[A]:
        answer: Future[A] = Future()

        def run() -> None:
            try:
                answer.set_result(call())
            except ClusterUnreachable as error:
                answer.set_exception(error)

        self.waiting.append(run)
        return answer

    def run(self) -> None:
        """Makes all that wait."""
        while self.waiting:
            self.waiting.pop(0)()


class Closing(MemoryRecords):
    """Says whether it was closed."""

    closed = False

    def close(self) -> None:
        self.closed = True


def numbered() -> MemoryLog:
    log = MemoryLog()
    for number in range(9):
        log.append(b"k", b"%d" % number, 1000 + number)
    return log


@pytest.fixture
def source() -> Closing:
    return Closing("a", {HERE: numbered()})


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Later:
    monkeypatch.setattr(record_finder, "WAITED_FOR", 0.0)
    return Later()


@pytest.fixture
def cache(source: Closing, later: Later) -> MatchCache:
    return MatchCache(source, MemoryRecords("b", {THERE: numbered()}), beside=later)


def test_pass_goes_on_without_what_is_being_looked_for_and_the_next_one_has_it(cache: MatchCache, later: Later) -> None:
    assert cache(WANTED) == {}
    later.run()
    assert cache(WANTED)["g", HERE].offset == 3


def test_what_is_asked_while_a_search_is_under_way_is_looked_for_after_it(cache: MatchCache, later: Later) -> None:
    cache(WANTED)
    assert cache(WANTED | OTHERS) == {}
    assert len(later.waiting) == 1
    later.run()
    assert cache(WANTED | OTHERS).keys() == WANTED.keys()
    later.run()
    assert cache(WANTED | OTHERS).keys() == {*WANTED, *OTHERS}


def test_search_that_is_done_at_once_answers_in_the_same_pass(source: Closing) -> None:
    assert MatchCache(source, MemoryRecords("b", {THERE: numbered()}))(WANTED)["g", HERE].offset == 3


@pytest.mark.parametrize("gone", [({"g"}, ()), ((), {"t"}), ((), {"a.t"})])
def test_what_was_forgotten_while_it_was_looked_for_is_looked_for_again(
    cache: MatchCache, later: Later, gone: tuple[set[str], set[str]]
) -> None:
    cache(WANTED)
    cache.forget(*gone)
    later.run()
    assert cache(WANTED) == {}


def test_what_a_search_raised_is_raised_until_another_has_come_to_its_end(
    cache: MatchCache, source: Closing, later: Later, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache(WANTED)
    with monkeypatch.context() as silent:
        silent.setattr(source, "scan", _unreachable)
        later.run()
    for _ in range(3):
        with pytest.raises(ClusterUnreachable):
            cache(WANTED)
    later.run()
    assert cache(WANTED).keys() == WANTED.keys()


def _unreachable(*_: object) -> None:
    raise ClusterUnreachable("silent for a moment")


def test_readers_are_closed_once_no_search_has_them(cache: MatchCache, source: Closing, later: Later) -> None:
    cache(WANTED)
    cache.close()
    assert not source.closed
    later.run()
    assert source.closed
