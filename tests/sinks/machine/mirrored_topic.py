"""A topic of one partition that MM2 copies: its records on both sides, and MM2's offset-syncs, restarts included.

Records are told apart by their keys, so that those of a topic that was recreated are others. When a sync is written is
the rule of Kafka's `OffsetSyncWriter.PartitionState`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sinks.kafka.memory.memory_records import MemoryLog
from sinks.kafka.ports.groups import LogRange
from streaming.mm2.records import OffsetSync, TopicPartition

LAG_MAX = 5
"""MM2's `offset.lag.max` is 100: the same with fewer records."""


@dataclass
class MirroredTopic:
    """`source`: the record at each offset. `target`: the record at each offset there. Each has a number of its own.

    `tell` is called with each offset-sync.
    """

    name: str
    tell: Callable[[OffsetSync], None]
    source: list[int] = field(default_factory=list)
    target: list[int] = field(default_factory=list)
    produced: int = 0
    _next: int = 0
    _last_sync: int | None = None
    _previous: int | None = None
    _written_to: int = -1

    def __post_init__(self) -> None:
        self.here, self.there = TopicPartition(self.name, 0), TopicPartition(f"a.{self.name}", 0)

    @property
    def ends(self) -> tuple[LogRange, LogRange]:
        """Of the source and of the target."""
        return LogRange(0, len(self.source)), LogRange(0, len(self.target))

    def produce(self, count: int) -> None:
        """So many records more on the source."""
        self.source += range(self.produced, self.produced + count)
        self.produced += count

    def copy(self, count: int) -> None:
        """MM2 copies so many; where the source's log ends before its place it begins anew, as its consumer does."""
        if self._next > len(self.source):
            self._next = 0
        for _ in range(min(count, len(self.source) - self._next)):
            self.target.append(self.source[self._next])
            self._sync(self._next, len(self.target) - 1)
            self._next += 1

    def _sync(self, upstream: int, downstream: int) -> None:
        last, went_back = self._last_sync, downstream < self._written_to
        far = last is None or downstream - (last + 1) >= LAG_MAX
        if far or went_back or upstream - (self._previous or 0) != 1:
            self._last_sync = downstream
            self.tell(OffsetSync(self.here, upstream, downstream))
        self._previous, self._written_to = upstream, downstream

    def restart_mm2(self, back: int) -> None:
        """MM2 sends again what it had not committed."""
        self._next, self._last_sync, self._previous = max(0, self._next - back), None, None

    def truncate_target(self, count: int) -> None:
        """The target loses its tail: MM2's producer goes on at the end that is left."""
        del self.target[max(0, len(self.target) - count) :]

    def recreate_source(self) -> None:
        """The source's topic is deleted and created: none of its records comes back."""
        self.source.clear()

    def recreate_target(self) -> None:
        """The target's topic is deleted and created, empty."""
        self.target.clear()

    def skipped(self, upstream: int, downstream: int) -> set[int]:
        """Records that a group at `upstream` on the source has not read, and never gets if it goes on there.

        What MM2 has not copied yet is to come.
        """
        unread = set(self.source[upstream:])
        return (unread & set(self.target[:downstream])) - set(self.target[downstream:]) - set(self.source[self._next :])

    def logs(self) -> tuple[MemoryLog, MemoryLog]:
        """The records of both sides; each keeps its timestamp."""
        both = (MemoryLog(), MemoryLog())
        for log, numbers in zip(both, (self.source, self.target), strict=True):
            for number in numbers:
                log.append(b"%d" % number, b"v", timestamp=number)
        return both
