"""A partition that is written, copied by an MM2 that dies and sends again, and sampled by a job, one step at a time."""

from __future__ import annotations

from dataclasses import dataclass, field

from sinks.failover.predicted_loss import predicted
from sinks.failover.record_matching import ReadLimits
from sinks.failover.source_end_offsets import AHEAD_LIMITS, CopyEvidence, PositionMemory, counted_ahead
from sinks.failover.uncopied_records import ArrivalMemory
from sinks.kinds.offsets.sync_history import Histories
from sinks.ledger.kept_end_offsets import (
    KeptEndOffsets,
    KnownPosition,
    by_topic,
    from_text,
    renewed_all,
    to_text,
)
from streaming.mm2.records import TopicPartition
from tests.memory.memory_records import MemoryLog, MemoryRecords

HERE, THERE = TopicPartition("x", 0), TopicPartition("a.x", 0)
KEYS = 5
LAG = 4
"""Records between two offset-syncs, where nothing else makes one."""

NO_SYNC = (-1, -1000)
"""Upstream and downstream offset, before the first one."""


@dataclass
class SampledMirror:
    """`reached`: the next offset that MM2 reads; `committed`: where it would begin again. `unread`: syncs that it wrote
    and the job has not read."""

    here: MemoryLog = field(default_factory=MemoryLog)
    there: MemoryLog = field(default_factory=MemoryLog)
    reached: int = 0
    committed: int = 0
    unread: list[tuple[int, int]] = field(default_factory=list)
    limits: ReadLimits = AHEAD_LIMITS

    def __post_init__(self) -> None:
        self.source, self.target = MemoryRecords("a", {HERE: self.here}), MemoryRecords("b", {THERE: self.there})
        self._last, self._previous, self._read = NO_SYNC, -1, 0
        self._histories, self._copied, self._counts = Histories(), PositionMemory({}, {}), ArrivalMemory()
        self._counted: dict[TopicPartition, KnownPosition] = {}
        self.kept: dict[str, KeptEndOffsets] = {}

    def write(self, records: int) -> None:
        for _ in range(records):
            number = b"%d" % self.here.end
            self.here.append(b"%d" % (self.here.end % KEYS), number, 1000 + self.here.end // 2)

    def mark(self) -> None:
        """The end of a transaction."""
        self.here.skip()

    def expire(self, records: int) -> None:
        """Retention takes the oldest ones, as far as they were copied."""
        self.here.cut(min(self.here.start + records, self.reached))

    def compact(self) -> None:
        """Keeps the newest record of each key, where the topic is compacted."""
        if not self.source.compacting:
            return
        newest = {record.key: record.offset for record in self.here.records}
        gone = [record.offset for record in self.here.records if record.offset != newest[record.key]]
        self.here.lose(*gone)

    def copy(self, records: int) -> None:
        """MM2 copies so many, with the syncs that Kafka's `PartitionState.update` asks for."""
        for record in [one for one in self.here.records if one.offset >= self.reached][:records]:
            place = self.there.end
            self.there.append(record.key, record.value, record.timestamp)
            if place - self._last[1] > LAG or record.offset - self._previous != 1:
                self._last = (record.offset, place)
                self.unread.append(self._last)
            self._previous, self.reached = record.offset, record.offset + 1

    def commit(self) -> None:
        self.committed = self.reached

    def kill(self, lost_syncs: int = 0) -> None:
        """MM2 dies, with syncs that it has not written yet, and begins again where it had committed."""
        del self.unread[max(0, len(self.unread) - lost_syncs) :]
        self.reached, self._last, self._previous = self.committed, NO_SYNC, -1

    def count(self) -> None:
        """What a preflight does."""
        seen = self._counts.observe(self.source, self.target, {HERE: THERE}, {})
        self._counted.update(seen.positions)

    def sample(self, syncs: int) -> None:
        """What the job does every few seconds, with so many more of MM2's offset-syncs."""
        for upstream, downstream in self.unread[:syncs]:
            self._histories.take(HERE, upstream, downstream, self._read)
            self._read += 1
        del self.unread[:syncs]
        self._histories.are_whole = True
        unborn = {} if self.kept or self.there.end else {HERE: self.here.start}
        evidence = CopyEvidence(self._histories.latest(), dict(self._counted), unborn)
        self._counted.clear()
        positions, ends = self._copied.renew({HERE: self.here.end}, evidence), {HERE: self.here.end}
        self._copied.positions.update(counted_ahead(self.source, self._copied.to_count, ends, self.limits))
        self.kept = from_text(
            to_text(renewed_all(self.kept, {"x": [self.here.end]}, 1, by_topic(positions, {"x": 1}, None)))
        )

    def restart_job(self) -> None:
        """Another process goes on with what the ledger has."""
        one = self.kept.get(HERE.topic)
        position = one.positions[0] if one and one.positions else None
        self._copied = PositionMemory({HERE: position} if position else {}, {HERE: one.ends[0]} if one else {})

    @property
    def predicted(self) -> int:
        """What `failover` says without the source."""
        behind = predicted(self.kept, self.target, {"x": "a.x"}, {"x"})[HERE].behind
        assert behind is not None
        return behind.records

    @property
    def missing(self) -> int:
        """Records that the job had seen the source to have, and that are not on the target."""
        there, seen = {record.value for record in self.there.records}, self.kept[HERE.topic].ends[0]
        return sum(record.offset < seen and record.value not in there for record in self.here.records)
