"""Reads a log up to an earlier end, for example to compare a copy as it was when the target took over."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from sinks.failover.record_matching import ReadLimits, read_records
from sinks.faults import ItemFault, Observed
from sinks.kafka.ports.groups import LogRange, ends_of
from sinks.kafka.ports.record_reader import Ending, PartitionTime, Record, RecordReader, Span, Why
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition

CUT_LIMITS = ReadLimits(most=1_000_000, seconds=300.0)
"""Limits of a reading that keeps all records in memory."""


class TooManyRecords(LockstepError):
    """A partition has more records to read than memory can hold at once."""

    def __init__(self, where: TopicPartition, alias: str) -> None:
        super().__init__(
            f"{where} on {alias} has more than {CUT_LIMITS.most:,} records to read, too many to hold at once"
        )
        self.where = where


class AsItWas:
    """A reader whose logs seem to end at the given offsets: ends and readable ranges are cut there."""

    def __init__(self, reader: RecordReader, ends: Mapping[TopicPartition, int]) -> None:
        self._records, self._ends = reader, ends

    @property
    def alias(self) -> str:
        return self._records.alias

    def offsets_for_times(self, times: Collection[PartitionTime]) -> Observed[PartitionTime, int | None]:
        return self._records.offsets_for_times(times)

    def compacted(self, topics: Collection[str]) -> set[str]:
        return self._records.compacted(topics)

    def scan(self, spans: Collection[Span], seconds: float) -> dict[Span, Ending]:
        return self._records.scan(spans, seconds)

    def close(self) -> None:
        self._records.close()

    def ends(self, partitions: Collection[TopicPartition]) -> Observed[TopicPartition, LogRange]:
        return self._cut(self._records.ends(partitions))

    def latest(self, partitions: Collection[TopicPartition]) -> Observed[TopicPartition, int]:
        return ends_of(self.ends(partitions))

    def readable(self, partitions: Collection[TopicPartition]) -> Observed[TopicPartition, LogRange]:
        return self._cut(self._records.readable(partitions))

    def _cut(self, seen: Observed[TopicPartition, LogRange]) -> Observed[TopicPartition, LogRange]:
        items = {
            where: replace(log, end=max(log.start, min(log.end, self._ends.get(where, log.end))))
            for where, log in seen.items.items()
        }
        return Observed(items, seen.errors)


def all_records(
    reader: RecordReader, starts: Mapping[TopicPartition, int], stops: Mapping[TopicPartition, int] | None = None
) -> dict[TopicPartition, list[Record]]:
    """Returns all records of each partition from offset `starts` on, up to the log's end or before offset `stops`.

    Raises TooManyRecords, LockstepError.
    """
    found: dict[TopicPartition, list[Record]] = {where: [] for where in starts}
    spans = {where: (start, (stops or {}).get(where)) for where, start in starts.items()}
    for where, ending in read_records(
        reader, spans, CUT_LIMITS, lambda where, record: found[where].append(record)
    ).items():
        if ending.why is Why.MOST:
            raise TooManyRecords(where, reader.alias)
        if ending.why not in (Why.END, Why.STOP):
            fault = ending.fault or ItemFault("NOT_READ", ending.why.value)
            raise LockstepError(f"{where} on {reader.alias} could not be read to its end: {fault}")
    return found
