"""The records of a cluster in memory, read by the same rules as Kafka's (`records`)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from sinks.faults import ItemFault, Observed
from sinks.kafka.ports.groups import LogRange, ends_of
from sinks.kafka.ports.record_reader import Ending, PartitionTime, Record, Span, Stamp, Why
from sinks.kafka.ports.transactions import ActiveProducer
from sinks.kafka.sweep import Sweep, sweeps_of, within_logs
from streaming.mm2.records import TopicPartition
from tests.memory.memory_cluster import answer
from tests.memory.memory_groups import GONE

UNTOLD = ItemFault("LEADER_NOT_AVAILABLE", "", retriable=True)


@dataclass
class MemoryLog:
    """A partition's records, by rising offsets. Offsets that are missing below `end` have no record.

    `seen`: the end for its readers, where a transaction is open before the end of the log. `producers`: those that its
    leader knows, by id. `undecided`: offsets of open transactions, by producer. `aborted`: offsets of records that a
    reader of committed ones leaves out.
    """

    records: list[Record] = field(default_factory=list)
    start: int = 0
    end: int = 0
    seen: int | None = None
    producers: dict[int, ActiveProducer] = field(default_factory=dict)
    undecided: dict[int, set[int]] = field(default_factory=dict)
    aborted: set[int] = field(default_factory=set)

    @property
    def stable(self) -> int:
        """The last stable offset: before the first open transaction."""
        began = [one.began for one in self.producers.values() if one.began is not None]
        return min([self.end if self.seen is None else self.seen, *began])

    def written(self, one: ActiveProducer, key: bytes, value: bytes, *, transactional: bool = False) -> MemoryLog:
        """A record of an idempotent producer, with its `last_ms`; `transactional`: it is decided later."""
        known = self.producers.get(one.producer)
        began = known.began if known else None
        if transactional and began is None:
            began = self.end
        self.producers[one.producer] = one._replace(began=began)
        if transactional:
            self.undecided.setdefault(one.producer, set()).add(self.end)
        return self.append(key, value, one.last_ms)

    def decide(self, producer: int, *, commit: bool) -> MemoryLog:
        """The marker that ends the open transaction of a producer; without one it is a marker and no more."""
        known = self.producers.get(producer)
        if known is not None and known.began is not None:
            decided = self.undecided.pop(producer, set())
            self.aborted |= set() if commit else decided
            self.producers[producer] = known._replace(began=None)
        return self.skip()

    def append(
        self, key: bytes | None, value: bytes | None, timestamp: int = 0, stamp: Stamp = Stamp.CREATE
    ) -> MemoryLog:
        """One record more."""
        self.records.append(Record(self.end, timestamp, stamp, key, value))
        self.end += 1
        return self

    def skip(self, offsets: int = 1) -> MemoryLog:
        """Offsets that hold no record: markers, and what was aborted."""
        self.end += offsets
        return self

    def lose(self, *offsets: int) -> MemoryLog:
        """Compaction takes these."""
        self.records = [record for record in self.records if record.offset not in offsets]
        return self

    def cut(self, start: int) -> MemoryLog:
        """Retention takes all before this offset."""
        self.records, self.start = [record for record in self.records if record.offset >= start], start
        return self


@dataclass
class MemoryRecords:
    """`logs`: by partition; `compacting`: topics. Not `reachable`, it answers nothing. `committed`: it reads no open
    transaction, and nothing of an aborted one. `unstable`: partitions that tell no last stable offset.
    `leaderless`: partitions that had a leader when `latest` was asked, and have none for `ends`.

    `read` counts the records that were read, `scans` the passes.
    """

    alias: str
    logs: dict[TopicPartition, MemoryLog] = field(default_factory=dict)
    compacting: set[str] = field(default_factory=set)
    reachable: bool = True
    read: int = 0
    scans: int = 0
    committed: bool = True
    unstable: set[TopicPartition] = field(default_factory=set)
    leaderless: set[TopicPartition] = field(default_factory=set)

    def ends(self, partitions: Collection[TopicPartition]) -> Observed[TopicPartition, LogRange]:
        seen = self._logs(partitions)
        untold = dict.fromkeys(self.leaderless & seen.items.keys(), UNTOLD)
        return Observed(
            {where: log for where, log in seen.items.items() if where not in untold}, {**seen.errors, **untold}
        )

    def _logs(self, partitions: Collection[TopicPartition]) -> Observed[TopicPartition, LogRange]:
        answer(self.alias, self.reachable)
        there = {where: self.logs[where] for where in partitions if where in self.logs}
        return Observed(
            {where: LogRange(log.start, log.end) for where, log in there.items()},
            {where: GONE for where in partitions if where not in there},
        )

    def latest(self, partitions: Collection[TopicPartition]) -> Observed[TopicPartition, int]:
        return ends_of(self._logs(partitions))

    def readable(self, partitions: Collection[TopicPartition]) -> Observed[TopicPartition, LogRange]:
        ends = self.ends(partitions)
        untold = dict.fromkeys(self.unstable & ends.items.keys() if self.committed else (), UNTOLD)
        items = {
            where: LogRange(log.start, self._end(self.logs[where]))
            for where, log in ends.items.items()
            if where not in untold
        }
        return Observed(items, {**ends.errors, **untold})

    def _end(self, log: MemoryLog) -> int:
        return log.stable if self.committed else log.end

    def offsets_for_times(self, times: Collection[PartitionTime]) -> Observed[PartitionTime, int | None]:
        answer(self.alias, self.reachable)
        there = [context for context in times if context.where in self.logs]
        found = {context: self._first_at(context) for context in there}
        return Observed(found, {context: GONE for context in times if context not in found})

    def _first_at(self, context: PartitionTime) -> int | None:
        records = self.logs[context.where].records
        return next((record.offset for record in records if record.timestamp >= context.timestamp), None)

    def compacted(self, topics: Collection[str]) -> set[str]:
        answer(self.alias, self.reachable)
        there = {where.topic for where in self.logs}
        return {topic for topic in topics if topic in self.compacting or topic not in there}

    def scan(self, spans: Collection[Span], seconds: float) -> dict[Span, Ending]:
        left, endings = within_logs(spans, self.ends({span.where for span in spans}))
        self.scans += 1
        for where, sweep in sweeps_of(left).items():
            if seconds > 0:
                self._run(self.logs[where], sweep)
            sweep.finish(Ending(Why.TIME, sweep.position))
            endings |= sweep.endings
        return endings

    def _run(self, log: MemoryLog, sweep: Sweep) -> None:
        end = self._end(log)
        for record in log.records:
            sweep.jump()
            if sweep.done or record.offset >= end:
                break
            if self.committed and record.offset in log.aborted:
                continue
            self.read += record.offset >= sweep.position
            sweep.take(record)
        sweep.finish(Ending(Why.END, end))

    def close(self) -> None:
        """Nothing is open."""
