"""What the stream told of offsets while the flow did not listen: bounded, for MM2's topics have it all."""

from __future__ import annotations

from collections.abc import Collection
from threading import Lock
from typing import NamedTuple

from streaming.hints import CheckpointSeen, SyncSeen
from streaming.mm2.records import TopicPartition

MOST_WAITING_RECORDS = 500_000
"""Syncs and checkpoints that wait for a flow; with 200 bytes each, 100 MB."""

Batch = tuple[Collection[SyncSeen], Collection[CheckpointSeen]]
"""What one batch told of."""


class TakenIn(NamedTuple):
    """What the stream told of: groups that MM2 wrote a checkpoint for; partitions on the source that MM2 sends again,
    or whose target log was truncated."""

    groups: set[str]
    restarted: set[TopicPartition]


class StreamQueue:
    """What the stream told of and nobody took in yet. Holds so many syncs and checkpoints at most, or nothing."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, Lock()
        self._batches: list[Batch] = []
        self._count, self._overflowed = 0, False

    def put(self, syncs: Collection[SyncSeen], checkpoints: Collection[CheckpointSeen]) -> None:
        """Keeps a batch; what is too much is let go of, with all that waits: only the topics have it in order."""
        with self._lock:
            self._count += len(syncs) + len(checkpoints)
            if self._overflowed or self._count > self._most:
                self._batches, self._overflowed = [], True
            elif syncs or checkpoints:
                self._batches.append((syncs, checkpoints))

    def overflow(self) -> None:
        """MM2's topics could not be read in place of what was let go of."""
        with self._lock:
            self._batches, self._overflowed = [], True

    def take(self) -> tuple[list[Batch], bool]:
        """What waits, and whether there was too much. What comes from now on is kept again."""
        with self._lock:
            taken = self._batches, self._overflowed
            self._batches, self._count, self._overflowed = [], 0, False
            return taken
