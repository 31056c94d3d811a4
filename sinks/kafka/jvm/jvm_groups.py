"""Looking at the committed offsets of many groups through the driver's own JVM, and comparing them there.

Java's Admin asks a coordinator for many groups in one request (KIP-709), librdkafka for one; and what did not change
need not become Python objects.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from py4j.protocol import Py4JJavaError

from sinks.faults import CoordinatorUnavailable, RightsMissing
from sinks.kafka.jvm.java_admin import CLOSES_WITHIN_MS, DENIED_CLIENT, cause_of, java_admin, timeout_ms
from sinks.kafka.ports.cluster import CountRequest
from sinks.kafka.ports.watches import POLLED_AT_ONCE
from streaming.errors import LockstepError

GROUPS_IN_A_REQUEST = 500
REQUESTS = POLLED_AT_ONCE // GROUPS_IN_A_REQUEST

GROUP_FAULTS = ("GroupAuthorizationException", "GroupIdNotFoundException", "InvalidGroupIdException")


class JvmGroupWatch:
    """A `GroupWatch` on one cluster, through `Admin` in the JVM behind `gateway` (py4j)."""

    def __init__(self, alias: str, gateway: Any, properties: Mapping[str, str], count_request: CountRequest) -> None:
        self._alias, self._jvm, self._count = alias, gateway.jvm, count_request
        self._admin, self._timeout = java_admin(alias, self._jvm, properties), timeout_ms(alias, properties)
        self._unit = self._jvm.java.util.concurrent.TimeUnit.MILLISECONDS
        self._every = self._jvm.org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec()
        self._last = self._jvm.java.util.HashMap()
        self._asked: dict[str, Any] = {}
        self._requests: list[Any] = []
        self._open: Any = None

    def changed(self, groups: Collection[str]) -> set[str]:
        """All requests leave before the first answer is awaited."""
        self._renew(groups)
        self._requests = [request for request in self._requests if not request.isEmpty()]
        turn, self._requests = self._requests[:REQUESTS], self._requests[REQUESTS:] + self._requests[:REQUESTS]
        requests = [(request, self._admin.listConsumerGroupOffsets(request)) for request in turn]
        found: set[str] = set()
        try:
            for request, result in requests:
                found |= self._differing_groups(request, result)
        except LockstepError:
            # Nobody hears of these now, so the next poll must report them again.
            for group in found:
                self._last.remove(group)
            raise
        return found

    def _renew(self, groups: Collection[str]) -> None:
        # A group stays in the request that it was put into: to build them again would be a call over the gateway each.
        for group in self._asked.keys() - set(groups):
            self._asked.pop(group).remove(group)
            self._last.remove(group)
        for group in sorted(set(groups) - self._asked.keys()):
            if self._open is None or self._open.isEmpty() or self._open.size() >= GROUPS_IN_A_REQUEST:
                self._open = self._jvm.java.util.HashMap()
                self._requests.append(self._open)
            self._open.put(group, self._every)
            self._asked[group] = self._open

    def _differing_groups(self, request: Any, result: Any) -> set[str]:
        try:
            seen = result.all().get(self._timeout, self._unit)
        except Py4JJavaError as error:
            return self._one_by_one(request, result, error)
        self._count(self._alias, "OffsetFetch", "ok")
        return self._differing(seen)

    def _differing(self, seen: Any) -> set[str]:
        if self._last.entrySet().containsAll(seen.entrySet()):
            return set()
        differing = self._jvm.java.util.HashMap(seen)
        differing.entrySet().removeAll(self._last.entrySet())
        self._last.putAll(seen)
        return set(differing.keySet())

    def _one_by_one(self, request: Any, result: Any, error: Py4JJavaError) -> set[str]:
        """One group's trouble must not hide the others: the troubled ones count as changed and are read in full."""
        cause = cause_of(error)
        self._count(self._alias, "OffsetFetch", cause)
        if cause in DENIED_CLIENT:
            raise RightsMissing(f"cluster {self._alias}: OffsetFetch: {cause}")
        if cause not in GROUP_FAULTS:
            raise CoordinatorUnavailable(f"cluster {self._alias}: OffsetFetch: {cause}")
        troubled, seen = set(), self._jvm.java.util.HashMap()
        for group in request.keySet():
            future = result.partitionsToOffsetAndMetadata(group)
            if future.isCompletedExceptionally():
                troubled.add(group)
            else:
                seen.put(group, future.get(self._timeout, self._unit))
        return troubled | self._differing(seen)

    def close(self) -> None:
        self._admin.close(self._jvm.java.time.Duration.ofMillis(CLOSES_WITHIN_MS))
