"""The clusters that the contract holds for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from app.wiring import open_cluster
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.kafka.ports.cluster import Cluster
from tests.memory.memory_cluster import MemoryCluster

KINDS = ["memory", pytest.param("kafka", marks=pytest.mark.kafka)]


@pytest.fixture
def kafka_cluster(request: pytest.FixtureRequest) -> Iterator[KafkaCluster]:
    """The target on real brokers."""
    with closing(open_cluster("b", {"bootstrap.servers": request.getfixturevalue("clusters").b.bootstrap})) as built:
        yield built


@pytest.fixture(params=KINDS)
def cluster(request: pytest.FixtureRequest) -> Cluster:
    if request.param == "memory":
        return MemoryCluster("b")
    real: Cluster = request.getfixturevalue("kafka_cluster")
    return real
