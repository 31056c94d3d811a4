"""A real MM2 between the shared clusters, a pair of secured ones, and a JVM with Kafka's classes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from py4j.java_gateway import JavaGateway

from app.local.java import QUICK_START
from app.local.java_gateway import kafka_jvm
from app.local.local_mirror import LocalMirror
from tests.conftest import Clusters
from tests.kafka import mm2_records
from tests.kafka.kafka_tools import KafkaTools
from tests.kafka.secured import Pair, secured_pair


@pytest.fixture(scope="session")
def jvm() -> Iterator[JavaGateway]:
    """The Java process that `lockstep configs` starts as well."""
    with kafka_jvm() as gateway:
        yield gateway


@pytest.fixture(scope="session")
def kafka_tools(jvm: JavaGateway) -> KafkaTools:
    """Kafka's own tools in that process."""
    return KafkaTools(jvm)


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Two secured clusters, for jobs with names of their own."""
    with secured_pair(tmp_path_factory.mktemp("secured")) as pair:
        yield pair


@pytest.fixture(scope="session")
def mirror(clusters: Clusters, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalMirror]:
    """MM2 from a to b for topics and groups `mirrored-…`, every second, under the aliases of `mm2_records`.

    When a test gets it, it has replicated a topic and written records of every kind.
    """
    properties = mm2_records.properties(clusters.a, clusters.b)
    folder = tmp_path_factory.mktemp("mirror")
    mm2_records.make_topic(clusters.a)
    with LocalMirror(properties, folder, java_options=QUICK_START) as mirror:
        mm2_records.bring_about(clusters.a, clusters.b)
        yield mirror
