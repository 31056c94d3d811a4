"""Which of many groups have committed since the last poll: their offsets stay in the JVM, and are compared there."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from py4j.protocol import Py4JJavaError

from sinks.faults import CoordinatorUnavailable, RightsMissing
from sinks.kafka.jvm.java_admin import JavaAdmin
from sinks.kafka.jvm.java_errors import DENIED_CLUSTER, LOGIN, java_error
from sinks.kafka.jvm.java_rows import TEXT
from sinks.kafka.jvm.jvm_groups import OFFSETS_RESULT, in_requests
from streaming.errors import LockstepError

API = "OffsetFetch"
GROUP_FAULTS = frozenset({"GROUP_AUTHORIZATION_FAILED", "GROUP_ID_NOT_FOUND", "INVALID_GROUP_ID"})


class JvmGroupWatch:
    """A `GroupWatch` on one cluster."""

    def __init__(self, admin: JavaAdmin) -> None:
        self._admin, self._map = admin, admin.jvm.java.util.HashMap
        self._unit = admin.jvm.java.util.concurrent.TimeUnit.MILLISECONDS
        self._last = self._map()
        self._polled: set[str] = set()
        self.troubled: Collection[str] = ()

    def changed(self, groups: Collection[str], asked: Collection[str] | None = None) -> set[str]:
        """All requests leave before the first answer is awaited."""
        self._forget(self._polled - set(groups))
        some = groups if asked is None else asked
        self._polled |= set(some)
        client = self._admin.client
        sent = [(names, client.listConsumerGroupOffsets(self._request(names))) for names in in_requests(some)]
        differing, troubled = self._map(), set[str]()
        try:
            for names, result in sent:
                troubled |= self._take(names, result, differing)
        except LockstepError:
            # Nobody hears of these now, so the next poll must report them again.
            self._last.keySet().removeAll(differing.keySet())
            raise
        self.troubled = frozenset(troubled)
        return troubled | self._names(differing)

    def _request(self, groups: Sequence[str]) -> Any:
        """A map that asks for all partitions of each."""
        jvm = self._admin.jvm
        request = jvm.java.util.concurrent.ConcurrentHashMap()
        # A set that is a view of a map puts the same value to every key: a few calls for any number of groups.
        every = jvm.org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec()
        request.keySet(every).addAll(self._admin.rows.texts(groups))
        return request

    def _forget(self, groups: Collection[str]) -> None:
        if groups:
            self._last.keySet().removeAll(self._admin.rows.texts(groups))
            self._polled -= set(groups)

    def _take(self, groups: Sequence[str], result: Any, differing: Any) -> set[str]:
        """Puts those that differ, with their offsets, into a Java map; returns the troubled ones."""
        try:
            seen = result.all().get(int(self._admin.timeout * 1000), self._unit)
        except Py4JJavaError as error:
            return self._one_by_one(groups, result, error, differing)
        self._admin.count(self._admin.alias, API, "ok")
        self._compare(seen, differing)
        return set()

    def _compare(self, seen: Any, differing: Any) -> None:
        if self._last.entrySet().containsAll(seen.entrySet()):
            return
        found = self._map(seen)
        found.entrySet().removeAll(self._last.entrySet())
        self._last.putAll(found)
        differing.putAll(found)

    def _names(self, offsets: Any) -> set[str]:
        """The groups of such a map. One text, where each step of an iteration would be a call over the gateway."""
        return set(self._admin.rows.read(offsets.keySet())) if offsets.size() else set()

    def _one_by_one(self, groups: Sequence[str], result: Any, error: Py4JJavaError, differing: Any) -> set[str]:
        """One group's trouble must not hide the others: the troubled ones count as changed and are read in full."""
        alias, (code, _) = self._admin.alias, java_error(error.java_exception.toString())
        self._admin.count(alias, API, code)
        if code in LOGIN or code == DENIED_CLUSTER:
            raise RightsMissing(f"cluster {alias}: {API}: {code}")
        if code not in GROUP_FAULTS:
            raise CoordinatorUnavailable(f"cluster {alias}: {API}: {code}")
        rows, troubled, seen = self._admin.rows, set(), self._map()
        futures = rows.by(result, OFFSETS_RESULT, "partitionsToOffsetAndMetadata", rows.texts(groups), TEXT)
        for at, (group, failed) in enumerate(zip(groups, rows.errors(futures), strict=True)):
            if failed is not None:
                troubled.add(group)
            else:
                seen.put(group, futures[at].getNow(None))
        self._compare(seen, differing)
        return troubled

    def close(self) -> None:
        """Whoever made the client closes it."""
