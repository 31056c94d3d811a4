"""The ACLs of a fence: their form, and the fences that the reverse flow's ledger lists.

A fence is a `DENY WRITE` for `User:*` from every host, a literal one for each topic. Any DENY beats every ALLOW
(KIP-11), but ACLs do not bind super users. A quota cannot fence, because KRaft refuses a quota of 0. A fence never
covers `*`, because MM2 writes offset-syncs, heartbeats and copies of the reverse flow to the source.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable

import orjson

from sinks.faults import RightsMissing
from sinks.kafka.ports.acl_binding import EVERYONE, LITERAL, TOPIC, WILDCARD, AclBinding
from sinks.kafka.ports.acls import AclList
from sinks.kafka.ports.cluster import Reader
from sinks.ledger.ledger_entries import Entry
from sinks.ledger.seal import Seal, unsealed
from sinks.model.changes import DENY, Key
from streaming.errors import LockstepError

log = logging.getLogger(__name__)


def fence_acls(topics: Iterable[str]) -> list[AclBinding]:
    return [AclBinding(TOPIC, topic, LITERAL, EVERYONE, WILDCARD, "WRITE", DENY) for topic in topics]


def could_be_fence(acl: AclBinding) -> bool:
    """Whether an ACL has the form of a fence. Only a ledger tells that it is one."""
    # Called for every ACL in each comparison, and hardly any denies.
    return acl.permission == DENY and is_fence_key(acl.key)


def is_fence_key(key: tuple[object, ...]) -> bool:
    """Whether a key has the form of a fence's ACL. Any client that writes a ledger could put other keys there."""
    name = key[1] if len(key) > 1 else WILDCARD
    return isinstance(name, str) and name != WILDCARD and key == fence_acls([name])[0].key


class ReverseFences:
    """Reads the fences in the reverse flow's ledger on the source. They can only protect ACLs from deletion.

    Any client with write access there may have written the entry, so only keys with the form of a fence's ACL count. A
    record without a signature can protect such an ACL. Only a record that `seal` trusts ends the protection: with a
    secret a signed one, else a tombstone of an entry that was never signed.
    """

    def __init__(self, topic: str, reader: Reader, seal: Seal) -> None:
        self._topic, self._reader, self._seal = topic, reader, seal
        self._read_to = 0
        self._known: set[Key] = set()
        self._signed_at: dict[bytes, int] = {}
        self._distrusted: set[Key] = set()
        self._denied = self._strange = False

    @property
    def known(self) -> frozenset[Key]:
        return frozenset(self._known)

    def current(self) -> frozenset[Key]:
        """Returns the keys of the fence's ACLs now. Raises ClusterUnreachable."""
        try:
            read = self._reader.read_log_from(self._topic, self._read_to)
        except RightsMissing as error:
            if not self._denied:
                log.warning("Lockstep could not read the fences of the reverse flow: %s", error)
            self._denied = True
            return frozenset(self._known)
        # What is known stays where the topic was recreated: a new topic says of no fence that it was lifted.
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
                    "%s lists a fence that is not a DENY WRITE on a topic: %r. Lockstep ignores it and similar ones. "
                    "Check who can write that topic (`lockstep validate --rights`)",
                    self._topic,
                    rest,
                )
            self._strange = True
            return
        (self._known.discard if self._is_lifted(acl, key, value) else self._known.add)(acl)

    def _is_lifted(self, acl: Key, key: bytes, value: bytes | None) -> bool:
        """Whether a trusted record says that the fence was lifted."""
        before = self._signed_at.get(key, 0)
        try:
            found = self._seal.unwrap(key, value)
        except LockstepError as error:
            why = str(error)
            if not self._seal.signs:
                self._signed_at[key] = max(before, 1)
        else:
            if found.at >= before:
                self._signed_at[key] = found.at
                return found.data is None
            why = "it replaces a record that was signed, or signed later"
        if unsealed(value) is None and acl not in self._distrusted:
            self._distrusted.add(acl)
            log.warning(
                "%s says that the fence of %s is lifted. Lockstep ignores that and deletes no ACL of that fence: %s. "
                "Check who can write the topic (`lockstep validate --rights`)",
                self._topic,
                acl[1],
                why,
            )
        return False


def without_fences(bindings: AclList, fences: Collection[Key]) -> AclList:
    if bindings.keys.isdisjoint(fences):
        return bindings
    return AclList(acl for acl in bindings if acl.key not in fences)
