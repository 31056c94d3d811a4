"""A micro-batch ends early where MM2 wrote what a group waits for: once for each end of the topic, and seldom asked."""

from __future__ import annotations

from sinks.kafka.ports.groups import LogRange
from sinks.kinds.offsets.controller import END_POLL_INTERVAL, StreamWatch
from streaming.mm2.records import TopicPartition
from tests.memory.memory_groups import MemoryGroups

SYNCS = TopicPartition("mm2-offset-syncs.b.internal", 0)


def with_end(end: int) -> MemoryGroups:
    return MemoryGroups("a", logs={SYNCS: LogRange(0, end)})


def test_what_lies_behind_the_known_position_has_moved_and_is_told_of_once() -> None:
    groups = with_end(10)
    watch = StreamWatch(groups, SYNCS.topic)
    assert [watch.moved(now, 6) for now in (0.0, END_POLL_INTERVAL, 2 * END_POLL_INTERVAL)] == [True, False, False]
    groups.logs[SYNCS] = LogRange(0, 11)
    assert watch.moved(3 * END_POLL_INTERVAL, 6)


def test_what_is_known_has_not_moved() -> None:
    assert not StreamWatch(with_end(10), SYNCS.topic).moved(0.0, 9)


def test_it_is_asked_once_in_a_while_only() -> None:
    watch = StreamWatch(with_end(10), SYNCS.topic)
    assert not watch.moved(0.0, 9)
    assert [watch.moved(now, 5) for now in (END_POLL_INTERVAL / 2, END_POLL_INTERVAL)] == [False, True]


def test_a_topic_that_is_not_there_yet_has_not_moved() -> None:
    assert not StreamWatch(MemoryGroups("a", logs={}), SYNCS.topic).moved(0.0, -1)
