"""A cluster's ACLs through the driver's own JVM, where the last answer stays and is compared.

50,000 ACLs as librdkafka's Python objects cost a second of the interpreter. Here those that came and those that went
are told apart in the JVM, and they alone come over the gateway, in one text. Source: `Admin.describeAcls`; `AclBinding`
compares by value.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError

from sinks.faults import ClusterUnreachable, NotSupported, RightsMissing
from sinks.kafka.jvm.acl_json import AclJson
from sinks.kafka.jvm.java_admin import CLOSES_WITHIN_MS, DENIED_CLIENT, cause_of, java_admin, timeout_ms
from sinks.kafka.ports.acl_binding import AclBinding
from sinks.kafka.ports.acls import AclFaults, AclList, Acls
from sinks.kafka.ports.cluster import CountRequest
from streaming.errors import LockstepError

API = "DescribeAcls"
NO_AUTHORIZER = "SecurityDisabledException"

RECENT = 5.0
"""Seconds for which an answer is recent."""


class JvmAcls:
    """The ACLs of one cluster, through `Admin` in the JVM behind `gateway` (py4j). May be called from any thread."""

    def __init__(
        self,
        alias: str,
        gateway: Any,
        properties: Mapping[str, str],
        count_request: CountRequest,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._alias, self._jvm, self._count, self._clock = alias, gateway.jvm, count_request, clock
        self._admin, self._timeout = java_admin(alias, self._jvm, properties), timeout_ms(alias, properties)
        self._unit = self._jvm.java.util.concurrent.TimeUnit.MILLISECONDS
        self._any = self._jvm.org.apache.kafka.common.acl.AclBindingFilter.ANY
        self._json, self._lock = AclJson(self._jvm), threading.Lock()
        self._last, self._list = self._jvm.java.util.HashSet(), AclList()
        self._asked_at = self._written_at = float("-inf")

    def within(self, seconds: float) -> AclList:
        """All of them, asked for at most so long ago; the same value as before where they are the same.

        Raises NotSupported where the cluster has no authorizer, RightsMissing, ClusterUnreachable.
        """
        since = self._clock() - seconds
        with self._lock:
            if self._asked_at < since or self._asked_at <= self._written_at:
                asked_at = self._clock()
                self._take_in(self._answer())
                self._asked_at = asked_at
            return self._list

    def outdated(self) -> None:
        """Something was written: what was asked for before is not recent any more."""
        self._written_at = self._clock()

    def _answer(self) -> Any:
        try:
            found = self._admin.describeAcls(self._any).values().get(self._timeout, self._unit)
        except Py4JJavaError as error:
            raise self._stopped(error) from error
        self._count(self._alias, API, "ok")
        # Brokers need not tell them in the same order each time.
        return self._jvm.java.util.HashSet(found)

    def _take_in(self, seen: Any) -> None:
        if seen.equals(self._last):
            return
        come, gone = self._jvm.java.util.HashSet(seen), self._jvm.java.util.HashSet(self._last)
        come.removeAll(self._last)
        gone.removeAll(seen)
        self._list = AclList((self._list - self._json.read(gone)) | self._json.read(come))
        # Not before all of it is here: a call over the gateway may fail.
        self._last = seen

    def close(self) -> None:
        """Lets go of the client."""
        self._admin.close(self._jvm.java.time.Duration.ofMillis(CLOSES_WITHIN_MS))

    def _stopped(self, error: Py4JJavaError) -> LockstepError:
        cause = cause_of(error)
        self._count(self._alias, API, cause)
        text = f"cluster {self._alias}: {API}: {cause}: {error.java_exception.getMessage()}"
        if cause == NO_AUTHORIZER:
            return NotSupported(f"{text}; its brokers have no authorizer")
        return RightsMissing(text) if cause in DENIED_CLIENT else ClusterUnreachable(text)


class SharedJvmAcls:
    """Of a job: one `JvmAcls` for each account of a cluster, whichever flows have it. May be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._opened: dict[Hashable, JvmAcls] = {}
        self._users: Counter[Hashable] = Counter()

    @contextmanager
    def used(self, account: Hashable, make: Callable[[], JvmAcls]) -> Iterator[Callable[[], JvmAcls]]:
        """Gives what returns it, which opens it where nobody did; closed with the last that uses it."""

        def opened() -> JvmAcls:
            with self._lock:
                if account not in self._opened:
                    self._opened[account] = make()
                return self._opened[account]

        with self._lock:
            self._users[account] += 1
        try:
            yield opened
        finally:
            with self._lock:
                self._users[account] -= 1
                left = self._opened.pop(account, None) if not self._users[account] else None
            if left is not None:
                left.close()


class WatchedAcls:
    """`Acls` that are read through the JVM, and written as they were."""

    def __init__(self, acls: Acls, read: Callable[[], JvmAcls]) -> None:
        """`read`: opened when it is needed first."""
        self._acls, self._read = acls, read

    def describe(self) -> Collection[AclBinding]:
        return self._read().within(0.0)

    def recent(self) -> AclList:
        return self._read().within(RECENT)

    def create(self, bindings: Collection[AclBinding]) -> AclFaults:
        return self._written(self._acls.create, bindings)

    def delete(self, bindings: Collection[AclBinding]) -> AclFaults:
        return self._written(self._acls.delete, bindings)

    def _written(
        self, write: Callable[[Collection[AclBinding]], AclFaults], bindings: Collection[AclBinding]
    ) -> AclFaults:
        try:
            return write(bindings)
        finally:
            self._read().outdated()


class JvmAclWatch:
    """A watch on the ACLs that are read through the JVM."""

    def __init__(self, read: Callable[[], JvmAcls]) -> None:
        """`read`: as in WatchedAcls."""
        self._read = read
        self._last: AclList | None = None

    def changed(self) -> bool:
        """Whether the ACLs differ from those of the last poll; at the first one they do. Raises as `JvmAcls`."""
        seen = self._read().within(0.0)
        differs, self._last = seen is not self._last, seen
        return differs

    def forget(self) -> None:
        """The next poll reports a change."""
        self._last = None

    def close(self) -> None:
        """Whoever opened the client closes it."""
