"""What the search for a record asks of a cluster: to read records at scattered places of many partitions."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

from sinks.faults import ItemFault, Observed
from sinks.kafka.ports.groups import EndReader, LogRange
from streaming.mm2.records import TopicPartition


class Stamp(Enum):
    """Kafka's `TimestampType`: what set a record's timestamp."""

    NONE = "NoTimestampType"
    CREATE = "CreateTime"
    APPEND = "LogAppendTime"


class Record(NamedTuple):
    """The compared parts of a record. `timestamp`: ms since the epoch. Headers do not count, because a transform of MM2
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


class RecordReader(EndReader, Protocol):
    """Reads records of one cluster. Raises ClusterUnreachable, RightsMissing."""

    @property
    def alias(self) -> str: ...

    def readable(self, partitions: Collection[TopicPartition]) -> Observed[TopicPartition, LogRange]:
        """Returns each log's start, and the end up to which this reader gets records.

        A reader of committed records stops before an open transaction.
        """

    def offsets_for_times(self, times: Collection[PartitionTime]) -> Observed[PartitionTime, int | None]:
        """Returns the first offset whose record has this timestamp or a later one; None if there is none."""

    def compacted(self, topics: Collection[str]) -> set[str]:
        """Returns the compacted topics (`cleanup.policy`), and the topics whose policy is unknown."""

    def scan(self, spans: Collection[Span], seconds: float) -> dict[Span, Ending]:
        """Read all spans, for at most so many seconds. Returns an ending for each. A span that starts beyond the end of
        its log ends at once, with the log's end."""

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
    """The records at [`start`, `stop`) of a partition, at most `most` of them. `stop` None: to the end of the log.

    `take` is called with each record in order, until it returns True. Offsets before the log's start count as read.
    """

    where: TopicPartition
    start: int
    stop: int | None
    most: int
    take: Callable[[Record], bool]


@dataclass(frozen=True, slots=True)
class Ending:
    """How the reading of a span ended. `position`: the next offset to read. With `Why.END` it is the end that a
    consumer sees, which a reader of committed records has before an open transaction."""

    why: Why
    position: int
    fault: ItemFault | None = None
