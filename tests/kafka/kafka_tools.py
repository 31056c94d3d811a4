"""Kafka's own command line tools, run in a JVM that is there: a process for each call would take a second or two."""

from __future__ import annotations

from functools import reduce

from py4j.java_gateway import JavaGateway

ACLS, CONFIGS = "org.apache.kafka.tools.AclCommand", "kafka.admin.ConfigCommand"


class KafkaTools:
    """A tool that fails ends the JVM; one that is to be refused needs a process of its own."""

    def __init__(self, gateway: JavaGateway) -> None:
        java = gateway.jvm.java
        self._gateway = gateway
        # Scala's Console keeps the stream that it finds at its first use: this one is for the JVM's whole life.
        self._said = java.io.ByteArrayOutputStream()
        java.lang.System.setOut(java.io.PrintStream(self._said, True, "UTF-8"))

    def run(self, main: str, *arguments: str) -> str:
        """What the tool writes to stdout. Raises Py4JError where it fails."""
        words = self._gateway.new_array(self._gateway.jvm.java.lang.String, len(arguments))
        for number, argument in enumerate(arguments):
            words[number] = argument
        self._said.reset()
        reduce(getattr, main.split("."), self._gateway.jvm).main(words)
        return str(self._said.toString("UTF-8"))
