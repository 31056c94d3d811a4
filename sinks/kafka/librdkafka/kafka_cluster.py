"""A Kafka cluster through librdkafka: observes topics and configs, writes them, keeps logs. Contract: `base`."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import lru_cache
from typing import Any

from confluent_kafka import KafkaError, TopicCollection
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)
from confluent_kafka.admin import ConfigEntry as RdEntry

from sinks.faults import IncrementalUnsupported, ItemFault, Observed
from sinks.kafka.librdkafka.admin import PING_TOPIC, Admin
from sinks.kafka.librdkafka.error_codes import item_fault, raised
from sinks.kafka.librdkafka.rd_acls import KafkaAcls
from sinks.kafka.librdkafka.rd_brokers import KafkaBrokers
from sinks.kafka.librdkafka.rd_groups import KafkaGroups
from sinks.kafka.librdkafka.rd_logs import Log
from sinks.kafka.librdkafka.rd_records import KafkaRecords
from sinks.kafka.librdkafka.rd_users import KafkaUsers
from sinks.kafka.ports.cluster import (
    MOST_REPLICAS,
    Alterations,
    ConfigEntry,
    CountRequest,
    Faults,
    LogChunk,
    Origin,
    Tail,
    TopicConfigs,
    TopicSpec,
    count_nothing,
)
from sinks.kafka.ports.permitted import ask_again

PING_TIMEOUT = 5.0
"""Seconds; a cluster that needs longer is as good as down."""

BETWEEN_ASKING = (0.0, 0.1, 0.3)
"""Seconds before each time that a broker is asked whether a topic is gone: right after a start it may not know yet."""

ORIGIN_OF = {
    1: Origin.TOPIC,
    2: Origin.BROKER,
    3: Origin.CLUSTER,
    4: Origin.STATIC,
    5: Origin.DEFAULT,
}
"""The `ConfigSource` numbers of the protocol."""


@lru_cache(maxsize=65536)
def _entry(value: str | None, source: int, read_only: bool, sensitive: bool) -> ConfigEntry:
    # Thousands of topics share a few dozen different entries.
    return ConfigEntry(value, ORIGIN_OF.get(source, Origin.UNKNOWN), read_only, sensitive)


class KafkaCluster:
    """A cluster by its Java client properties. Opens no connection before the first request."""

    def __init__(self, alias: str, properties: Mapping[str, str], count_request: CountRequest = count_nothing) -> None:
        self.alias = alias
        self._admin = Admin(alias, properties, count_request)
        self.acls = KafkaAcls(self._admin)
        self.groups = KafkaGroups(self._admin)
        self.users = KafkaUsers(self._admin)
        self.brokers = KafkaBrokers(self._admin)
        self._log = Log(alias, self._admin.config, self._admin.timeout)

    def records(self, isolation: str = "read_uncommitted") -> KafkaRecords:
        """A reader of records, to be closed by whom it is for."""
        return KafkaRecords(self._admin, isolation)

    def cluster_id(self) -> str:
        described = self._admin.call(
            "DescribeCluster", lambda: self._admin.client.describe_cluster(request_timeout=self._admin.timeout).result()
        )
        return str(described.cluster_id)

    def ping(self) -> None:
        """Raises ClusterUnreachable where no broker answers within PING_TIMEOUT, or the time of a request."""
        within = min(PING_TIMEOUT, self._admin.timeout)
        self._admin.call("Metadata", lambda: self._admin.client.list_topics(topic=PING_TOPIC, timeout=within))

    def list_topics(self) -> dict[str, int]:
        listed = self._admin.call("Metadata", lambda: self._admin.client.list_topics(timeout=self._admin.timeout))
        return {name: len(topic.partitions) for name, topic in listed.topics.items()}

    def partition_count(self, topic: str) -> int | None:
        return self.groups.partition_count(topic)

    def topic_ids(self, topics: Collection[str]) -> dict[str, str]:
        return self.groups.topic_ids(topics)

    def confirmed_absent(self, topics: Collection[str]) -> set[str]:
        absent = set(topics)
        for pause in BETWEEN_ASKING:
            if not absent:
                break
            time.sleep(pause)
            futures = self._admin.client.describe_topics(
                TopicCollection(sorted(absent)), request_timeout=self._admin.timeout
            )
            settled = self._admin.settle("DescribeTopics", futures)
            absent = {
                name
                for name, (_, error) in settled.items()
                if error and error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
            }
        return absent

    def describe_topic_configs(self, topics: Collection[str]) -> Observed[str, TopicConfigs]:
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in dict.fromkeys(topics)]
        if not resources:
            return Observed({})
        items: dict[str, TopicConfigs] = {}
        errors: dict[str, ItemFault] = {}
        futures = self._admin.client.describe_configs(resources, request_timeout=self._admin.timeout)
        for resource, (found, error) in self._admin.settle("DescribeConfigs", futures).items():
            if error is None:
                items[resource.name] = {
                    name: _entry(entry.value, int(entry.source), entry.is_read_only, entry.is_sensitive)
                    for name, entry in found.items()
                }
            else:
                errors[resource.name] = item_fault(error)
        return Observed(items, errors)

    def create_topics(self, specs: Mapping[str, TopicSpec]) -> Faults:
        if not specs:
            return {}
        new = [
            NewTopic(name, spec.partitions, spec.replication_factor, config=dict(spec.configs))
            for name, spec in specs.items()
        ]
        futures = self._admin.client.create_topics(new, request_timeout=self._admin.timeout)
        return self._faults("CreateTopics", futures)

    def create_partitions(self, counts: Mapping[str, int]) -> Faults:
        if not counts:
            return {}
        # A topic that has as many already answers INVALID_PARTITIONS, like one that cannot grow to that number.
        existing = self.list_topics()
        growing = [NewPartitions(name, count) for name, count in counts.items() if existing.get(name, 0) < count]
        faults: Faults = dict.fromkeys(counts)
        if growing:
            ask_again()
            futures = self._admin.client.create_partitions(growing, request_timeout=self._admin.timeout)
            faults |= self._faults("CreatePartitions", futures)
        return faults

    def delete_topics(self, topics: Collection[str]) -> Faults:
        if not topics:
            return {}
        futures = self._admin.client.delete_topics(list(topics), request_timeout=self._admin.timeout)
        return self._faults("DeleteTopics", futures, so_already=frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART}))

    def alter_topic_configs(self, alterations: Alterations) -> Faults:
        if not alterations:
            return {}
        resources = [
            ConfigResource(
                ResourceType.TOPIC,
                topic,
                incremental_configs=[
                    RdEntry(name, value, incremental_operation=AlterConfigOpType.SET)
                    if value is not None
                    else RdEntry(name, None, incremental_operation=AlterConfigOpType.DELETE)
                    for name, value in changes.items()
                ],
            )
            for topic, changes in alterations.items()
        ]
        futures = self._admin.client.incremental_alter_configs(resources, request_timeout=self._admin.timeout)
        settled = self._admin.settle("IncrementalAlterConfigs", futures)
        for _, error in settled.values():
            if error is not None and error.code() in (KafkaError._UNSUPPORTED_FEATURE, KafkaError.UNSUPPORTED_VERSION):
                raise IncrementalUnsupported(f"cluster {self.alias}: {error.str()}")
        return {resource.name: item_fault(error) if error else None for resource, (_, error) in settled.items()}

    def replace_topic_configs(self, overrides: Mapping[str, Mapping[str, str]]) -> Faults:
        if not overrides:
            return {}
        resources = [ConfigResource(ResourceType.TOPIC, name, set_config=dict(kv)) for name, kv in overrides.items()]
        futures = self._admin.client.alter_configs(resources, request_timeout=self._admin.timeout)
        settled = self._admin.settle("AlterConfigs", futures)
        return {resource.name: item_fault(error) if error else None for resource, (_, error) in settled.items()}

    def create_log(self, topic: str, replication_factor: int | None, configs: Mapping[str, str]) -> None:
        listed = self._admin.call("Metadata", lambda: self._admin.client.list_topics(timeout=self._admin.timeout))
        if topic in listed.topics:
            return
        factor = min(MOST_REPLICAS, len(listed.brokers)) if replication_factor is None else replication_factor
        spec = TopicSpec(1, factor, tuple(sorted(configs.items())))
        ask_again()
        fault = self.create_topics({topic: spec})[topic]
        if fault is not None and fault.code != "TOPIC_ALREADY_EXISTS":
            raise raised(self.alias, f"creating {topic}", KafkaError(KafkaError._FAIL, str(fault)))

    def append_log(self, topic: str, records: Sequence[tuple[bytes, bytes | None]]) -> None:
        self._log.append(topic, records)

    def read_log(self, topic: str, last: int | None = None) -> list[tuple[bytes, bytes | None]]:
        return self._log.read(topic, last) if topic in self.list_topics() else []

    def read_log_from(self, topic: str, position: int) -> LogChunk:
        # Of a log that was read before, most of the time only its end is asked for.
        if position and (read := self._log.read_soon(topic, position)) is not None:
            return read
        return LogChunk([], whole=True) if self._lacks(topic, position) else self._log.read_from(topic, position)

    def read_log_in_chunks(self, topic: str, position: int) -> Iterator[LogChunk]:
        return (
            iter([LogChunk([], whole=True)])
            if self._lacks(topic, position)
            else self._log.read_in_chunks(topic, position)
        )

    def _lacks(self, topic: str, position: int) -> bool:
        """Whether there is no such topic. Of one that was read before, a listing alone does not tell."""
        if topic in self.list_topics():
            return False
        return position == 0 or topic in self.confirmed_absent([topic])

    def follow_log(self, topic: str, position: int = 0) -> Tail:
        return self._log.follow(topic, position)

    def close(self) -> None:
        self._log.close()
        self.groups.close()

    def _faults(self, api: str, futures: Mapping[str, Future[Any]], so_already: frozenset[int] = frozenset()) -> Faults:
        return {
            name: None if error is None or error.code() in so_already else item_fault(error)
            for name, (_, error) in self._admin.settle(api, futures).items()
        }
