"""Kafka's classes, called from Python, those that are not public included."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from py4j.java_gateway import JavaGateway

from sinks.kafka.jvm.java_rows import rows_of

MIRROR = "org.apache.kafka.connect.mirror."


class Kafka:
    """What a Java process with Kafka's jars on its class path can be asked."""

    def __init__(self, gateway: JavaGateway) -> None:
        self.jvm, self.rows = gateway.jvm, rows_of(gateway)
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
