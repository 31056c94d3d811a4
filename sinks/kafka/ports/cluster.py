"""What the sink asks of a cluster: observe, write, keep a log. Implemented for Kafka, and in memory.

One contract suite (`tests/contract/`) tests both. A fault of one item comes back as `ItemFault`. What stops a whole
request is raised: `ClusterUnreachable`, `RightsMissing`, `IncrementalUnsupported`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple, Protocol, TypeVar

from sinks.faults import ItemFault, Observed
from streaming.mm2.records import TopicPartition

T = TypeVar("T")

Key = tuple[str, ...]
"""Names an item of a cluster in parts: the words of an ACL, a user with its mechanism, a topic with a config."""

Faults = dict[str, ItemFault | None]
"""Result of a write by topic: `None` if it was written, or was so already."""

Alterations = Mapping[str, Mapping[str, str | None]]
"""Per topic, per config name: the value to set, `None` to delete the override."""

CountRequest = Callable[[str, str, str], None]
"""Called with (alias, API name, `ok` or an error code) for every admin request that leaves."""


class Origin(str, Enum):
    """What sets a config's value: Kafka's `ConfigEntry.ConfigSource`, as far as topics have it."""

    TOPIC = "DYNAMIC_TOPIC_CONFIG"
    BROKER = "DYNAMIC_BROKER_CONFIG"
    CLUSTER = "DYNAMIC_DEFAULT_BROKER_CONFIG"
    STATIC = "STATIC_BROKER_CONFIG"
    DEFAULT = "DEFAULT_CONFIG"
    UNKNOWN = "UNKNOWN"

    @classmethod
    def _missing_(cls, value: object) -> Origin:
        return cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One config: the value in force, and what sets it. A sensitive value is `None`."""

    value: str | None
    origin: Origin
    read_only: bool = False
    sensitive: bool = False

    @property
    def is_override(self) -> bool:
        """Whether the value is set on the topic itself."""
        return self.origin is Origin.TOPIC


TopicConfigs = Mapping[str, ConfigEntry]


Record = tuple[bytes, bytes | None]
"""Key and value; the value `None` is a tombstone."""


class Placed(NamedTuple):
    """A record and its offset in the log."""

    position: int
    key: bytes
    value: bytes | None


class TopicFound(NamedTuple):
    """A topic's partition count and its id. The id is base64, or "" on brokers without ids."""

    partitions: int
    id: str


CHUNK = 10_000
"""Most records of a log that are held at once when it is read in chunks."""

CHUNK_BYTES = 8 * 1024 * 1024
"""Most bytes of keys and values that are held at once then; a larger record comes alone."""


class LogChunk(NamedTuple):
    """A part of a log, oldest record first. `whole`: the chunks are all that the log has."""

    records: list[Placed]
    whole: bool


UNKNOWN_OFFSET = -1
"""Offset of a record that was sent twice, because the broker acknowledges the second one without an offset."""


def in_chunks(records: Iterable[Placed]) -> Iterator[list[Placed]]:
    """Yields the records in order, at most `CHUNK` records and `CHUNK_BYTES` bytes at a time. A larger record comes
    alone. Yields one empty chunk if there are none. Raises as `records` does."""
    chunk: list[Placed] = []
    held = 0
    for record in records:
        size = len(record.key) + len(record.value or b"")
        if chunk and (len(chunk) == CHUNK or held + size > CHUNK_BYTES):
            yield chunk
            chunk, held = [], 0
        chunk.append(record)
        held += size
    yield chunk


def chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yields the items in order, at most `size` at a time."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


class Tail(Protocol):
    """Follows a log: all records that it has, then new ones."""

    def next(self, timeout: float) -> list[Record]:
        """Returns new records, oldest first; an empty list if none came within `timeout` seconds. No record is lost if
        it raises."""

    def close(self) -> None: ...


