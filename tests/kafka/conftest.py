"""A JVM with Kafka's classes, its tools among them."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from app.local.jars import kafka_jars, pyspark_jar
from app.local.java import java
from tests.kafka.kafka_tools import KafkaTools
from tests.quick_java import QUICK_KAFKA


@pytest.fixture(scope="session")
def jvm() -> Iterator[JavaGateway]:
    """A Java process without Spark."""
    port, token, process = launch_gateway(
        jarpath=str(pyspark_jar("py4j-*.jar")),
        classpath=os.pathsep.join(map(str, kafka_jars())),
        java_path=java(),
        javaopts=["-Xmx256m", "-XX:+UseSerialGC", *QUICK_KAFKA],
        die_on_exit=True,
        enable_auth=True,
        return_proc=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True))
    try:
        yield gateway
    finally:
        gateway.shutdown()
        process.stdin.close()
        process.wait(timeout=900)


@pytest.fixture(scope="session")
def kafka_tools(jvm: JavaGateway) -> KafkaTools:
    """Kafka's own tools in that process."""
    return KafkaTools(jvm)
