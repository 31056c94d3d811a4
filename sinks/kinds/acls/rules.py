"""ACLs (KIP-965): which the target should have, and the difference. Pure.

| on the source                  | `sync.topic.acls.enabled` alone: MM2's  | `sync.full.acl.enabled=true`             |
|--------------------------------|-----------------------------------------|------------------------------------------|
| topic, literal, replicated     | but ALLOW WRITE; ALLOW ALL becomes READ | every operation                          |
| topic, literal, not replicated | never                                   | never, but for a DENY beneath a prefix   |
| topic, prefix                  | never                                   | if it covers replicated topics, or would |
| topic, wildcard `*`            | as if it were a name                    | like a prefix of no letters              |
| group, transactional id        | never                                   | as it is, for principals found above     |
| the same, DENY of `*`          | never                                   | only if the file asks for it             |
| cluster, token, user           | never                                   | never                                    |
| anything that is UNKNOWN       | never                                   | never                                    |

What is left out is counted by its reason. What a pattern is called on the target: `patterns`. MM2's rules come
from `MirrorSourceConnector.syncTopicAcls`; its wildcard becomes the name `a.*`, which no topic has. For literal
names both modes ask the topic filter, as MM2 does, and not whether the topic exists: one that is missing for a moment
costs no ACL.

A prefix counts where it covers a replicated topic, or where the filter would let one more topic of it through: an
empty cluster needs it as well. Other prefixes are left out: under the identity policy they would open topics of the
target's own. For the same reason a DENY of topics that are not replicated goes along where a prefix above it does.

In both modes Lockstep withholds an ALLOW whose pattern would cover Kafka's or Lockstep's own topics on the target. It
also withholds a DENY for everybody, which would lock the job out. Withheld is neither created nor deleted, and refused
with its reason where the target has no such ACL. Principals that are protected, the job's own above all, are left out
altogether.

`User:*` holds for every principal. So its group ACLs go along with any principal's topics, and every principal's group
ACLs with its topics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from sinks.flow_settings import AclRules
from sinks.kafka.ports.acl_binding import (
    CLUSTER,
    DELEGATION_TOKEN,
    EVERYONE,
    GROUP,
    LITERAL,
    TOPIC,
    TRANSACTIONAL_ID,
    UNKNOWN,
    USER,
    AclBinding,
)
from sinks.kinds.acls.own_topics import danger, wide_deny, wide_notes
from sinks.kinds.acls.patterns import Pattern, SourceTopics, TopicPatterns, prefix_of
from sinks.kinds.acls.staged_writes import held_back
from sinks.model.changes import ALLOW, DENY, Change, Key, Kind, Op
from sinks.model.plan import Refusal

NEVER_WRITTEN: Mapping[str, str] = {
    CLUSTER: "cluster",
    DELEGATION_TOKEN: "delegation-token",
    USER: "user",
    UNKNOWN: "unknown",
}
"""Types of resources that Lockstep does not write in either mode, each with the reason under which it counts them."""

NEVER_BY_MM2: Mapping[str, str] = {GROUP: "group", TRANSACTIONAL_ID: "transactional-id"}

MM2_OPERATIONS: Mapping[tuple[str, str], str | None] = {(ALLOW, "WRITE"): None, (ALLOW, "ALL"): "READ"}
"""The operation that MM2 writes in place of another, by permission and operation; None: it leaves the ACL out. Other
operations stay."""

NO_FRONT = (
    "the replication policy puts no common text before the names of topics, so {} has no counterpart on the target. "
    "Use literal ACLs on the source, or grant it on the target by hand"
)


PRINCIPAL_FIELD = Kind.ACL.row.key_fields.index("principal")


@dataclass
class DesiredAcls:
    """The ACLs that the target should have."""

    wanted: set[AclBinding] = field(default_factory=set)
    skipped: Counter[str] = field(default_factory=Counter)
    """Number of ACLs that are not synced, by reason."""
    refused: list[Refusal] = field(default_factory=list)
    """ACLs that cannot be translated."""
    principals: dict[str, str] = field(default_factory=dict)
    """Name on the target by name on the source, of principals whose ACLs are synced."""
    notes: tuple[str, ...] = ()
    """Notes about patterns that cover topics that are not replicated."""
    withheld: dict[Key, str] = field(default_factory=dict)
    """Why Lockstep neither creates nor deletes an ACL, by its key on the target."""
    staged: frozenset[AclBinding] = frozenset()
    """ACLs that Lockstep creates once the target takes over."""

    def refusals(self, existing: AbstractSet[Key]) -> list[Refusal]:
        """Returns the refusals, without ACLs that the target has already. `existing`: keys on the target."""
        missing = ((key, reason) for key, reason in self.withheld.items() if key not in existing)
        return [*self.refused, *(Refusal(Kind.ACL, Op.CREATE, key, reason) for key, reason in missing)]


def desired_acls(bindings: Iterable[AclBinding], rules: AclRules, topics: SourceTopics) -> DesiredAcls:
    """Returns the source's ACLs translated to the target, by the table above. `bindings`: all ACLs of the source."""
    translation = _Translation(rules, topics)
    (translation.fully if rules.full else translation.like_mm2)(bindings)
    desired = replace(translation.found, notes=tuple(sorted(set(translation.notes))))
    if not rules.stage_writes:
        return desired
    now, later = held_back(desired.wanted)
    skipped = desired.skipped + Counter({"held-back WRITE": len(later)})
    return replace(desired, wanted=set(now), staged=later, skipped=skipped)


