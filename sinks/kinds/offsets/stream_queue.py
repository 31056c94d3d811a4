"""What the stream told of offsets while the flow did not listen: bounded, for MM2's topics have it all."""

from __future__ import annotations

from collections.abc import Collection
from sys import getsizeof
from threading import Lock
from typing import NamedTuple

from streaming.hints import CheckpointSeen, SyncSeen
from streaming.mm2.records import TopicPartition

MOST_WAITING_RECORDS = 500_000
"""Syncs and checkpoints that wait for a flow."""

MOST_WAITING_BYTES = 200_000_000
"""What they may take of the driver's memory: a name in a record of MM2's topics can have 32 KB."""

RECORD_BYTES = 200
"""Of one of them without its names: a tuple and its numbers."""

Batch = tuple[Collection[SyncSeen], Collection[CheckpointSeen]]
"""What one batch told of."""


class TakenIn(NamedTuple):
    """What was taken in: groups that MM2 wrote a checkpoint for; partitions on the source that MM2 sends again, or
    whose target log was truncated."""

    groups: set[str]
    restarted: set[TopicPartition]


class StreamQueue:
    """What the stream told of and nobody took in yet. Holds so many syncs and checkpoints at most, or nothing."""

    def __init__(self, most: int, most_bytes: int = MOST_WAITING_BYTES) -> None:
        self._most, self._most_bytes, self._lock = most, most_bytes, Lock()
        self._batches: list[Batch] = []
        self._count = self._bytes = 0
        self._overflowed = False

    def put(self, syncs: Collection[SyncSeen], checkpoints: Collection[CheckpointSeen]) -> None:
        """Keeps a batch; what is too much is let go of, with all that waits: only the topics have it in order."""
        size = bytes_of(syncs, checkpoints)
        with self._lock:
            self._count, self._bytes = self._count + len(syncs) + len(checkpoints), self._bytes + size
            if self._overflowed or self._count > self._most or self._bytes > self._most_bytes:
                self._batches, self._overflowed = [], True
            elif syncs or checkpoints:
                self._batches.append((syncs, checkpoints))

    @property
    def overflowed(self) -> bool:
        """Whether something was let go of, and is not read from MM2's topics yet."""
        with self._lock:
            return self._overflowed

    def overflow(self) -> None:
        """MM2's topics could not be read in place of what was let go of."""
        with self._lock:
            self._batches, self._overflowed = [], True

    def begin_again(self) -> None:
        """MM2's topics are read in place of what was let go of: what comes from now on is kept."""
        with self._lock:
            self._empty()
            self._overflowed = False

    def take(self) -> list[Batch] | None:
        """What waits; None where something was let go of: what is known ends before a gap then."""
        with self._lock:
            if self._overflowed:
                return None
            taken = self._batches
            self._empty()
            return taken

    def _empty(self) -> None:
        self._batches, self._count, self._bytes = [], 0, 0


def bytes_of(syncs: Collection[SyncSeen], checkpoints: Collection[CheckpointSeen]) -> int:
    """About what they take of memory. Those of one batch share some of their names, which count once."""
    names = {id(sync.topic): getsizeof(sync.topic) for sync in syncs}
    for seen in checkpoints:
        names[id(seen.topic)], names[id(seen.group)] = getsizeof(seen.topic), getsizeof(seen.group)
    return RECORD_BYTES * (len(syncs) + len(checkpoints)) + sum(names.values())
