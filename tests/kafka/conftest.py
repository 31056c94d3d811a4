"""A JVM with Kafka's classes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from py4j.java_gateway import JavaGateway

from app.local.java_gateway import kafka_jvm
from tests.kafka.kafka_tools import KafkaTools


@pytest.fixture(scope="session")
def jvm() -> Iterator[JavaGateway]:
    """The Java process that `lockstep configs` starts as well."""
    with kafka_jvm() as gateway:
        yield gateway


@pytest.fixture(scope="session")
def kafka_tools(jvm: JavaGateway) -> KafkaTools:
    """Kafka's own tools in that process."""
    return KafkaTools(jvm)