def plan_acls(
    desired: DesiredAcls, target: AbstractSet[AclBinding], owned: AbstractSet[Key], deletes: bool
) -> list[Change]:
    """Returns the ACLs to create and to delete. `owned`: keys of ACLs that Lockstep created; it deletes no other
    ACL."""
    changes = [Change(Kind.ACL, acl.key, None, acl.permission) for acl in desired.wanted - target]
    if deletes and owned:
        surplus = (acl for acl in target - desired.wanted if acl.key in owned and acl.key not in desired.withheld)
        changes += [Change(Kind.ACL, acl.key, acl.permission, None) for acl in surplus]
    return changes


def deletable(owned: Iterable[Key], rules: AclRules) -> set[Key]:
    """Returns the keys of owned ACLs, without the keys of protected principals."""
    return {key for key in owned if key[PRINCIPAL_FIELD] not in rules.protected}


class _Translation:
    """One translation of the source's ACLs."""

    def __init__(self, rules: AclRules, topics: SourceTopics) -> None:
        self._rules, self._topics, self._patterns = rules, topics, TopicPatterns(topics)
        self.found, self.notes = DesiredAcls(), list[str]()
        self._seen: dict[str, list[Pattern]] = {}
        self._synced: dict[str, bool] = {}
        self._mapped: dict[str, str | None] = {}

    def like_mm2(self, bindings: Iterable[AclBinding]) -> None:
        """Translate the ACLs as MM2 does: literal topic ACLs only."""
        for acl in self._of_principals(bindings):
            operation = MM2_OPERATIONS.get((acl.permission, acl.operation), acl.operation)
            if acl.resource_type in NEVER_BY_MM2:
                self.found.skipped[NEVER_BY_MM2[acl.resource_type]] += 1
            elif acl.pattern_type != LITERAL:
                self.found.skipped["prefixed"] += 1
            elif operation is None:
                self.found.skipped["write"] += 1
            elif not self._topics.replicates(acl.resource_name):
                self.found.skipped["not-replicated"] += 1
            else:
                self._want(acl, (self._topics.rename(acl.resource_name), LITERAL), operation)

    def fully(self, bindings: Iterable[AclBinding]) -> None:
        """Translate topics first: they say whose groups and transactional ids matter."""
        acls = list(self._of_principals(bindings))
        patterns = {prefix for acl in acls if acl.resource_type == TOPIC and (prefix := prefix_of(acl)) is not None}
        prefixes = {prefix for prefix in patterns if self._patterns.is_replicated(prefix)}
        on_topics = {acl for acl in acls if acl.resource_type == TOPIC and self._concerns(acl, prefixes)}
        found = {acl.principal for acl in on_topics}
        for acl in acls:
            if acl in on_topics:
                self._want_topic(acl)
            elif acl.resource_type == TOPIC:
                self.found.skipped["not-replicated"] += 1
            elif acl.principal in found or EVERYONE in found or (found and acl.principal == EVERYONE):
                self._want_as_it_is(acl)
            else:
                self.found.skipped["no-topic"] += 1

    def _of_principals(self, bindings: Iterable[AclBinding]) -> Iterator[AclBinding]:
        """Yields the ACLs of synced principals that may be written at all."""
        for acl in bindings:
            if not acl.is_known or acl.resource_type in NEVER_WRITTEN:
                self.found.skipped[NEVER_WRITTEN.get(acl.resource_type, "unknown")] += 1
            elif not self._is_synced(acl.principal):
                self.found.skipped["principal"] += 1
            elif (mapped := self._mapped[acl.principal]) is None:
                self.found.skipped["unmapped"] += 1
            elif mapped in self._rules.protected:
                self.found.skipped["protected"] += 1
            else:
                yield acl

    def _is_synced(self, principal: str) -> bool:
        # Thousands of ACLs share a few principals: each is filtered and mapped once.
        if principal not in self._synced:
            self._synced[principal] = self._rules.principals.should_sync(principal)
            self._mapped[principal] = self._rules.mapping.map(principal)
        return self._synced[principal]

    def _concerns(self, acl: AclBinding, prefixes: AbstractSet[str]) -> bool:
        """Whether the target needs this ACL of topics."""
        prefix = prefix_of(acl)
        if prefix in prefixes or (prefix is None and self._topics.replicates(acl.resource_name)):
            return True
        name = acl.resource_name if prefix is None else prefix
        return acl.permission == DENY and self._opened(name, prefixes)

    def _opened(self, name: str, prefixes: AbstractSet[str]) -> bool:
        """Whether a copied prefix covers these topics too. Topics that came from the target do not count."""
        above = any(name[:length] in prefixes for length in range(len(name) + 1))
        return above and not self._topics.comes_back(f"{name}t")

    def _want_topic(self, acl: AclBinding) -> None:
        prefix = prefix_of(acl)
        if prefix is None:
            self._want(acl, (self._topics.rename(acl.resource_name), LITERAL), acl.operation)
            return
        translated = self._translated(prefix)
        for pattern in translated:
            self._want(acl, pattern, acl.operation)
        if not translated:
            reason = NO_FRONT.format("the wildcard *" if not prefix else f"the prefix {prefix}")
            self.found.refused.append(Refusal(Kind.ACL, Op.CREATE, acl.key, reason))

    def _want_as_it_is(self, acl: AclBinding) -> None:
        """Want an ACL of groups or transactional ids unchanged, because their names are the same on the target."""
        if (reason := wide_deny(acl)) and not self._rules.wildcard_denies:
            self.found.withheld[self._there(acl, (acl.resource_name, acl.pattern_type), acl.operation).key] = reason
            return
        self._want(acl, (acl.resource_name, acl.pattern_type), acl.operation)
        self.notes += wide_notes(acl, self._topics.flow.source)

    def _translated(self, prefix: str) -> list[Pattern]:
        if prefix not in self._seen:
            self._seen[prefix] = self._patterns.translated(prefix)
            self.notes += self._patterns.notes(prefix)
        return self._seen[prefix]

    def _want(self, acl: AclBinding, pattern: Pattern, operation: str) -> None:
        there = self._there(acl, pattern, operation)
        if reason := danger(there, self._rules.protected, self._topics.ours, self._topics.mm2s):
            self.found.withheld[there.key] = reason
        else:
            self.found.wanted.add(there)

    def _there(self, acl: AclBinding, pattern: Pattern, operation: str) -> AclBinding:
        """Returns an ACL as the target should have it. Its principal is a synced one."""
        principal = self._mapped[acl.principal] or acl.principal
        self.found.principals[acl.principal] = principal
        return AclBinding(acl.resource_type, *pattern, principal, acl.host, operation, acl.permission)
