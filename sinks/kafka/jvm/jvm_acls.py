"""A cluster's ACLs through Java's Admin. The last answer stays in the JVM and is compared there.

50,000 ACLs as Python objects cost a second of the interpreter. So the JVM tells apart those that came and those that
went, and they alone come over the gateway, in one text. Source: `Admin.describeAcls`; `AclBinding` compares by value.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import orjson

from sinks.faults import ItemFault, NotSupported
from sinks.kafka.jvm.java_admin import JavaAdmin
from sinks.kafka.jvm.java_rows import TEXT, Make
from sinks.kafka.ports.acl_binding import OPERATIONS, PATTERN_TYPES, PERMISSIONS, RESOURCE_TYPES, UNKNOWN, AclBinding
from sinks.kafka.ports.acls import AclFaults, AclList
from sinks.kafka.ports.cluster import chunks
from sinks.kafka.ports.permitted import ask_again
from streaming.errors import LockstepError

API = "DescribeAcls"
NO_AUTHORIZER = "SECURITY_DISABLED"

RECENT = 5.0
"""Seconds for which a reading of all ACLs counts as recent."""

ACLS_IN_A_REQUEST = 500
"""Most ACLs in one write request. A controller compares each ACL to delete with every one that it has."""

ACL, RESOURCE = "org.apache.kafka.common.acl.", "org.apache.kafka.common.resource."
BINDING = Make(
    ACL + "AclBinding",
    (
        Make(RESOURCE + "ResourcePattern", (RESOURCE + "ResourceType", TEXT, RESOURCE + "PatternType")),
        Make(ACL + "AccessControlEntry", (TEXT, TEXT, ACL + "AclOperation", ACL + "AclPermissionType")),
    ),
)
"""Builds Java's AclBinding from the words of an ACL's key, in the same order."""

UNWRITABLE = ItemFault("INVALID_REQUEST", "Java's client knows no such resource, pattern, operation or permission")


class JvmAcls:
    """The ACLs of one cluster. Thread-safe."""

    def __init__(self, admin: JavaAdmin, clock: Callable[[], float] = time.monotonic) -> None:
        self.admin, self._clock, self._lock = admin, clock, threading.Lock()
        self._last: Any = None
        self._list = AclList()
        self._asked_at = self._written_at = float("-inf")

    def describe(self) -> Collection[AclBinding]:
        return self.within(0.0)

    def recent(self) -> AclList:
        return self.within(RECENT)

    def within(self, seconds: float) -> AclList:
        """Returns all ACLs, read at most `seconds` ago; the same object as before if they are equal.

        Raises NotSupported if the cluster has no authorizer, RightsMissing, ClusterUnreachable.
        """
        since = self._clock() - seconds
        with self._lock:
            if self._asked_at < since or self._asked_at <= self._written_at:
                asked_at = self._clock()
                self._take_in(self._answer())
                self._asked_at = asked_at
            return self._list

    def create(self, bindings: Collection[AclBinding]) -> AclFaults:
        return self._written("CreateAcls", bindings, self._create)

    def delete(self, bindings: Collection[AclBinding]) -> AclFaults:
        return self._written("DeleteAcls", bindings, self._delete)

    def _answer(self) -> Any:
        anything = self.admin.jvm.org.apache.kafka.common.acl.AclBindingFilter.ANY
        try:
            found = self.admin.call(API, lambda client: client.describeAcls(anything).values())
        except LockstepError as error:
            if NO_AUTHORIZER in str(error):
                raise self._no_authorizer(str(error)) from error
            raise
        # Brokers need not tell them in the same order each time.
        return self.admin.jvm.java.util.HashSet(found)

    def _take_in(self, seen: Any) -> None:
        java = self.admin.jvm.java.util.HashSet
        if self._last is None:
            self._last = java()
        if seen.equals(self._last):
            return
        come, gone = java(seen), java(self._last)
        come.removeAll(self._last)
        gone.removeAll(seen)
        self._list = AclList((self._list - self._read(gone)) | self._read(come))
        # Not before all of it is here: a call over the gateway may fail.
        self._last = seen

    def _read(self, bindings: Any) -> frozenset[AclBinding]:
        """Returns the ACLs of a Java collection. Raises ValueError if this version of Kafka's client has other
        fields."""
        return frozenset() if bindings.isEmpty() else bindings_of(self.admin.rows.text(bindings))

    def _written(self, api: str, bindings: Collection[AclBinding], write: Callable[[Any, Any, Any], Any]) -> AclFaults:
        # An UNKNOWN in a filter for deletion would be sent as it is, and match more than one.
        faults: AclFaults = {one: None if one.is_known else UNWRITABLE for one in bindings}
        try:
            for batch in chunks([one for one, fault in faults.items() if fault is None], ACLS_IN_A_REQUEST):
                ask_again()
                rows = self.admin.rows
                made = rows.made(BINDING, (one.key for one in batch))
                for one, fault in self.admin.write(api, batch, partial(write, rows, made)).faults.items():
                    if fault.code == NO_AUTHORIZER:
                        raise self._no_authorizer(f"cluster {self.admin.alias}: {api}: {fault}")
                    faults[one] = fault
        finally:
            # An answer from before the write is not recent any more.
            self._written_at = self._clock()
        return faults

    def _create(self, rows: Any, made: Any, client: Any) -> Any:
        return rows.of_map(client.createAcls(made).values(), made)

    def _delete(self, rows: Any, made: Any, client: Any) -> Any:
        filters = rows.each(made, BINDING.type, "toFilter")
        return rows.of_map(client.deleteAcls(filters).values(), filters)

    def _no_authorizer(self, said: str) -> NotSupported:
        return NotSupported(f"{said}; its brokers have no authorizer")

    def close(self) -> None:
        self.admin.close()


def bindings_of(text: str) -> frozenset[AclBinding]:
    """Parse `[{"pattern": {"resourceType", "name", "patternType"}, "entry": {"data": {"principal", "host", "operation",
    "permissionType"}}}]`.

    A word that this version of Lockstep does not know becomes UNKNOWN. Raises ValueError for any other shape.
    """
    try:
        return frozenset(_binding(one["pattern"], one["entry"]["data"]) for one in orjson.loads(text))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"Java's client returns ACLs in an unknown form: {error!r}") from error


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


class SharedJvmAcls:
    """One `JvmAcls` for each account of a cluster, shared by the flows of a job. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._opened: dict[Hashable, JvmAcls] = {}
        self._users: Counter[Hashable] = Counter()

    @contextmanager
    def used(self, account: Hashable, make: Callable[[], JvmAcls]) -> Iterator[JvmAcls]:
        """Yields the account's `JvmAcls`, created with `make` if there is none. It is closed with its last user."""
        with self._lock:
            if account not in self._opened:
                self._opened[account] = make()
            self._users[account] += 1
            found = self._opened[account]
        try:
            yield found
        finally:
            with self._lock:
                self._users[account] -= 1
                left = self._opened.pop(account, None) if not self._users[account] else None
            if left is not None:
                left.close()


class JvmAclWatch:
    """A watch on the ACLs that are read through the JVM."""

    def __init__(self, acls: JvmAcls) -> None:
        self._acls = acls
        self._last: AclList | None = None

    def changed(self) -> bool:
        seen = self._acls.within(0.0)
        differs, self._last = seen is not self._last, seen
        return differs

    def forget(self) -> None:
        self._last = None
