"""Records refuse what MM2's bytes cannot carry."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from streaming.mm2.records import Checkpoint, Heartbeat, OffsetSync, TopicPartition

HERE = TopicPartition("t", 0)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: TopicPartition("t", -1), "the partition is -1"),
        (lambda: TopicPartition("t", 2**31), "between 0 and 2147483647"),
        (lambda: TopicPartition("t" * 32768, 0), "32768 bytes"),
        (lambda: TopicPartition("\ud800", 0), "not Unicode text"),
        (lambda: Heartbeat("a", "b", -1), "the timestamp is -1"),
        (lambda: Heartbeat("é" * 16384, "b", 0), "the source alias"),
        (lambda: Checkpoint("g", HERE, -1, 0, ""), "the upstream offset"),
        (lambda: Checkpoint("g", HERE, 0, 2**63, ""), "the downstream offset"),
        (lambda: OffsetSync(HERE, 0, -1), "the downstream offset"),
    ],
)
def test_a_record_that_could_not_be_written_cannot_be_built(build: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


def test_topic_partitions_sort_by_topic_then_partition() -> None:
    unsorted = [TopicPartition("b", 0), TopicPartition("a", 10), TopicPartition("a", 2)]
    assert [str(one) for one in sorted(unsorted)] == ["a-2", "a-10", "b-0"]
