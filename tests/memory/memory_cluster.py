"""A cluster in memory that keeps Kafka's rules, for tests; it fulfils the same contract as Kafka.

Refusals of one's own are given by `policy`: a function of (topic, config name, value) that returns a reason or None.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sinks.faults import ClusterUnreachable, IncrementalUnsupported, ItemFault, Observed, RightsMissing
from sinks.kafka.ports.cluster import (
    Alterations,
    ConfigEntry,
    Faults,
    LogChunk,
    Origin,
    Placed,
    Reader,
    Record,
    Tail,
    TopicConfigs,
    TopicFound,
    TopicSpec,
    in_chunks,
)

# When a cluster in memory answers: what its topics, ACLs, users and groups have in common.


GONE = ItemFault("UNKNOWN_TOPIC_OR_PART", "This server does not host this topic-partition.", retriable=True)
"""What a broker says of a topic that is not there."""


def answer(alias: str, reachable: bool) -> None:
    """Raises ClusterUnreachable where it does not."""
    if not reachable:
        raise ClusterUnreachable(f"{alias}: no answer (in-memory cluster)")


def permit(alias: str, reachable: bool, denied: Collection[str], operation: str) -> None:
    """Raises ClusterUnreachable, and RightsMissing for an operation (`describe`, `alter`) that is denied."""
    answer(alias, reachable)
    if operation in denied:
        raise RightsMissing(f"{alias}: not permitted to {operation} (in-memory cluster)")


BUILT_IN: Mapping[str, str] = {
    "cleanup.policy": "delete",
    "compression.type": "producer",
    "follower.replication.throttled.replicas": "",
    "leader.replication.throttled.replicas": "",
    "max.message.bytes": "1048588",
    "min.insync.replicas": "1",
    "retention.bytes": "-1",
    "retention.ms": "604800000",
    "segment.bytes": "1073741824",
}
"""Kafka's own defaults of the configs that this cluster knows."""

ConfigPolicy = Callable[[str, str, str | None], str | None]

TOPIC_EXISTS = ItemFault("TOPIC_ALREADY_EXISTS", "Topic already exists.")


def _no_policy(topic: str, name: str, value: str | None) -> str | None:
    return None


_IDS = itertools.count(1)


@dataclass
class _Topic:
    partitions: int
    id: str = field(default_factory=lambda: f"id-{next(_IDS)}", init=False)
    overrides: dict[str, str] = field(default_factory=dict)
    records: list[tuple[bytes, bytes | None]] = field(default_factory=list)


