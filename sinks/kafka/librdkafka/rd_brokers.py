"""A cluster's brokers, replicas, partitions and open transactions through librdkafka."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sinks.kafka.librdkafka.admin import Admin
from sinks.kafka.ports.brokers import Replicas, Troubled
from sinks.kafka.ports.cluster import CountRequest, count_nothing
from streaming.mm2.records import TopicPartition


class KafkaBrokers:
    """`Brokers` through an admin client that is shared."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    def replicas(self) -> Replicas:
        seen = self._metadata()
        factors: dict[str, int] = {}
        in_sync: dict[str, int] = {}
        offline, lagging = set(), set()
        for name, topic in seen.topics.items():
            partitions = topic.partitions.values()
            factors[name] = min((len(one.replicas) for one in partitions), default=0)
            in_sync[name] = min((len(one.isrs) for one in partitions), default=0)
            offline |= {TopicPartition(name, one.id) for one in partitions if one.leader < 0}
            lagging |= {TopicPartition(name, one.id) for one in partitions if len(one.isrs) < len(one.replicas)}
        partitions = {name: len(topic.partitions) for name, topic in seen.topics.items()}
        return Replicas(len(seen.brokers), factors, in_sync, partitions, frozenset(offline), frozenset(lagging))

    def _metadata(self) -> Any:
        return self._admin.call("Metadata", lambda: self._admin.client.list_topics(timeout=self._admin.timeout))


class KafkaPartitions:
    """`Partitions` from the cluster's metadata. Opens no connection before the first request."""

    def __init__(self, alias: str, properties: Mapping[str, str], count_request: CountRequest = count_nothing) -> None:
        self._admin = Admin(alias, properties, count_request)

    def topics(self) -> list[str]:
        return sorted(self._metadata().topics)

    def troubled(self) -> Troubled:
        offline, under_replicated = set(), set()
        for name, topic in self._metadata().topics.items():
            for number, partition in topic.partitions.items():
                if partition.leader < 0:
                    offline.add((name, number))
                if len(partition.isrs) < len(partition.replicas):
                    under_replicated.add((name, number))
        return Troubled(frozenset(offline), frozenset(under_replicated))

    def _metadata(self) -> Any:
        return self._admin.call("Metadata", lambda: self._admin.client.list_topics(timeout=self._admin.timeout))
