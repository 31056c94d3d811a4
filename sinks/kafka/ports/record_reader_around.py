"""A `RecordReader` that says by itself where logs end, and asks another one for everything else."""

from __future__ import annotations

from collections.abc import Collection

from sinks.faults import Observed
from sinks.kafka.ports.record_reader import Ending, PartitionTime, RecordReader, Span


class RecordReaderAround:
    """All but `ends`, `latest` and `readable`, which its heirs answer; see `RecordReader` for meaning and errors."""

    def __init__(self, records: RecordReader) -> None:
        self._records = records

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
