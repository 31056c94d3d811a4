"""Java's values as JSON that the JVM writes, by Jackson, which Spark has: one text over the gateway instead of a dozen
calls for each value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

LIST, OBJECTS = "java.util.ArrayList", "[Ljava.lang.Object;"
VISIBILITY = "com.fasterxml.jackson.annotation.JsonAutoDetect$Visibility"


class FieldJson:
    """Writes values by their fields: Kafka's classes have no getters as Jackson looks for them, or too many."""

    def __init__(self, jvm: Any, left_out: Mapping[str, Sequence[str]] | None = None) -> None:
        """`left_out`: by class, fields that stay where they are."""
        self._jvm = jvm
        jackson = jvm.com.fasterxml.jackson
        shown = {one.name(): one for one in self._class(VISIBILITY).getEnumConstants()}
        accessor = jackson.annotation.PropertyAccessor
        self._mapper = jackson.databind.ObjectMapper()
        self._mapper.setVisibility(accessor.ALL, shown["NONE"])
        self._mapper.setVisibility(accessor.FIELD, shown["ANY"])
        # What is of no interest but how many there are has no field left.
        self._mapper.disable(jackson.databind.SerializationFeature.FAIL_ON_EMPTY_BEANS)
        for name, fields in (left_out or {}).items():
            ignored = jvm.java.util.HashSet()
            for field in fields:
                ignored.add(field)
            ignorals = jackson.annotation.JsonIgnoreProperties.Value.forIgnoredProperties(ignored)
            self._mapper.configOverride(self._class(name)).setIgnorals(ignorals)
        named = jvm.java.lang.Class.forName
        self._words = named(LIST)
        self._rows = self._mapper.getTypeFactory().constructCollectionType(self._words, named(OBJECTS))

    def _class(self, name: str) -> Any:
        # py4j resolves no inner classes, and the jars of --packages are in the context class loader only.
        loader = self._jvm.java.lang.Thread.currentThread().getContextClassLoader()
        return self._jvm.java.lang.Class.forName(name, True, loader)

    def list_of(self, texts: Sequence[str]) -> Any:
        """A Java list of them, in one call."""
        return self._mapper.readValue(orjson.dumps(texts).decode(), self._words)

    def rows_of(self, rows: Sequence[Sequence[str | None]]) -> Any:
        """A Java list of arrays of words, in one call."""
        return self._mapper.readValue(orjson.dumps(rows).decode(), self._rows)

    def text_of(self, value: Any) -> str:
        """A Java value as JSON."""
        return str(self._mapper.writeValueAsString(value))
