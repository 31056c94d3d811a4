"""ACLs as JSON that the JVM writes: one text over the gateway instead of a dozen calls for each."""

from __future__ import annotations

import sys
from typing import Any

import orjson

from sinks.kafka.jvm.field_json import FieldJson
from sinks.kafka.ports.acl_binding import OPERATIONS, PATTERN_TYPES, PERMISSIONS, RESOURCE_TYPES, UNKNOWN, AclBinding


class AclJson:
    """Reads Java's `AclBinding`s in the JVM behind `jvm`."""

    def __init__(self, jvm: Any) -> None:
        self._json = FieldJson(jvm)

    def read(self, bindings: Any) -> frozenset[AclBinding]:
        """Those of a Java collection. Raises ValueError where this version of Kafka's client has others."""
        return frozenset() if bindings.isEmpty() else bindings_of(self._json.text_of(bindings))


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
