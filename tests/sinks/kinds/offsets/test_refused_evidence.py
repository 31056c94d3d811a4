"""Offset-syncs and checkpoints that cannot be true are refused and counted."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sinks.kinds.offsets.memory import OffsetMemory
from sinks.kinds.offsets.sync_history import History, Pair
from streaming.hints import CheckpointSeen, SyncSeen
from streaming.mm2.records import TopicPartition
from tests.sinks.kinds.offsets.mm2_partition import WITH_RESTARTS, Partition, Step

X, AX = TopicPartition("x", 0), TopicPartition("a.x", 0)


def remembering(*syncs: tuple[int, int], checkpoint: tuple[int, int] | None = None) -> OffsetMemory:
    memory = OffsetMemory()
    memory.recognize({"x": "a.x"}, {"x": "1"}, {"a.x": "2"})
    seen = [SyncSeen(position, "x", 0, *pair) for position, pair in enumerate(syncs)]
    memory.queue.put(seen, [CheckpointSeen(0, "g", "a.x", 0, *checkpoint)] if checkpoint else [])
    memory.take_in_queued()
    return memory


def pairs(memory: OffsetMemory) -> list[Pair]:
    history = memory.histories.of(X)
    return list(history.pairs()) if history else []


def test_sync_beyond_the_source_s_end_is_refused_and_counted_once() -> None:
    memory = remembering((0, 0), (40, 30), (100, 90))
    memory.note_source_end(X, 100)
    memory.note_source_end(X, 100)
    assert pairs(memory) == [(0, 0), (40, 30)]
    assert memory.refused == {"sync": 1}


def test_sync_of_the_source_s_last_record_is_believed() -> None:
    memory = remembering((0, 0), (99, 90))
    memory.note_source_end(X, 100)
    assert pairs(memory) == [(0, 0), (99, 90)]
    assert not memory.refused


def test_partition_of_which_all_syncs_lie_beyond_the_end_has_none() -> None:
    memory = remembering((1000, 5))
    memory.note_source_end(X, 100)
    assert memory.histories.of(X) is None


@settings(max_examples=100, deadline=None)
@given(WITH_RESTARTS, st.integers(0, 60))
def test_what_is_left_can_be_written_down(steps: list[Step], end: int) -> None:
    made = Partition()
    for step in steps:
        made.step(step)
    if made.history is not None:
        before = list(made.history.pairs())
        made.history.drop_beyond(end)
        again = History.from_bytes(made.history.to_bytes())
        assert {*again.pairs()} <= {pair for pair in before if pair.upstream < end}
        assert again.is_empty is (min(before).upstream >= end)


@pytest.mark.parametrize(("checkpoint", "is_believed"), [((60, 50), True), ((60, 51), False), ((20, 21), False)])
def test_checkpoint_beyond_what_the_syncs_allow_is_refused_and_counted_once(
    checkpoint: tuple[int, int], is_believed: bool
) -> None:
    memory = remembering((0, 0), (40, 30), checkpoint=checkpoint)
    for _ in range(2):
        assert memory.checkpoint("g", X, AX) == (Pair(*checkpoint) if is_believed else None)
    assert memory.refused == ({} if is_believed else {"checkpoint": 1})


def test_checkpoint_may_lie_behind_what_was_sent_again() -> None:
    memory = remembering((0, 0), (40, 40), (30, 41), (60, 71), checkpoint=(50, 61))
    assert memory.checkpoint("g", X, AX) == (50, 61)


@settings(max_examples=200, deadline=None)
@given(WITH_RESTARTS)
def test_no_answer_of_mm2s_is_refused(steps: list[Step]) -> None:
    """MM2's own answer at an offset is the downstream one of a sync at or before it, or one more."""
    made = Partition()
    told: list[Pair] = []
    for step in steps:
        made.step(step)
        if made.history is None:
            continue
        told.append(made.history.latest)
        for upstream in range(told[-1].upstream, made.source_end + 1):
            assert made.history.reaches(Pair(upstream, told[-1].downstream + (upstream > told[-1].upstream)))
