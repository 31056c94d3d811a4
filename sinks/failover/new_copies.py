"""Counts records that came to copies since a position and were not there before. Resent records count once.

Reads the target alone. A resent record has the timestamp, key and value of an earlier copy. So the search covers
records that are as young as the oldest new one. Markers of transactions do not count.
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
"""For each of the two readings. Records beyond these limits count as absent."""


@dataclass
class _Came:
    """Records of one partition since `since`: contents, number, and which side set their timestamps."""

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
    """Returns a hash that identifies a record. Not `timed`: without the timestamp, because the target set it."""
    return hash((record.timestamp if timed else None, fingerprint_of(record).digest))


def new_copies(
    target: RecordReader,
    since: Mapping[TopicPartition, int],
    logs: Mapping[TopicPartition, LogRange],
    limits: ReadLimits = NEW_COPIES_LIMITS,
) -> dict[TopicPartition, int]:
    """Counts by partition on the target, never too many. `since`: offsets of the positions; `logs`: where counting
    ends.

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
    # Retention may have removed them as well.
    unsure |= {where for where, start in starts.items() if 0 < logs[where].start >= start}
    # Compaction may have removed earlier copies of records that are not visible any more.
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
    """Returns where earlier copies of new records can begin. Partitions where this is unknown are left out."""
    times = {
        where: PartitionTime(where, one.oldest)
        for where, one in came.items()
        if one.oldest is not None and not one.appended
    }
    seen = target.offsets_for_times(list(times.values())).items
    found = {where: offset for where, at in times.items() if (offset := seen.get(at)) is not None}
    return found | {where: logs[where].start for where, one in came.items() if one.appended}
