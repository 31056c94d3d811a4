"""How many records came to copies since a position, and were not there before: what MM2 sent again counts once.

Read on the target alone. A record that was sent again has the timestamp, the key and the value of an earlier copy, so
that it is looked for among those that are as young as the oldest that came. Markers of transactions are no records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sinks.failover.read_records import ReadLimits, read_records
from sinks.failover.tails import fingerprint_of
from sinks.kafka.ports.groups import LogRange
from sinks.kafka.ports.record_reader import PartitionTime, Record, RecordReader, Stamp, Why
from streaming.mm2.records import TopicPartition

NEW_COPIES_LIMITS = ReadLimits(most=200_000, seconds=30.0)
"""Of each of the two readings; what is not read by then counts as if it had not come."""


@dataclass
class _Came:
    """Of one partition since `since`: contents, how many records these were, and who gave them their timestamps."""

    since: int
    contents: set[int] = field(default_factory=set)
    records: int = 0
    oldest: int | None = None
    stamps: set[Stamp] = field(default_factory=set)

    @property
    def appended(self) -> bool:
        return Stamp.APPEND in self.stamps

    def take(self, record: Record) -> None:
        self.stamps.add(record.stamp)
        self.oldest = record.timestamp if self.oldest is None else min(self.oldest, record.timestamp)
        self.records += 1
        self.contents.add(content_of(record, timed=not self.appended))


def content_of(record: Record, *, timed: bool) -> int:
    """What tells a record from others; not `timed`: the target gave it its timestamp, which says nothing."""
    return hash((record.timestamp if timed else None, fingerprint_of(record).digest))


def new_copies(
    target: RecordReader,
    since: Mapping[TopicPartition, int],
    logs: Mapping[TopicPartition, LogRange],
    limits: ReadLimits = NEW_COPIES_LIMITS,
) -> dict[TopicPartition, int]:
    """By partition on the target, never too many. `since`: the offsets of the positions; `logs`: as far as is counted.

    Equal records count as one. Raises ClusterUnreachable, RightsMissing.
    """
    came = {where: _Came(max(start, logs[where].start)) for where, start in since.items() if start < logs[where].end}
    read_records(
        target, {where: (one.since, logs[where].end) for where, one in came.items()}, limits, _taker(came, _Came.take)
    )
    came = {where: one for where, one in came.items() if one.records}
    starts = _starts(target, came, logs)
    earlier = {where: (start, came[where].since) for where, start in starts.items() if start < came[where].since}
    endings = read_records(target, earlier, limits, _taker(came, _discard))
    unsure = {where for where, ending in endings.items() if ending.why not in (Why.END, Why.STOP)}
    unsure |= {where for where, one in came.items() if where not in starts or len(one.stamps) > 1}
    # Compaction may have taken earlier copies of more than can be seen.
    again = {where for where, one in came.items() if one.records > len(one.contents)}
    compacted = target.compacted({where.topic for where in again})
    unsure |= {where for where in again if where.topic in compacted}
    return {where: len(one.contents) for where, one in came.items() if where not in unsure}


def _discard(came: _Came, record: Record) -> None:
    came.contents.discard(content_of(record, timed=not came.appended))


def _taker(
    came: Mapping[TopicPartition, _Came], take: Callable[[_Came, Record], None]
) -> Callable[[TopicPartition], Callable[[Record], None]]:
    return lambda where: lambda record: take(came[where], record)


def _starts(
    target: RecordReader, came: Mapping[TopicPartition, _Came], logs: Mapping[TopicPartition, LogRange]
) -> dict[TopicPartition, int]:
    """Where earlier copies of what came can begin; left out where nobody can tell."""
    times = {
        where: PartitionTime(where, one.oldest)
        for where, one in came.items()
        if one.oldest is not None and not one.appended
    }
    seen = target.offsets_for_times(list(times.values())).items
    found = {where: offset for where, at in times.items() if (offset := seen.get(at)) is not None}
    return found | {where: logs[where].start for where, one in came.items() if one.appended}
