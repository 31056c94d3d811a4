"""From where on a partition is compared."""

from __future__ import annotations

from collections.abc import Collection

from sinks.faults import Observed
from sinks.kafka.memory.memory_answers import GONE
from sinks.kafka.memory.memory_records import MemoryLog, MemoryRecords
from sinks.kafka.ports.groups import LogRange
from sinks.kafka.ports.record_reader import PartitionTime
from sinks.kinds.offsets.memory import OffsetMemory
from sinks.verify.log_survey import ComparisonScope, _since
from streaming.mm2.records import TopicPartition

X = TopicPartition("x", 0)


class Untimed(MemoryRecords):
    """A cluster that finds no offset by its time."""

    def offsets_for_times(self, moments: Collection[PartitionTime]) -> Observed[PartitionTime, int | None]:
        return Observed({}, dict.fromkeys(moments, GONE))


def since(records: MemoryRecords, since_ms: int) -> int:
    for number in range(9):
        records.logs.setdefault(X, MemoryLog()).append(b"k", b"v", 1000 + number)
    return _since(records, {X: LogRange(0, 9)}, OffsetMemory(), ComparisonScope(since_ms=since_ms))[X]


def test_a_partition_is_compared_from_the_first_record_of_that_time_on() -> None:
    assert since(MemoryRecords("a"), 1004) == 4


def test_of_a_partition_without_a_record_as_young_nothing_is_compared() -> None:
    assert since(MemoryRecords("a"), 2000) == 9


def test_a_partition_of_which_nobody_can_tell_where_that_time_is_is_compared_whole() -> None:
    assert since(Untimed("a"), 1004) == 0
