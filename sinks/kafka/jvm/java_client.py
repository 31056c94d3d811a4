"""Java's `Admin` of one cluster for kinds that bring a port of their own: requests by name, faults in our words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JJavaError

from sinks.faults import ClusterUnreachable, ItemFault, NotSupported, RightsMissing
from sinks.kafka.jvm.java_admin import CLOSES_WITHIN_MS, DENIED_CLIENT, cause_of, java_admin, timeout_ms
from sinks.kafka.ports.cluster import CountRequest

REFUSAL_CODES: Mapping[str, str] = {
    "InvalidRequestException": "INVALID_REQUEST",
    "PolicyViolationException": "POLICY_VIOLATION",
    "UnknownServerException": "UNKNOWN",
}
"""Faults of one item, by Java's exception, under Kafka's names."""


class JavaAdmin:
    """`jvm` makes Java objects, `admin` is the client. Opens its connection with the first request."""

    def __init__(self, alias: str, gateway: Any, properties: Mapping[str, str], count_request: CountRequest) -> None:
        self.alias, self.jvm, self._gateway, self._count = alias, gateway.jvm, gateway, count_request
        self.admin, self._timeout = java_admin(alias, self.jvm, properties), timeout_ms(alias, properties)
        self._unit = self.jvm.java.util.concurrent.TimeUnit.MILLISECONDS

    def make(self, name: str, *arguments: Any) -> Any:
        """A Java object by its class's full name, of its only constructor; inner classes as `Outer$Inner`.

        py4j resolves no inner classes, and what Spark was given as jars is in the context class loader only.
        """
        loader = self.jvm.java.lang.Thread.currentThread().getContextClassLoader()
        (constructor,) = self.jvm.java.lang.Class.forName(name, True, loader).getConstructors()
        values = self._gateway.new_array(self.jvm.java.lang.Object, len(arguments))
        for at, argument in enumerate(arguments):
            values[at] = argument
        return constructor.newInstance(values)

    def answer(self, api: str, future: Any) -> Any:
        """What a `KafkaFuture` comes to. Raises Py4JJavaError."""
        try:
            answer = future.get(self._timeout, self._unit)
        except Py4JJavaError as error:
            self._count(self.alias, api, cause_of(error))
            raise
        self._count(self.alias, api, "ok")
        return answer

    def get(self, api: str, future: Any) -> Any:
        """What a `KafkaFuture` comes to. Raises ClusterUnreachable, RightsMissing, NotSupported."""
        try:
            return self.answer(api, future)
        except Py4JJavaError as error:
            cause = cause_of(error)
            text = f"cluster {self.alias}: {api}: {cause}"
            if cause in DENIED_CLIENT:
                raise RightsMissing(text) from error
            if cause == "UnsupportedVersionException":
                raise NotSupported(f"{text}; its brokers are too old for it") from error
            raise ClusterUnreachable(text) from error

    def fault(self, api: str, future: Any) -> ItemFault | None:
        """Why one item was not written; None where it was. Raises as `get` for what concerns the whole request."""
        try:
            self.answer(api, future)
        except Py4JJavaError as error:
            cause = cause_of(error)
            if cause in DENIED_CLIENT:
                raise RightsMissing(f"cluster {self.alias}: {api}: {cause}") from error
            if cause not in REFUSAL_CODES:
                raise ClusterUnreachable(f"cluster {self.alias}: {api}: {cause}") from error
            return ItemFault(
                REFUSAL_CODES[cause], str((error.java_exception.getCause() or error.java_exception).getMessage())
            )
        return None

    def close(self) -> None:
        """Lets go of the client."""
        self.admin.close(self.jvm.java.time.Duration.ofMillis(CLOSES_WITHIN_MS))
