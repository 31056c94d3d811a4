"""The source's ends, kept in the ledger beside the passes of a job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest

from sinks.failover.source_end_offsets import SourceEndOffsetStore
from sinks.faults import ClusterUnreachable
from sinks.ledger.kept_end_offsets import KnownPosition, LatestSync, kept_end_offsets
from sinks.ledger.ledger import Ledger
from sinks.ledger.ledger_entries import Entry
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition
from tests.inline_work import inline
from tests.memory.memory_records import MemoryLog
from tests.sinks.builders import flow_settings
from tests.sinks.failover.scenes import Stage, known_end_offsets, look, stage
from tests.sinks.memory_flow import Clock


def test_ends_are_looked_at_in_their_interval_and_written_where_they_moved() -> None:
    built = stage()
    reads, times = list[float](), iter([1.0, 2.0, 3.0, 4.0])
    keeper = SourceEndOffsetStore(built.here, 5.0, lambda: next(times), inline)

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


def kept_of(built: Stage) -> dict[str, tuple[int, ...]]:
    """By topic, as the ledger has them."""
    seen = known_end_offsets(built.ledger())
    return {topic: tuple(ends) for topic, ends in seen.ends.items()} if seen else {}


def test_topic_that_is_gone_for_certain_leaves_the_kept_ends_after_a_minute() -> None:
    built = stage()
    keeper = SourceEndOffsetStore(built.here, 5.0, beside=inline)
    look(built, 1000.0, keeper)
    del built.world.source.topics["y"], built.here.logs[TopicPartition("y", 0)]
    for now in (1010.0, 1040.0):
        look(built, now, keeper)
        assert "y" in kept_of(built)
    look(built, 1071.0, keeper)
    assert kept_of(built) == {"x": (10, 10)}


def test_topics_that_a_listing_lacks_are_asked_for_all_the_same() -> None:
    built = stage()
    keeper = SourceEndOffsetStore(built.here, 5.0, beside=inline)
    look(built, 1000.0, keeper)
    built.write("y")
    built.world.source.topics.clear()
    for now in (1010.0, 1040.0, 1071.0):
        look(built, now, keeper)
    assert kept_of(built) == {"x": (10, 10), "y": (11,)}


def test_topic_that_is_replicated_no_more_leaves_the_kept_ends_at_once() -> None:
    built = stage()
    look(built, 1000.0, SourceEndOffsetStore(built.here, 5.0, beside=inline))
    built.world.settings = flow_settings({"topics": "x"})
    look(built, 1010.0, SourceEndOffsetStore(built.here, 5.0, beside=inline))
    assert kept_of(built) == {"x": (10, 10)}


def test_what_waits_in_a_log_with_gaps_is_counted_though_the_source_stands_still() -> None:
    built, where = stage(), TopicPartition("x", 0)
    log = built.here.logs[where]
    for _ in range(20):
        log.append(b"k", b"v", timestamp=1)
        log.skip()
    keeper = SourceEndOffsetStore(built.here, 5.0, beside=inline, syncs=lambda: {where: LatestSync(9, 9, gap=True)})
    for now in (1000.0, 1005.0, 1010.0):
        look(built, now, keeper)
    positions = kept_end_offsets(built.ledger())["x"].positions
    assert positions is not None
    assert positions[0] == KnownPosition(50, 10, 20)


def test_an_end_that_goes_after_a_quiet_while_is_as_old_as_its_last_reading() -> None:
    built, clock = stage(), Clock()
    keeper = SourceEndOffsetStore(built.here, 5.0, lambda: clock.now * 1000, inline)
    for clock.now in range(1000, 1060, 5):
        look(built, clock.now, keeper)
    del built.here.logs[TopicPartition("x", 1)]
    clock.now = 1060.0
    look(built, clock.now, keeper)
    seen = known_end_offsets(built.ledger())
    assert seen is not None
    assert seen.at_ms == 1055_000


def test_entries_that_are_no_more_do_not_ask_to_be_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sinks.ledger.kept_end_offsets.PARTITIONS_IN_AN_ENTRY", 2)
    built, times = stage(), Clock()
    keeper = SourceEndOffsetStore(built.here, 5.0, lambda: times.now * 1000, inline)
    look(built, 1000.0, keeper)
    built.world.settings = flow_settings({"topics": "x"})
    look(built, 1005.0, keeper)
    written = []
    for now in range(1010, 1310, 5):
        times.now = now
        look(built, now, keeper)
        seen = known_end_offsets(built.ledger())
        assert seen is not None
        written.append(seen.at_ms)
    assert len({*written}) == 6


@pytest.mark.parametrize("restarted", [False, True])
def test_end_that_cannot_be_seen_any_more_stays_as_it_was_seen_last_and_as_old(restarted: bool) -> None:
    built, times = stage(), iter([1.0, 2.0, 3.0])
    keepers = [SourceEndOffsetStore(built.here, 5.0, lambda: next(times), inline) for _ in range(2)]
    look(built, 1000.0, keepers[0])
    del built.here.logs[TopicPartition("x", 1)]
    built.write("x")
    look(built, 1010.0, keepers[restarted])
    assert kept_of(built) == {"x": (11, 10), "y": (10,)}
    seen = known_end_offsets(built.ledger())
    assert seen is not None
    assert seen.at_ms == 1


def test_a_source_that_takes_its_time_holds_up_no_pass_and_its_ends_are_written_after_a_later_one() -> None:
    built, go_on, started = stage(), Event(), list[Future[Any]]()

    def slow(call: Callable[[], Any], name: str) -> Future[Any]:
        started.append(thread.submit(lambda: (go_on.wait(30), call())[1]))
        return started[-1]

    with ThreadPoolExecutor(1) as thread:
        keeper = SourceEndOffsetStore(built.here, 5.0, beside=slow)
        look(built, 1000.0, keeper)
        look(built, 1010.0, keeper)
        assert known_end_offsets(built.ledger()) is None
        go_on.set()
        started[0].result(30)
        look(built, 1011.0, keeper)
    assert known_end_offsets(built.ledger()) is not None
    assert len(started) == 2


def test_log_that_is_seen_to_be_shorter_is_told_of_before_the_ledger_forgets_its_end() -> None:
    built = stage()
    told: list[dict[TopicPartition, int]] = []

    def note(ledger: Ledger, listed: Mapping[str, int], ends: Mapping[TopicPartition, int]) -> None:
        known = known_end_offsets(ledger)
        assert known is not None
        assert known.ends["x"] == (10, 15)
        assert listed["x"] == 2
        told.append(dict(ends))

    where = TopicPartition("x", 1)
    built.write("x", 1, 5)
    look(built, 1000.0, SourceEndOffsetStore(built.here, 5.0, beside=inline, note_shrunk=note))
    assert told == []
    built.here.logs[where] = MemoryLog(end=13)
    # By the next process: the one before saw nothing of it.
    look(built, 1010.0, SourceEndOffsetStore(built.here, 5.0, beside=inline, note_shrunk=note))
    assert told == [{where: 13}]


def test_log_that_is_seen_to_be_shorter_is_told_of_again_where_that_could_not_be_written() -> None:
    built = stage()
    told: list[dict[TopicPartition, int]] = []

    def note(ledger: Ledger, listed: Mapping[str, int], ends: Mapping[TopicPartition, int]) -> None:
        known = known_end_offsets(ledger)
        assert known is not None
        assert known.ends["x"] == (10, 15)
        told.append(dict(ends))
        if len(told) == 1:
            raise ClusterUnreachable("b gives no answer")

    where = TopicPartition("x", 1)
    store = SourceEndOffsetStore(built.here, 5.0, beside=inline, note_shrunk=note)
    built.write("x", 1, 5)
    look(built, 1000.0, store)
    built.here.logs[where] = MemoryLog(end=13)
    for now in (1010.0, 1020.0, 1030.0):
        look(built, now, store)
    assert told == [{where: 13}, {where: 13}]
    known = known_end_offsets(built.ledger())
    assert known is not None
    assert known.ends["x"] == (10, 13)


def test_an_entry_with_a_name_that_no_topic_can_have_is_unreadable() -> None:
    built = stage()
    built.ledger().put({(Entry.SOURCE_ENDS, ("0",)): f'{{"at": 1, "ends": {{"{"x" * 40_000}": [1]}}}}'})
    with pytest.raises(LockstepError, match="cannot read the source's ends"):
        kept_end_offsets(built.ledger())
