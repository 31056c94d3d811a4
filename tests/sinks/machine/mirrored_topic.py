"""A topic of one partition that MM2 copies: its records on both sides, and MM2's offset-syncs, restarts included.

Retention and compaction take records from either log. Which ones lay there is remembered: a group may not have read
them. Records are told apart by their keys, so that a recreated topic has others. When a sync is
written is the rule of Kafka's `OffsetSyncWriter.PartitionState`. A producer's transaction stays open as long as it
likes; its marker takes an offset of the source, and has no copy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sinks.kafka.ports.groups import LogRange
from sinks.kafka.ports.transactions import ActiveProducer
from streaming.mm2.records import OffsetSync, TopicPartition
from tests.memory.memory_records import MemoryLog

SOURCE, TARGET = 0, 1
"""The sides, by which `starts` and `holes` are told apart."""

LAG_MAX = 5
"""MM2's `offset.lag.max` is 100: the same with fewer records."""


@dataclass
class MirroredTopic:
    """`source`: the record at each offset, also of those that are gone by now. `target`: the same there. Each record
    has a number of its own.

    `tell` is called with each offset-sync. `starts`: of both logs. `holes`: offsets that compaction took, on each side.
    `replaced`: records that compaction took before MM2 passed them, for the first time or again after a restart. Its
    syncs do not tell them from a transaction's markers.

    `committed`: MM2 reads with `read_committed`. `undecided`: numbers of the records of the open transaction.
    `aborted`: records of aborted ones. `markers`: numbers that stand for a marker.
    """

    name: str
    tell: Callable[[OffsetSync], None]
    source: list[int] = field(default_factory=list)
    target: list[int] = field(default_factory=list)
    produced: int = 0
    starts: list[int] = field(default_factory=lambda: [0, 0])
    holes: tuple[set[int], set[int]] = field(default_factory=lambda: (set(), set()))
    replaced: set[int] = field(default_factory=set)
    committed: bool = False
    undecided: set[int] = field(default_factory=set)
    aborted: set[int] = field(default_factory=set)
    markers: set[int] = field(default_factory=set)
    lag_max: int = LAG_MAX
    _next: int = 0
    _last_sync: int | None = None
    _previous: int | None = None
    _written_to: int = -1

    def __post_init__(self) -> None:
        self.here, self.there = TopicPartition(self.name, 0), TopicPartition(f"a.{self.name}", 0)

    @property
    def ends(self) -> tuple[LogRange, LogRange]:
        """Of the source and of the target."""
        source, target = self.starts
        return LogRange(source, len(self.source)), LogRange(target, len(self.target))

    @property
    def stable(self) -> int:
        """The source's last stable offset."""
        return next((at for at, number in enumerate(self.source) if number in self.undecided), len(self.source))

    def _has(self, side: int, offset: int) -> bool:
        if offset < self.starts[side] or offset in self.holes[side]:
            return False
        return side == TARGET or self.source[offset] not in self.markers

    def _copies(self, offset: int) -> bool:
        return self._has(SOURCE, offset) and not (self.committed and self.source[offset] in self.aborted)

    def produce(self, count: int, side: int = SOURCE) -> None:
        """So many records more, of a client."""
        log = (self.source, self.target)[side]
        log += range(self.produced, self.produced + count)
        self.produced += count

    def write_in_transaction(self, count: int) -> None:
        """So many records more of the one transactional producer, which ends its transaction later."""
        self.undecided |= set(range(self.produced, self.produced + count))
        self.produce(count)

    def end_transaction(self, *, commit: bool) -> None:
        """The coordinator writes the marker, where a transaction is open."""
        if self.undecided:
            self.aborted |= set() if commit else self.undecided
            self.undecided = set()
            self.markers.add(self.produced)
            self.produce(1)

    def copy(self, count: int) -> None:
        """MM2 copies so many; where the source's log ends before its place it begins anew, as its consumer does."""
        if not self.starts[SOURCE] <= self._next <= len(self.source):
            self._next = self.starts[SOURCE]
        end = self.stable if self.committed else len(self.source)
        for _ in range(min(count, end - self._next)):
            if self._copies(self._next):
                self.target.append(self.source[self._next])
                self._sync(self._next, len(self.target) - 1)
            elif self._next in self.holes[SOURCE]:
                self.replaced.add(self.source[self._next])
            self._next += 1

    def _sync(self, upstream: int, downstream: int) -> None:
        last, went_back = self._last_sync, downstream < self._written_to
        far = last is None or downstream - (last + 1) >= self.lag_max
        if far or went_back or upstream - (self._previous or 0) != 1:
            self._last_sync = downstream
            self.tell(OffsetSync(self.here, upstream, downstream))
        self._previous, self._written_to = upstream, downstream

    def restart_mm2(self, back: int) -> None:
        """MM2 sends again what it had not committed."""
        self._next, self._last_sync, self._previous = max(0, self._next - back), None, None

    def truncate_target(self, count: int) -> None:
        """The target loses its tail: MM2's producer goes on at the end that is left."""
        del self.target[max(self.starts[TARGET], len(self.target) - count) :]
        self._without_holes(TARGET)

    def truncate_source(self, count: int) -> None:
        """The source loses its tail: MM2's consumer goes on at the end that is left (KIP-320)."""
        del self.source[max(self.starts[SOURCE], len(self.source) - count) :]
        self._next = min(self._next, len(self.source))
        self.undecided.intersection_update(self.source)
        self._without_holes(SOURCE)

    def _without_holes(self, side: int) -> None:
        # Other records come to these offsets.
        self.holes[side].difference_update(
            range(len((self.source, self.target)[side]), max(self.holes[side], default=0) + 1)
        )

    def cut(self, side: int, share: float) -> None:
        """Retention, or DeleteRecords, takes this share of a log."""
        end = self.stable if side == SOURCE else len(self.target)
        self.starts[side] += int(share * (end - self.starts[side]))

    def compact(self, side: int, offsets: set[int]) -> None:
        """Compaction takes the records at these offsets, and earlier copies of them: they have the same keys."""
        log = (self.source, self.target)[side]
        for offset in offsets:
            if offset < (self.stable if side == SOURCE else len(log)):
                self.holes[side].update(at for at in range(offset + 1) if log[at] == log[offset])

    def recreate_source(self) -> None:
        """The source's topic is deleted and created: none of its records comes back."""
        self._empty(SOURCE)
        self.undecided.clear()

    def recreate_target(self) -> None:
        """The target's topic is deleted and created, empty."""
        self._empty(TARGET)

    def _empty(self, side: int) -> None:
        (self.source, self.target)[side].clear()
        self.starts[side] = 0
        self.holes[side].clear()

    def skipped(self, upstream: int, downstream: int) -> set[int]:
        """Records of the target that a group at `upstream` on the source has not read, and never gets if it goes on
        there. What the source lost counts as well.

        What MM2 has not copied yet is to come.
        """
        unread = set(self.source[upstream:]) - self.markers
        passed = {self.target[at] for at in range(downstream) if self._has(TARGET, at)}
        left = {self.target[at] for at in range(downstream, len(self.target)) if self._has(TARGET, at)}
        to_come = {self.source[at] for at in range(self._next, len(self.source)) if self._has(SOURCE, at)}
        return (unread & passed) - left - to_come - self.replaced

    def read_twice(self, upstream: int, downstream: int) -> list[int]:
        """Records that such a group has read, and gets again from what the target has by now."""
        read = set(self.source[:upstream])
        copies = (self.target[at] for at in range(downstream, len(self.target)) if self._has(TARGET, at))
        return [record for record in copies if record in read]

    def logs(self) -> tuple[MemoryLog, MemoryLog]:
        """The records of both sides; each keeps its timestamp."""
        both = (MemoryLog(), MemoryLog())
        for side, (log, numbers) in enumerate(zip(both, (self.source, self.target), strict=True)):
            for number in numbers:
                self._write(log, number, is_source=side == SOURCE)
            log.lose(*self.holes[side]).cut(self.starts[side])
        return both

    def _write(self, log: MemoryLog, number: int, *, is_source: bool) -> None:
        if is_source and number in self.markers:
            log.skip()
        elif is_source and number in self.undecided:
            log.written(ActiveProducer(1, 0, number), b"%d" % number, b"v", transactional=True)
        else:
            log.aborted |= {log.end} if is_source and number in self.aborted else set()
            log.append(b"%d" % number, b"v", timestamp=number)
