"""How a cluster's partitions are: those without a leader, and those with replicas that lag behind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sinks.kafka.librdkafka.admin import Admin
from sinks.kafka.ports.cluster import CountRequest, count_nothing
from sinks.kafka.ports.partitions import Troubled


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
