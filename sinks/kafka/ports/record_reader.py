"""Reading records here and there in many partitions at once: what the search for a record asks of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

from sinks.faults import ItemFault, Observed
from sinks.kafka.ports.groups import LogRange
from streaming.mm2.records import TopicPartition


class Stamp(Enum):
    """Kafka's `TimestampType`: who gave a record its timestamp."""

    NONE = "NoTimestampType"
    CREATE = "CreateTime"
    APPEND = "LogAppendTime"


class Record(NamedTuple):
    """A record, as far as it is compared; `timestamp` in ms since the epoch. Headers do not count: a transform of MM2's
    may add some."""

    offset: int
    timestamp: int
    stamp: Stamp
    key: bytes | None
    value: bytes | None


class PartitionTime(NamedTuple):
    """A partition, and a time in ms since the epoch."""

    where: TopicPartition
    timestamp: int


class RecordReader(Protocol):
    """Reads records of one cluster. Raises ClusterUnreachable, RightsMissing."""

    @property
    def alias(self) -> str: ...

    def ends(self, partitions: Collection[TopicPartition]) -> Observed[TopicPartition, LogRange]:
        """Start and end (high watermark) of each log."""

    def latest(self, partitions: Collection[TopicPartition]) -> Observed[TopicPartition, int]:
        """The end alone, for who needs no starts, which cost as much again."""

    def readable(self, partitions: Collection[TopicPartition]) -> Observed[TopicPartition, LogRange]:
        """The same, but the end up to which this reader gets records: before an open transaction, if it reads
        committed ones alone."""

    def offsets_for_times(self, times: Collection[PartitionTime]) -> Observed[PartitionTime, int | None]:
        """The first offset whose record has this timestamp or a later one; None where there is none."""

    def compacted(self, topics: Collection[str]) -> set[str]:
        """The topics that lose records from their midst (`cleanup.policy`), and those whose policy is unknown."""

    def scan(self, spans: Collection[Span], seconds: float) -> dict[Span, Ending]:
        """Reads all of them, for at most so many seconds; each has its ending.

        A span that starts beyond the end of its log ends at once, with the log's end.
        """

    def close(self) -> None: ...


class Why(Enum):
    """What ended the reading of a span."""

    TAKEN = "its reader has enough"
    STOP = "its last offset was reached"
    END = "the log ends there"
    MOST = "so many records were read"
    TIME = "the time was over"
    FAULT = "the cluster refused"


@dataclass(frozen=True, eq=False)
class Span:
    """The records at [`start`, `stop`) of a partition, at most `most` of them; `stop` None: to the end of the log.

    `take` is called with each, in order, until it says True. What lies before the log's start counts as read.
    """

    where: TopicPartition
    start: int
    stop: int | None
    most: int
    take: Callable[[Record], bool]


@dataclass(frozen=True, slots=True)
class Ending:
    """How the reading of a span ended. `position`: the next offset to read; with `Why.END` the end that a consumer
    sees, which for a reader of committed records lies before an open transaction."""

    why: Why
    position: int
    fault: ItemFault | None = None
