"""What reads the records of both sides: Spark, or lists in a test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from streaming.verify.rows import DigestRow, KeyRow, KeySums, PartitionRead, RecordRows, SoughtRecord

Reads = Sequence[PartitionRead]
"""Partitions of one side. Those of both sides have the same ids and as many cells."""


class RecordJobs(Protocol):
    """Reads records and brings sums and differences. Raises what Spark raises."""

    def digests(self, source: Reads, target: Reads) -> Iterable[DigestRow]:
        """A row for each cell and side that has records."""

    def pairs(self, source: Reads, target: Reads, times: bool, most: int) -> RecordRows:
        """Records of the even cells (0, 2, …) of these partitions brought together; what lies in odd cells is left
        out. `times`: timestamps count. At most so many contents and runs, the first by offset."""

    def find_on_source(self, partitions: Reads, wanted: Sequence[SoughtRecord]) -> Mapping[SoughtRecord, int]:
        """The first offset in these partitions of each record that is there."""

    def last_values(self, source: Reads, target: Reads, most: int) -> tuple[Sequence[KeySums], Sequence[KeyRow]]:
        """Of compacted topics: sums of each partition, and at most so many keys whose last records do not agree, the
        first by offset."""
