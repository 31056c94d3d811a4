"""Reads the fences of the reverse flow from its ledger: ACLs on this flow's target that this flow must not touch."""

from __future__ import annotations

import logging
from collections.abc import Collection

import orjson

from sinks.faults import RightsMissing
from sinks.kafka.ports.acls import AclList
from sinks.kafka.ports.cluster import Reader
from sinks.ledger.fence_rules import is_fence_key
from sinks.ledger.ledger_entries import Entry
from sinks.ledger.seal import unsealed
from sinks.model.changes import Key

log = logging.getLogger(__name__)


class ReverseFences:
    """Reads the reverse flow's ledger on the source, signed or not. Its content can only protect ACLs.

    Any client with write access there may have written it. So only keys that look like a fence's ACL are accepted.
    """

    def __init__(self, topic: str, reader: Reader) -> None:
        self._topic, self._reader = topic, reader
        self._read_to = 0
        self._known: set[Key] = set()
        self._denied = self._strange = False

    @property
    def known(self) -> frozenset[Key]:
        """The fences of the last reading."""
        return frozenset(self._known)

    def current(self) -> frozenset[Key]:
        """Returns the keys of the fence's ACLs now. Raises ClusterUnreachable."""
        try:
            read = self._reader.read_log_from(self._topic, self._read_to)
        except RightsMissing as error:
            if not self._denied:
                log.warning("fences of the flow the other way round are not known: %s", error)
            self._denied = True
            return frozenset(self._known)
        if read.whole:
            self._known.clear()
        for position, key, value in read.records:
            self._take(key, value)
            self._read_to = position + 1
        return frozenset(self._known)

    def _take(self, key: bytes, value: bytes | None) -> None:
        try:
            name, *rest = orjson.loads(key)
        except (ValueError, TypeError):
            return
        if name != Entry.FENCE.value:
            return
        if not is_fence_key(acl := tuple(rest)):
            if not self._strange:
                log.warning(
                    "%s has entries that are no fences: they are left out, the first one is %r", self._topic, rest
                )
            self._strange = True
            return
        (self._known.discard if unsealed(value) is None else self._known.add)(acl)


def without_fences(bindings: AclList, fences: Collection[Key]) -> AclList:
    """Returns the ACLs that are no fences."""
    if bindings.keys.isdisjoint(fences):
        return bindings
    return AclList(acl for acl in bindings if acl.key not in fences)
