"""A fence: which topics of the source it protects from writes, by which ACLs, and what it proves.

A fence is a `DENY WRITE` for `User:*` from every host, a literal one for each topic. Any DENY beats every ALLOW
(KIP-11), but ACLs do not bind super users. Quotas cannot fence: KRaft refuses a quota of 0. MM2 writes offset-syncs,
heartbeats and copies of the reverse flow to the source, so a fence is never for `*`.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence

import orjson

from sinks.faults import RightsMissing
from sinks.flow_settings import Copier, FlowSettings
from sinks.kafka.ports.acl_binding import EVERYONE, LITERAL, TOPIC, WILDCARD, AclBinding
from sinks.kafka.ports.acls import AclList
from sinks.kafka.ports.cluster import Reader
from sinks.ledger.ledger_entries import Entry
from sinks.ledger.seal import Seal, unsealed
from sinks.model.changes import DENY, Key
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition
from streaming.mm2.replication_policy import ReplicationPolicy


def is_copy(policy: ReplicationPolicy, topic: str, aliases: Collection[str]) -> bool:
    """Whether MM2 writes this topic of the source: a copy from another cluster, as its name says, or heartbeats.

    Policies that call every topic a remote one (the identity policy) cannot tell.
    """
    if policy.is_heartbeats_topic(topic):
        return True
    source, upstream = policy.topic_source(topic), policy.upstream_topic(topic)
    if source not in aliases or source is None or upstream in (None, topic):
        return False
    return upstream is not None and policy.format_remote_topic(source, upstream) == topic


def fenced_topics(
    settings: FlowSettings, remote: Mapping[str, str], aliases: Collection[str], wanted: Collection[str] = ()
) -> list[str]:
    """Returns the topics to fence, sorted: replicated ones that producers write, or of these the `wanted`.

    `remote`: names by topic of the source. Raises LockstepError for a wanted topic that is not among them."""
    found = sorted(topic for topic in remote if not is_copy(settings.policy, topic, aliases))
    if unknown := sorted(set(wanted) - set(found)):
        raise LockstepError(
            f"{', '.join(unknown)}: no topic of {settings.flow.source} that {settings.flow.name} replicates and "
            "producers write; `lockstep topics` lists those that are replicated"
        )
    return [topic for topic in found if not wanted or topic in wanted]


def check_names(settings: FlowSettings, shared: Mapping[str, str], aliases: Collection[str]) -> None:
    """Raises LockstepError if topics that producers write share a name on the target. MM2 mixes their records there, so
    copies cannot be told apart. `shared`: that name by topic."""
    mixed = {shared[topic] for topic in shared if not is_copy(settings.policy, topic, aliases)}
    if not mixed:
        return
    said = [
        f"{' and '.join(sorted(topic for topic, name in shared.items() if name == one))} would all be {one}"
        for one in sorted(mixed)
    ]
    raise LockstepError(
        f"on {settings.flow.target} {shown(said)}: their copies cannot be told apart. Leave all but one of them "
        "out (topics.exclude), or give each a name of its own in the replication policy, and run the command again"
    )


def fence_acls(topics: Iterable[str]) -> list[AclBinding]:
    """The ACLs of a fence."""
    return [AclBinding(TOPIC, topic, LITERAL, EVERYONE, WILDCARD, "WRITE", DENY) for topic in topics]


def could_be_fence(acl: AclBinding) -> bool:
    """Whether it looks like a fence's ACL. Only a ledger says that it is one."""
    # Called for every ACL in each comparison, and hardly any denies.
    return acl.permission == DENY and is_fence_key(acl.key)


def is_fence_key(key: tuple[object, ...]) -> bool:
    """Whether the key looks like a fence's ACL. Any client that writes a ledger could put other keys there."""
    name = key[1] if len(key) > 1 else WILDCARD
    return isinstance(name, str) and name != WILDCARD and key == fence_acls([name])[0].key


def topics_of(partitions: Iterable[TopicPartition]) -> list[str]:
    """Returns the partitions' topics, each once, sorted."""
    return sorted({where.topic for where in partitions})


def shown(names: Sequence[str], most: int = 10) -> str:
    """Returns a list for a message: the first few, and how many more."""
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest


MM2_COPIES_FENCE = (
    "MM2 syncs ACLs of {flow} as well (sync.topic.acls.enabled). It would copy the fence to {target}, keep out every "
    "writer there, maybe itself, and never revoke it (MirrorSourceConnector leaves out ALLOW WRITE alone)"
)
MM2_ACLS_OFF = (
    "write sync.topic.acls.enabled=false, and lockstep.sync.topic.acls.enabled=true to leave it to Lockstep, and "
    "restart MM2"
)

COPIED_FENCE: Mapping[Copier, tuple[str, str]] = {
    Copier.MM2: (MM2_COPIES_FENCE, MM2_ACLS_OFF),
    Copier.OFFSET_PRESERVING: (
        "the copier of {flow} keeps ACLs in step (lockstep.copier.keeps): it would copy the fence to {target}, and "
        "keep producers out there after the failover",
        "switch its ACL sync off, and take acl out of lockstep.copier.keeps to leave ACLs to Lockstep",
    ),
}
"""Why a fence cannot be set while the copier copies ACLs, and what to do."""

NO_AUTHORIZER = (
    "{source} has no authorizer, so that no ACL can keep producers away (client quotas cannot either: Kafka refuses "
    "one of 0). Stop the producers themselves, or close the listener or the network to them, and then say "
    "`lockstep cutover --without-fence`, which proves by the topics' ends alone that no client writes"
)

CLOSED_BY_WHOM = (
    "no client can write {topics} on {source} already. That may be the fence of {flows}, whose ledger cannot be read "
    "({why}): `unfence` of {flows} would take it away while {flow} relies on it. Run the same again once the ledger "
    "can be read. If {flows} is not fenced for certain, run it with a copy of the file that does not enable {flows}"
)

STAYS_CLOSED = (
    "the fence on {source} stays: whether {flows} relies on it as well cannot be told, for that ledger cannot be read "
    "({why}). Run the same again once it can; if {flows} is not fenced for certain, run it with a copy of the file "
    "that does not enable {flows}"
)


log = logging.getLogger(__name__)


class ReverseFences:
    """Reads the reverse flow's ledger on the source. Its content can only protect ACLs.

    Any client with write access there may have written it. So only keys that look like a fence's ACL are accepted.
    Any record protects such an ACL. Only one that `seal` trusts ends that: with a secret a signed one, else a tombstone
    of what was never signed.
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
            self._signed_at.clear()
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
                    "%s has fences that deny no WRITE on a topic. Lockstep ignores them. The first is %r",
                    self._topic,
                    rest,
                )
            self._strange = True
            return
        (self._known.discard if self._is_lifted(acl, key, value) else self._known.add)(acl)

    def _is_lifted(self, acl: Key, key: bytes, value: bytes | None) -> bool:
        """Whether a trusted record says that the fence is lifted."""
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
    """Returns the ACLs that are no fences."""
    if bindings.keys.isdisjoint(fences):
        return bindings
    return AclList(acl for acl in bindings if acl.key not in fences)
