"""Lists of topics in the driver's JVM: each call over the gateway takes about 0.1 ms, and far longer while Python's
threads or the machine are busy, so that no list is made twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

LISTS_KEPT = 1024
"""Lists kept in the JVM: building one takes a call for each topic."""

RESOURCES_KEPT = 100_000
"""Resources kept in the JVM, each of which takes another call."""


class TopicResources:
    """Java's `ConfigResource` of topics, one by one and as collections."""

    def __init__(self, jvm: Any) -> None:
        self._jvm = jvm
        self._topic_type = self._enum_constant("org.apache.kafka.common.config.ConfigResource$Type", "TOPIC")
        # Every name of a package that is resolved is a call over the gateway, too.
        self._resource_class = jvm.org.apache.kafka.common.config.ConfigResource
        self._resources: dict[str, Any] = {}
        self._lists: dict[tuple[str, ...], Any] = {}
        self._moving, self._in_moving = jvm.java.util.HashSet(), frozenset[str]()

    def of(self, topic: str) -> Any:
        """One topic's."""
        if topic not in self._resources:
            if len(self._resources) >= RESOURCES_KEPT:
                self._resources.clear()
            self._resources[topic] = self._resource_class(self._topic_type, topic)
        return self._resources[topic]

    def has(self, topic: str) -> bool:
        """Whether it was asked for before."""
        return topic in self._resources

    def all_of(self, topics: Sequence[str]) -> Any:
        """A Java collection of these topics', which is as it should be until this is called again."""
        key = tuple(topics)
        if key in self._lists:
            return self._lists[key]
        wanted = frozenset(topics)
        if 2 * len(wanted ^ self._in_moving) <= len(wanted):
            return self._moved_to(wanted)
        if len(self._lists) >= LISTS_KEPT:
            self._lists.clear()
        made = self._jvm.java.util.ArrayList()
        for topic in topics:
            made.add(self.of(topic))
        # Not before it is whole: a call over the gateway may fail.
        self._lists[key] = made
        self._moving, self._in_moving = self._jvm.java.util.HashSet(made), wanted
        return made

    def _moved_to(self, wanted: frozenset[str]) -> Any:
        """What is nearly what was asked for before, such as the topics that changed lately, takes a call for each that
        came or went."""
        moving, before = self._moving, self._in_moving
        # Until every call succeeded nobody knows what is in it.
        self._in_moving = frozenset()
        self._moving = self._jvm.java.util.HashSet()
        for topic in before - wanted:
            moving.remove(self.of(topic))
        for topic in wanted - before:
            moving.add(self.of(topic))
        self._moving, self._in_moving = moving, wanted
        return moving

    def _enum_constant(self, enum: str, name: str) -> Any:
        # py4j resolves no inner classes, and the jars of --packages are in the context class loader only.
        loader = self._jvm.java.lang.Thread.currentThread().getContextClassLoader()
        constants = self._jvm.java.lang.Class.forName(enum, True, loader).getEnumConstants()
        return next(constant for constant in constants if constant.name() == name)
