"""Kafka's own Java classes, in a Java process without Spark or brokers, to ask what they would say."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from py4j import java_gateway, protocol
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from app.local.jars import fetched, kafka_jars, pyspark_jar
from app.local.java import java
from tests.fetched_jars import OLD_CLASSES
from tests.parity.kafka_classes import Kafka


def old_classes() -> list[Path]:
    """Classes that Kafka 4 no longer has; behind all others on the class path, for the rest is Kafka 4's."""
    return fetched(OLD_CLASSES)


@pytest.fixture(scope="session")
def kafka() -> Iterator[Kafka]:
    """One Java process for the whole run."""
    port, process = launch_gateway(
        jarpath=str(pyspark_jar("py4j-*.jar")),
        classpath=os.pathsep.join(map(str, [*kafka_jars(), *old_classes()])),
        java_path=java(),
        javaopts=["-Xmx512m", "-XX:+UseSerialGC"],
        die_on_exit=True,
        return_proc=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True))
    try:
        yield Kafka(gateway)
    finally:
        gateway.shutdown()
        process.stdin.close()
        process.wait(timeout=300)


@pytest.fixture(autouse=True)
def plain_py4j(monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark asks its own JVM about every Java exception; one of another JVM has an id that means another object."""
    monkeypatch.setattr(java_gateway, "get_return_value", protocol.get_return_value)
