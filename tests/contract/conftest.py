"""The clusters that the contract holds for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sinks.cluster.base import Cluster
from sinks.cluster.kafka import KafkaCluster
from sinks.cluster.memory import MemoryCluster

KINDS = ["memory", pytest.param("kafka", marks=pytest.mark.kafka)]


@pytest.fixture(params=KINDS)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    if request.param == "memory":
        yield MemoryCluster("b")
        return
    built = KafkaCluster("b", {"bootstrap.servers": request.getfixturevalue("clusters").b.bootstrap})
    yield built
    built.close()
