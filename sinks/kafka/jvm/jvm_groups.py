"""Looking at the committed offsets of many groups through the driver's own JVM, and comparing them there.

Java's Admin asks a coordinator for many groups in one request (KIP-709), librdkafka for one; and what did not change
need not become Python objects.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JJavaError

from sinks.faults import CoordinatorUnavailable, RightsMissing
from sinks.kafka.jvm.java_admin import CLOSES_WITHIN_MS, DENIED_CLIENT, cause_of, java_admin, timeout_ms
from sinks.kafka.ports.cluster import CountRequest
from streaming.errors import LockstepError

GROUPS_IN_A_REQUEST = 500

GROUP_SEPARATOR = "\n"
"""Between names on their way to the JVM and back; a group with it in its name travels by itself."""

GROUP_FAULTS = ("GroupAuthorizationException", "GroupIdNotFoundException", "InvalidGroupIdException")


def in_requests(groups: Collection[str]) -> list[list[str]]:
    """The groups sorted, so many at a time as are asked for together; those with a separator in their name alone."""
    names = sorted(group for group in groups if group)
    plain = [group for group in names if GROUP_SEPARATOR not in group]
    together = [plain[start : start + GROUPS_IN_A_REQUEST] for start in range(0, len(plain), GROUPS_IN_A_REQUEST)]
    return together + [[group] for group in names if GROUP_SEPARATOR in group]


class CommittedRequests:
    """Makes the maps that `Admin.listConsumerGroupOffsets` is asked with, in one JVM (py4j's)."""

    def __init__(self, jvm: Any) -> None:
        # Once: each step of such a name is a call over the gateway.
        self._spec = jvm.org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec
        self._map = jvm.java.util.concurrent.ConcurrentHashMap
        self._lines = jvm.java.util.regex.Pattern.compile(GROUP_SEPARATOR)

    def of(self, groups: Sequence[str]) -> Any:
        """A map that asks for all partitions of one of the lists of `in_requests`."""
        every, request = self._spec(), self._map()
        if len(groups) == 1:
            request.put(groups[0], every)
        else:
            # A set that is a view of a map puts the same value to every key: a few calls for any number of groups.
            request.keySet(every).addAll(self._lines.splitAsStream(GROUP_SEPARATOR.join(groups)).toList())
        return request


class JvmGroupWatch:
    """A `GroupWatch` on one cluster, through `Admin` in the JVM behind `gateway` (py4j)."""

    def __init__(self, alias: str, gateway: Any, properties: Mapping[str, str], count_request: CountRequest) -> None:
        self._alias, self._jvm, self._count = alias, gateway.jvm, count_request
        self._admin, self._timeout = java_admin(alias, self._jvm, properties), timeout_ms(alias, properties)
        self._unit = self._jvm.java.util.concurrent.TimeUnit.MILLISECONDS
        self._requests, self._map = CommittedRequests(self._jvm), self._jvm.java.util.HashMap
        self._last = self._map()
        self._polled: set[str] = set()
        self.troubled: Collection[str] = ()

    def changed(self, groups: Collection[str], asked: Collection[str] | None = None) -> set[str]:
        """All requests leave before the first answer is awaited."""
        self._forget(self._polled - set(groups))
        some = groups if asked is None else asked
        self._polled |= set(some)
        requests = [self._requests.of(together) for together in in_requests(some)]
        results = [(request, self._admin.listConsumerGroupOffsets(request)) for request in requests]
        differing, troubled = self._map(), set[str]()
        try:
            for request, result in results:
                troubled |= self._take(request, result, differing)
        except LockstepError:
            # Nobody hears of these now, so the next poll must report them again.
            self._last.keySet().removeAll(differing.keySet())
            raise
        self.troubled = frozenset(troubled)
        return troubled | set(self._names(differing))

    def _forget(self, groups: Collection[str]) -> None:
        for group in groups:
            self._last.remove(group)
        self._polled -= set(groups)

    def _take(self, request: Any, result: Any, differing: Any) -> set[str]:
        """Puts those that differ, with their offsets, into a Java map; returns the troubled ones."""
        try:
            seen = result.all().get(self._timeout, self._unit)
        except Py4JJavaError as error:
            return self._one_by_one(request, result, error, differing)
        self._count(self._alias, "OffsetFetch", "ok")
        self._compare(seen, differing)
        return set()

    def _compare(self, seen: Any, differing: Any) -> None:
        if self._last.entrySet().containsAll(seen.entrySet()):
            return
        found = self._map(seen)
        found.entrySet().removeAll(self._last.entrySet())
        self._last.putAll(found)
        differing.putAll(found)

    def _names(self, offsets: Any) -> list[str]:
        """The groups of such a map. Few calls over the gateway, where each step of an iteration would be one; and one
        text, since py4j sends without TCP_NODELAY, and some tens of kilobytes take as many milliseconds."""
        if not offsets.size():
            return []
        text = str(self._jvm.java.lang.String.join(GROUP_SEPARATOR, offsets.keySet()))
        names = text.split(GROUP_SEPARATOR)
        # Where a name has the separator in it.
        return names if len(names) == offsets.size() else list(offsets.keySet())

    def _one_by_one(self, request: Any, result: Any, error: Py4JJavaError, differing: Any) -> set[str]:
        """One group's trouble must not hide the others: the troubled ones count as changed and are read in full."""
        cause = cause_of(error)
        self._count(self._alias, "OffsetFetch", cause)
        if cause in DENIED_CLIENT:
            raise RightsMissing(f"cluster {self._alias}: OffsetFetch: {cause}")
        if cause not in GROUP_FAULTS:
            raise CoordinatorUnavailable(f"cluster {self._alias}: OffsetFetch: {cause}")
        troubled, seen = set(), self._map()
        for group in self._names(request):
            future = result.partitionsToOffsetAndMetadata(group)
            if future.isCompletedExceptionally():
                troubled.add(group)
            else:
                seen.put(group, future.get(self._timeout, self._unit))
        self._compare(seen, differing)
        return troubled

    def close(self) -> None:
        self._admin.close(self._jvm.java.time.Duration.ofMillis(CLOSES_WITHIN_MS))
