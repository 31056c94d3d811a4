"""The ids of many topics (KIP-516) through the driver's own JVM: librdkafka's Python client makes a future and a dozen
objects for each topic. Source: `Admin.describeTopics`."""

from __future__ import annotations

import struct
from base64 import b64encode
from collections.abc import Callable, Collection, Mapping
from typing import Any

import orjson
from py4j.protocol import Py4JError, Py4JJavaError

from sinks.faults import RightsMissing
from sinks.kafka.jvm.field_json import FieldJson
from sinks.kafka.jvm.java_admin import cause_of
from sinks.kafka.ports.cluster import CountRequest

API = "DescribeTopics"
LEFT_OUT = {
    "org.apache.kafka.clients.admin.TopicDescription": ("name", "internal", "partitions", "authorizedOperations")
}
NO_ID = {"mostSignificantBits": 0, "leastSignificantBits": 0}

FEW = 50
"""Topics that are as soon asked for through librdkafka."""

Others = Callable[[Collection[str]], dict[str, str]]


class JvmTopicIds:
    """Of one cluster. May be called from any thread."""

    def __init__(self, alias: str, gateway: Any, admin: Callable[[], Any], within_ms: int, count: CountRequest) -> None:
        """`admin`: opens a Java `Admin`, which belongs to whoever gives it, or returns the one that is open."""
        self._alias, self._gateway, self._admin, self._within, self._count = alias, gateway, admin, within_ms, count
        self._json: FieldJson | None = None

    def of(self, topics: Collection[str], others: Others) -> dict[str, str]:
        """As `GroupReader.topic_ids`. The others are asked where topics are few, or one of them is not there. Raises
        what they raise."""
        if len(topics) < FEW:
            return others(topics)
        try:
            found = self._asked(sorted(topics))
        except Py4JJavaError as error:
            self._count(self._alias, API, cause_of(error))
            return others(topics)
        except (RightsMissing, Py4JError, ValueError, KeyError, TypeError):
            # Java's client cannot log in as librdkafka could, or Kafka's client is of another version.
            return others(topics)
        self._count(self._alias, API, "ok")
        return found

    def _asked(self, names: list[str]) -> dict[str, str]:
        jvm = self._gateway.jvm
        mapper = self._json = self._json or FieldJson(jvm, LEFT_OUT)
        unit = jvm.java.util.concurrent.TimeUnit.MILLISECONDS
        answer = self._admin().describeTopics(mapper.list_of(names)).allTopicNames().get(self._within, unit)
        return {name: _id_of(one["topicId"]) for name, one in orjson.loads(mapper.text_of(answer)).items()}


def _id_of(uuid: Mapping[str, int]) -> str:
    """As librdkafka prints it, for ids of both are compared: in plain base64, where `Uuid.toString` has the URL-safe
    alphabet. "" for `Uuid.ZERO_UUID`."""
    if uuid == NO_ID:
        return ""
    both = struct.pack(">qq", uuid["mostSignificantBits"], uuid["leastSignificantBits"])
    return b64encode(both).decode().rstrip("=")
