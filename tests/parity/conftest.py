"""Kafka's own Java classes, in a Java process without Spark or brokers, to ask what they would say."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyspark
import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from app.local.jars import kafka_jars
from app.local.java import java

MIRROR = "org.apache.kafka.connect.mirror."


class Kafka:
    """Kafka's classes by way of py4j, those that are not public included."""

    def __init__(self, gateway: JavaGateway) -> None:
        self.jvm = gateway.jvm
        self.mirror = gateway.jvm.org.apache.kafka.connect.mirror
        self._gateway = gateway
        self._methods: dict[tuple[str, str], Any] = {}

    def _array(self, element: str, values: list[Any]) -> Any:
        array = self._gateway.new_array(getattr(self.jvm.java.lang, element), len(values))
        for index, value in enumerate(values):
            array[index] = value
        return array

    def ask(self, instance: Any, name: str, *texts: str) -> Any:
        """Calls a method of texts that only Kafka's own package may call."""
        key = (instance.getClass().getName(), name)
        if key not in self._methods:
            text = self.jvm.java.lang.Class.forName("java.lang.String")
            method = instance.getClass().getDeclaredMethod(name, self._array("Class", [text] * len(texts)))
            method.setAccessible(True)
            self._methods[key] = method
        return self._methods[key].invoke(instance, self._array("Object", list(texts)))

    def source_connector(self, flow: tuple[str, str], policy: Any, topics: Any, heartbeats: bool) -> Any:
        """MirrorSourceConnector as Kafka's own tests make it, with a policy and a topic filter."""
        arguments = [self.mirror.SourceAndTarget(*flow), policy, topics, self.mirror.DefaultConfigPropertyFilter()]
        (constructor,) = (
            found
            for found in self.jvm.java.lang.Class.forName(f"{MIRROR}MirrorSourceConnector").getDeclaredConstructors()
            if found.getParameterCount() == len(arguments) + 1
        )
        constructor.setAccessible(True)
        return constructor.newInstance(self._array("Object", [*arguments, heartbeats]))

    def configured(self, name: str, *properties: Mapping[str, str]) -> Any:
        """An instance of a class of MM2's, configured with each of the properties in turn."""
        made = getattr(self.mirror, name)()
        for one in properties:
            made.configure(dict(one))
        return made


@pytest.fixture(scope="session")
def kafka() -> Iterator[Kafka]:
    """One Java process for the whole run."""
    py4j = next(Path(pyspark.__file__).parent.glob("jars/py4j-*.jar"))
    port, process = launch_gateway(
        jarpath=str(py4j),
        classpath=os.pathsep.join(map(str, kafka_jars())),
        java_path=java(),
        die_on_exit=True,
        return_proc=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True))
    try:
        yield Kafka(gateway)
    finally:
        gateway.shutdown()
        process.stdin.close()
        process.wait(timeout=20)