@dataclass
class MemoryCluster:
    """`writes` counts write requests; `denied` names the operations (`describe`, `alter`) that are not permitted.
    `unseen`: topics without DESCRIBE.

    Not `reachable`, it answers nothing.
    """

    alias: str
    id: str = "memory"
    defaults: dict[str, str] = field(default_factory=dict)
    policy: ConfigPolicy = _no_policy
    incremental: bool = True
    denied: set[str] = field(default_factory=set)
    unseen: set[str] = field(default_factory=set)
    reachable: bool = True
    writes: int = 0
    topics: dict[str, _Topic] = field(default_factory=dict)

    def cluster_id(self) -> str:
        self._answer()
        return self.id

    def list_topics(self) -> dict[str, int]:
        self._check("describe")
        return {name: topic.partitions for name, topic in self.topics.items() if name not in self.unseen}

    @property
    def listed_ids(self) -> dict[str, str]:
        return {name: topic.id for name, topic in self.topics.items()}

    def find_topic(self, topic: str) -> TopicFound | None:
        found = self.list_topics().get(topic)
        return TopicFound(found, self.topics[topic].id) if found is not None else None

    def topic_ids(self, topics: Collection[str]) -> dict[str, str]:
        self._check("describe")
        return {name: self.topics[name].id for name in topics if name in self.topics}

    def confirmed_absent(self, topics: Collection[str]) -> set[str]:
        self._check("describe")
        return {name for name in topics if name not in self.topics}

    def describe_topic_configs(self, topics: Collection[str]) -> Observed[str, TopicConfigs]:
        self._check("describe")
        found = {name: self._entries(self.topics[name]) for name in topics if name in self.topics}
        return Observed(found, {name: GONE for name in topics if name not in self.topics})

    def _entries(self, topic: _Topic) -> TopicConfigs:
        entries = {name: ConfigEntry(value, Origin.DEFAULT) for name, value in BUILT_IN.items()}
        entries |= {name: ConfigEntry(value, Origin.CLUSTER) for name, value in self.defaults.items()}
        return entries | {name: ConfigEntry(value, Origin.TOPIC) for name, value in topic.overrides.items()}

    def create_topics(self, specs: Mapping[str, TopicSpec]) -> Faults:
        self._write()
        faults: Faults = {}
        for name, spec in specs.items():
            faults[name] = TOPIC_EXISTS if name in self.topics else self._refusal(name, dict(spec.configs))
            if faults[name] is None:
                self.topics[name] = _Topic(spec.partitions, dict(spec.configs))
        return faults

    def create_partitions(self, counts: Mapping[str, int]) -> Faults:
        self._write()
        faults: Faults = {}
        for name, count in counts.items():
            topic = self.topics.get(name)
            faults[name] = GONE if topic is None else None
            if topic is not None:
                topic.partitions = max(topic.partitions, count)
        return faults

    def delete_topics(self, topics: Collection[str], ids: Mapping[str, str] | None = None) -> Faults:
        self._write()
        for name in topics:
            there, wanted = self.topics.get(name), (ids or {}).get(name)
            if there is not None and wanted in (None, "", there.id):
                del self.topics[name]
        return dict.fromkeys(topics)

    def alter_topic_configs(self, alterations: Alterations) -> Faults:
        self._check("alter")
        if not self.incremental:
            raise IncrementalUnsupported(f"{self.alias}: the broker does not know IncrementalAlterConfigs")
        self._write()
        faults: Faults = {}
        for name, changes in alterations.items():
            faults[name] = GONE if name not in self.topics else self._refusal(name, changes)
            if faults[name] is None:
                overrides = self.topics[name].overrides
                for key, value in changes.items():
                    overrides.pop(key, None) if value is None else overrides.update({key: value})
        return faults

    def replace_topic_configs(self, overrides: Mapping[str, Mapping[str, str]]) -> Faults:
        self._write()
        faults: Faults = {}
        for name, values in overrides.items():
            faults[name] = GONE if name not in self.topics else self._refusal(name, values)
            if faults[name] is None:
                self.topics[name].overrides = dict(values)
        return faults

    def _refusal(self, topic: str, values: Mapping[str, str | None]) -> ItemFault | None:
        for name, value in values.items():
            if name not in BUILT_IN and value is not None:
                return ItemFault("INVALID_CONFIG", f"Unknown topic config name: {name}")
            if reason := self.policy(topic, name, value):
                return ItemFault("POLICY_VIOLATION", reason)
        return None

    def create_log(self, topic: str, replication_factor: int | None, configs: Mapping[str, str]) -> None:
        if topic not in self.topics:
            self._write()
            self.topics[topic] = _Topic(1, dict(configs))

    def append_log(self, topic: str, records: Sequence[tuple[bytes, bytes | None]]) -> list[int]:
        self._answer()
        if topic not in self.topics:
            raise ClusterUnreachable(
                f"cluster {self.alias}: no record for {topic}, which is not there, was acknowledged"
            )
        there = self.topics[topic].records
        there.extend(records)
        return list(range(len(there) - len(records), len(there)))

    def read_log(self, topic: str, last: int | None = None) -> list[tuple[bytes, bytes | None]]:
        self._answer()
        records = self.topics[topic].records if topic in self.topics else []
        return list(records) if last is None else records[max(0, len(records) - last) :]

    def read_log_from(self, topic: str, position: int) -> LogChunk:
        records = [Placed(at, *record) for at, record in enumerate(self.read_log(topic))]
        whole = position == 0 or position > len(records) or topic not in self.topics
        return LogChunk(records if whole else records[position:], whole)

    def read_log_in_chunks(self, topic: str, position: int) -> Iterator[LogChunk]:
        records, whole = self.read_log_from(topic, position)
        for chunk in in_chunks(records):
            yield LogChunk(chunk, whole)

    def follow_log(self, topic: str, position: int = 0) -> Tail:
        return MemoryTail(self, topic, position)

    def close(self) -> None:
        """Nothing is open."""

    def _write(self) -> None:
        self._check("alter")
        self.writes += 1

    def _answer(self) -> None:
        answer(self.alias, self.reachable)

    def _check(self, operation: str) -> None:
        permit(self.alias, self.reachable, self.denied, operation)


class MemoryTail:
    """Follows a log; what is not there yet does not come later, for nothing else happens while it would wait."""

    def __init__(self, cluster: MemoryCluster, topic: str, position: int) -> None:
        self._cluster, self._topic, self._position = cluster, topic, position

    def next(self, timeout: float) -> list[Record]:
        records = self._cluster.read_log(self._topic)[self._position :]
        self._position += len(records)
        return records

    def close(self) -> None:
        """Nothing is open."""


class PlainWatch:
    """A watch over any reader: describes in Python and compares. The contract's reference for `JvmWatch`."""

    def __init__(self, cluster: Reader) -> None:
        self._cluster = cluster
        self._last: dict[str, TopicConfigs] = {}

    def changed(self, shards: Sequence[Sequence[str]]) -> set[str]:
        seen = self._cluster.describe_topic_configs([topic for shard in shards for topic in shard])
        differing = {name for name, configs in seen.items.items() if self._last.get(name) != configs}
        self._last.update(seen.items)
        self.forget(seen.errors)
        return differing | set(seen.errors)

    def forget(self, topics: Iterable[str]) -> None:
        for topic in topics:
            self._last.pop(topic, None)
