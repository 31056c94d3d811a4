"""ACLs as JSON that the JVM writes: one text over the gateway instead of a dozen calls for each."""

from __future__ import annotations

import sys
from typing import Any

import orjson

from sinks.kafka.ports.acl_binding import OPERATIONS, PATTERN_TYPES, PERMISSIONS, RESOURCE_TYPES, UNKNOWN, AclBinding

VISIBILITY = "com.fasterxml.jackson.annotation.JsonAutoDetect$Visibility"


class AclJson:
    """Writes Java's `AclBinding`s in the JVM behind `jvm`, by Jackson, which Spark has."""

    def __init__(self, jvm: Any) -> None:
        jackson = jvm.com.fasterxml.jackson
        # py4j resolves no inner classes, and the jars of --packages are in the context class loader only.
        loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        shown = {one.name(): one for one in jvm.java.lang.Class.forName(VISIBILITY, True, loader).getEnumConstants()}
        accessor = jackson.annotation.PropertyAccessor
        self._mapper = jackson.databind.ObjectMapper()
        # `AclBinding` has no getters as Jackson looks for them, and some that it takes for one.
        self._mapper.setVisibility(accessor.ALL, shown["NONE"])
        self._mapper.setVisibility(accessor.FIELD, shown["ANY"])

    def read(self, bindings: Any) -> frozenset[AclBinding]:
        """Those of a Java collection. Raises ValueError where this version of Kafka's client has others."""
        if bindings.isEmpty():
            return frozenset()
        return bindings_of(str(self._mapper.writeValueAsString(bindings)))


def bindings_of(text: str) -> frozenset[AclBinding]:
    """`[{"pattern": {"resourceType", "name", "patternType"}, "entry": {"data": {"principal", "host", "operation",
    "permissionType"}}}]`; a word that this version of ours does not know is UNKNOWN.

    Raises ValueError for anything else.
    """
    try:
        return frozenset(_binding(one["pattern"], one["entry"]["data"]) for one in orjson.loads(text))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"Java's client tells ACLs in another way: {error!r}") from error


def _binding(pattern: dict[str, str], entry: dict[str, str]) -> AclBinding:
    # Tens of thousands of them have a few principals and hosts, and each topic has several.
    return AclBinding(
        _known(pattern["resourceType"], RESOURCE_TYPES),
        sys.intern(pattern["name"]),
        _known(pattern["patternType"], PATTERN_TYPES),
        sys.intern(entry["principal"]),
        sys.intern(entry["host"]),
        _known(entry["operation"], OPERATIONS),
        _known(entry["permissionType"], PERMISSIONS),
    )


def _known(word: str, words: frozenset[str]) -> str:
    return sys.intern(word) if word in words else UNKNOWN