class Reader(Protocol):
    """Reads a cluster, and changes nothing."""

    @property
    def alias(self) -> str: ...

    def cluster_id(self) -> str:
        """The id that the cluster answers with now."""

    def list_topics(self) -> dict[str, int]:
        """Returns partition counts of every topic that the principal may see; 0 if the cluster cannot tell the
        count."""

    @property
    def listed_ids(self) -> Mapping[str, str]:
        """Topic ids of the last `list_topics`, as `topic_ids` has them."""

    def find_topic(self, topic: str) -> TopicFound | None:
        """Returns one topic without listing all; None if it does not exist or may not be seen."""

    def topic_ids(self, topics: Collection[str]) -> dict[str, str]:
        """Returns the id of each topic that exists (KIP-516). A recreated topic has another id. "" on brokers without
        ids."""

    def confirmed_absent(self, topics: Collection[str]) -> set[str]:
        """Returns the topics that do not exist: a broker, asked by name several times, says so each time. A topic that
        may not be seen is not among them."""

    def describe_topic_configs(self, topics: Collection[str]) -> Observed[str, TopicConfigs]:
        """Returns all configs of each topic. A topic that is gone is the error `UNKNOWN_TOPIC_OR_PART`."""

    def read_log(self, topic: str, last: int | None = None) -> list[Record]:
        """Returns the records of a one-partition topic up to its current end; empty if there is no such topic. `last`:
        only this many offsets before the end."""

    def read_log_from(self, topic: str, position: int) -> LogChunk:
        """Returns the records from an offset on, up to the current end.

        A log that ends before that offset was recreated, so all of its records come. A missing topic is an empty log;
        for an offset above 0 a broker must confirm that (`confirmed_absent`).
        """

    def read_log_in_chunks(self, topic: str, position: int) -> Iterator[LogChunk]:
        """Yields what `read_log_from` returns, in one or more chunks (see `in_chunks`). For logs too long for memory.
        Raises while it is iterated."""

    def follow_log(self, topic: str, position: int = 0) -> Tail:
        """Follow the same topic from an offset on, or from its first record if the offset does not exist. The topic
        need not exist yet."""

    def close(self) -> None: ...


class Cluster(Reader, Protocol):
    """Reads and writes a cluster."""

    def create_topics(self, specs: Mapping[str, TopicSpec]) -> Faults:
        """Create topics. A topic that exists is the fault `TOPIC_ALREADY_EXISTS`, so that the caller knows who created
        it."""

    def create_partitions(self, counts: Mapping[str, int]) -> Faults:
        """Grow each topic to this many partitions. A topic that has as many already is no fault."""

    def delete_topics(self, topics: Collection[str], ids: Mapping[str, str] | None = None) -> Faults:
        """Delete topics. A topic that is gone already is no fault. `ids`: by name; a topic with another id is not
        deleted."""

    def alter_topic_configs(self, alterations: Alterations) -> Faults:
        """Alter configs with IncrementalAlterConfigs (KIP-339), each topic all or nothing. Raises
        IncrementalUnsupported."""

    def replace_topic_configs(self, overrides: Mapping[str, Mapping[str, str]]) -> Faults:
        """Set configs with the old AlterConfigs: exactly these overrides remain, each topic all or nothing."""

    def create_log(self, topic: str, replication_factor: int | None, configs: Mapping[str, str]) -> None:
        """Create a one-partition topic for `append_log`, unless it exists. Raises LockstepError if the broker refuses
        it.

        `replication_factor`: None: the number of brokers, at most MOST_REPLICAS; -1: the broker's default.
        """

    def append_log(self, topic: str, records: Sequence[tuple[bytes, bytes | None]]) -> list[int]:
        """Append records in order, and wait until all in-sync replicas have them. Returns the offset of each record;
        UNKNOWN_OFFSET if the broker did not say it. Raises ClusterUnreachable."""


def count_nothing(alias: str, api: str, result: str) -> None:
    """Counts no request: for callers without metrics."""


MOST_REPLICAS = 3
"""Most replicas of a log if the file sets no replication factor."""


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic to create: partition count, replication factor (-1: the broker's default), overrides.

    `configs` does not count when topics are compared, because each config of an existing topic is a change of its own.
    `id`: of a topic to delete.
    """

    partitions: int
    replication_factor: int = field(default=-1, compare=False)
    configs: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    id: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if self.partitions < 1:
            raise ValueError(f"a topic has at least one partition, not {self.partitions}")

    def as_json(self) -> dict[str, Any]:
        """Returns the JSON fields for the plan and the audit."""
        return {
            "partitions": self.partitions,
            "replication_factor": self.replication_factor,
            "configs": dict(self.configs),
        }


@dataclass(frozen=True)
class Replicas:
    """How topics are replicated. `brokers`: number of brokers. `factors`: by topic, the fewest replicas of a partition.
    `in_sync`: by topic, the fewest replicas in sync. `partitions`: their number by topic. `offline`: partitions without
    a leader. `under_replicated`: partitions that lack replicas."""

    brokers: int
    factors: Mapping[str, int] = field(default_factory=dict)
    in_sync: Mapping[str, int] = field(default_factory=dict)
    partitions: Mapping[str, int] = field(default_factory=dict)
    offline: frozenset[TopicPartition] = frozenset()
    under_replicated: frozenset[TopicPartition] = frozenset()


class Partitions(Protocol):
    """Reads the partitions of all topics. Raises ClusterUnreachable, RightsMissing."""

    def names(self) -> list[str]:
        """Returns the topics that may be seen, sorted."""

    def replicas(self) -> Replicas:
        """Returns how all these topics are replicated."""
