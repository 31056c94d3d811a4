"""The clusters that the contract holds for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sinks.kafka.librdkafka.kafka_cluster import KafkaCluster
from sinks.kafka.memory.memory_cluster import MemoryCluster
from sinks.kafka.ports.cluster import Cluster

KINDS = ["memory", pytest.param("kafka", marks=pytest.mark.kafka)]


@pytest.fixture(params=KINDS)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    if request.param == "memory":
        yield MemoryCluster("b")
        return
    built = KafkaCluster("b", {"bootstrap.servers": request.getfixturevalue("clusters").b.bootstrap})
    yield built
    built.close()
