"""What the sink asks of a cluster: observe, write, keep a log. Two clusters fulfil it: Kafka's and one in memory.

One contract suite (`tests/contract/`) holds for both. Per-item trouble comes back as `ItemFault`; what stops a whole
request is raised: `ClusterUnreachable`, `RightsMissing`, `IncrementalUnsupported`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple, Protocol

from sinks.faults import ItemFault, Observed

Key = tuple[str, ...]
"""What names an item of a cluster, in parts: an ACL, a user with its mechanism, a topic with a config."""

Faults = dict[str, ItemFault | None]
"""Per topic: `None` when it was written, or was so already."""

Alterations = Mapping[str, Mapping[str, str | None]]
"""Per topic, per config name: the value to set, `None` to delete the override."""

CountRequest = Callable[[str, str, str], None]
"""Called with (alias, API name, `ok` or an error code) for every admin request that leaves."""


class Origin(str, Enum):
    """Where a config's value in force comes from: Kafka's `ConfigEntry.ConfigSource`, as far as topics have it."""

    TOPIC = "DYNAMIC_TOPIC_CONFIG"
    BROKER = "DYNAMIC_BROKER_CONFIG"
    CLUSTER = "DYNAMIC_DEFAULT_BROKER_CONFIG"
    STATIC = "STATIC_BROKER_CONFIG"
    DEFAULT = "DEFAULT_CONFIG"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One config of a topic: the value in force and where it comes from. A sensitive value is `None`."""

    value: str | None
    origin: Origin
    read_only: bool = False
    sensitive: bool = False

    @property
    def is_override(self) -> bool:
        """Set on the topic itself."""
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
    """`id`: as `Reader.topic_ids` has it."""

    partitions: int
    id: str


CHUNK = 10_000
"""Records of a log that are held at once where it is read in chunks."""

CHUNK_BYTES = 8 * 1024 * 1024
"""Bytes of keys and values that are held at once there; a record that has more comes alone."""


class LogChunk(NamedTuple):
    """A part of a log, oldest record first. `whole`: it is all that the log has, or a chunk of that."""

    records: list[Placed]
    whole: bool


UNKNOWN_OFFSET = -1
"""Of a record that was sent twice: the broker acknowledges the second one without an offset."""


def in_chunks(records: Iterable[Placed]) -> Iterator[list[Placed]]:
    """All of them in their order, at most `CHUNK` records and `CHUNK_BYTES` bytes at a time; a record that has more
    bytes comes alone. An empty chunk where there are none. Raises as `records` does."""
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


class Tail(Protocol):
    """A log that is followed: everything there is, then what comes."""

    def next(self, timeout: float) -> list[Record]:
        """Records that were not told yet, oldest first; empty when none came within `timeout` seconds.

        None is left out, whatever is raised in between.
        """

    def close(self) -> None: ...


class Reader(Protocol):
    """Looks, and changes nothing."""

    @property
    def alias(self) -> str: ...

    def cluster_id(self) -> str:
        """The id that the cluster answers with now."""

    def list_topics(self) -> dict[str, int]:
        """Every topic that may be seen, with its partition count; 0 where the cluster cannot say how many."""

    @property
    def listed_ids(self) -> Mapping[str, str]:
        """The ids of the topics that `list_topics` listed last, as `topic_ids` has them."""

    def find_topic(self, topic: str) -> TopicFound | None:
        """One topic, without listing all; None where it is not there, or may not be seen."""

    def topic_ids(self, topics: Collection[str]) -> dict[str, str]:
        """The id of each topic that is there (KIP-516): another one means that it was recreated. "" without ids."""

    def confirmed_absent(self, topics: Collection[str]) -> set[str]:
        """The topics that do not exist: a broker, asked by name several times, says so each time.

        One that may not be seen is not among them.
        """

    def describe_topic_configs(self, topics: Collection[str]) -> Observed[str, TopicConfigs]:
        """All configs of each topic. A topic that is gone is an error `UNKNOWN_TOPIC_OR_PART`."""

    def read_log(self, topic: str, last: int | None = None) -> list[Record]:
        """The records of a one-partition topic up to the end it has now; empty if there is no such topic.

        `last`: only the records at this many offsets before the end.
        """

    def read_log_from(self, topic: str, position: int) -> LogChunk:
        """The records at and behind an offset, up to the end that the log has now.

        A log that ends before that offset was recreated: all of its records come. A topic that is not there has no
        records, and that is the whole; for an offset above 0 a broker confirms it (`confirmed_absent`).
        """

    def read_log_in_chunks(self, topic: str, position: int) -> Iterator[LogChunk]:
        """What `read_log_from` returns, in at least one piece, each as `in_chunks` makes them.

        For logs that are too long to be held at once. Raises as it is iterated.
        """

    def follow_log(self, topic: str, position: int = 0) -> Tail:
        """The same topic from an offset on, the first record if it is not there; a topic that is not may appear."""

    def close(self) -> None: ...


class Cluster(Reader, Protocol):
    """Looks and writes."""

    def create_topics(self, specs: Mapping[str, TopicSpec]) -> Faults:
        """A topic that exists is the fault `TOPIC_ALREADY_EXISTS`, so that the caller knows who made it."""

    def create_partitions(self, counts: Mapping[str, int]) -> Faults:
        """Grows each topic to this many; one that has as many already is no fault."""

    def delete_topics(self, topics: Collection[str], ids: Mapping[str, str] | None = None) -> Faults:
        """One that is gone already is no fault. `ids`: by name; of one with an id, only the topic that has it goes."""

    def alter_topic_configs(self, alterations: Alterations) -> Faults:
        """IncrementalAlterConfigs (KIP-339), each topic all or nothing. Raises IncrementalUnsupported."""

    def replace_topic_configs(self, overrides: Mapping[str, Mapping[str, str]]) -> Faults:
        """The old AlterConfigs: exactly these overrides remain, each topic all or nothing."""

    def create_log(self, topic: str, replication_factor: int | None, configs: Mapping[str, str]) -> None:
        """A one-partition topic for `append_log`, unless it exists. Raises LockstepError when refused.

        `replication_factor` None: as many as there are brokers, at most MOST_REPLICAS; -1: the broker's default.
        """

    def append_log(self, topic: str, records: Sequence[tuple[bytes, bytes | None]]) -> list[int]:
        """Appends in order and waits until all in-sync replicas have them. Returns the offset of each record.

        UNKNOWN_OFFSET where the broker did not say which. Raises ClusterUnreachable.
        """


def count_nothing(alias: str, api: str, result: str) -> None:
    """For those who do not count."""


MOST_REPLICAS = 3
"""Replicas of a log where the file does not say how many."""


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic as it is created: partition count, replication factor (-1: the broker's default), overrides.

    `configs` does not count when a topic is compared: once it exists, each key is a change of its own. `id`: of a topic
    that is to be deleted.
    """

    partitions: int
    replication_factor: int = field(default=-1, compare=False)
    configs: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    id: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if self.partitions < 1:
            raise ValueError(f"a topic has at least one partition, not {self.partitions}")

    def as_json(self) -> dict[str, Any]:
        """For the plan and the audit."""
        return {
            "partitions": self.partitions,
            "replication_factor": self.replication_factor,
            "configs": dict(self.configs),
        }
