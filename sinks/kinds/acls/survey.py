"""Translates the source's ACLs, and tells the principals that they name and the ACLs that the settings leave out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from sinks.every_kind.listing import Listed
from sinks.flow_settings import AclRules, FlowSettings
from sinks.kafka.ports.acl_binding import EVERYONE, LITERAL, TOPIC, AclBinding
from sinks.kafka.ports.acls import AclList, AclReader
from sinks.kinds.acls.own_topics import mm2s_topics
from sinks.kinds.acls.patterns import SourceTopics, covers_any
from sinks.kinds.acls.rules import DesiredAcls, desired_acls
from sinks.kinds.desired_topics import is_replicated, may_be_foreign
from sinks.model.principals import PrincipalFilter
from streaming.message_words import number_of


def source_topics(settings: FlowSettings, listed: Listed) -> SourceTopics:
    """Returns the facts about the source's topics that the rules need."""
    return SourceTopics(
        flow=settings.flow,
        policy=settings.policy,
        replicates=lambda topic: is_replicated(settings, topic) and not may_be_foreign(settings, topic),
        remote=listed.desired.kept,
        names=listed.source.keys(),
        target=listed.target.keys(),
        ours=settings.internal.on_target,
        mm2s=mm2s_topics(settings),
    )


def translate(bindings: AclList, settings: FlowSettings, listed: Listed) -> DesiredAcls:
    """Returns the source's ACLs translated to the target."""
    return desired_acls(bindings, settings.acls, source_topics(settings, listed))


def principals_of(
    settings: FlowSettings, source: AclReader, listed: Listed, *, afresh: bool = False
) -> Mapping[str, str] | None:
    """Returns the principals whose ACLs would be synced; None if the source shows none. `afresh`: ask the source now.
    Raises as `AclReader.describe`."""
    bindings = AclList(source.describe()) if afresh else source.recent()
    if not (bindings and listed.source):
        return None
    return translate(bindings, settings, listed).principals


@dataclass(frozen=True)
class PrincipalsOfAcls:
    """Principals that the source's ACLs name."""

    all: Mapping[str, str]
    """Name on the target by name on the source, of all principals."""
    synced: Mapping[str, str]
    """The same, of principals with synced ACLs."""
    held: Collection[str]
    """Names on the target of principals that only the settings leave out."""


def named_principals(
    settings: FlowSettings, source: AclReader, listed: Listed, asked: Collection[str]
) -> PrincipalsOfAcls | None:
    """Returns the principals of the source's ACLs, read now; None if the source shows none. `asked`: principals of the
    target that only the settings may leave out. Raises as `AclReader.describe`."""
    bindings, topics = source.describe(), source_topics(settings, listed)
    if not (bindings and listed.source):
        return None
    there = {one: settings.acls.mapping.map(one) for one in {acl.principal for acl in bindings}}
    synced = desired_acls(bindings, settings.acls, topics).principals
    # Whom the target has no ACL of (a person removed them there, say) the source may have all the same.
    held = {acl.principal for acl in held_by_source(bindings, settings.acls, topics, None, asked)}
    return PrincipalsOfAcls({one: name for one, name in there.items() if name is not None}, synced, held)


class KeptTranslation:
    """Translates like `translate`, and returns its last result again for the same arguments."""

    def __init__(self) -> None:
        self._asked: tuple[AclList, Listed] | None = None
        self._answer = DesiredAcls()

    def __call__(self, bindings: AclList, settings: FlowSettings, listed: Listed) -> DesiredAcls:
        if self._asked is None or self._asked[0] is not bindings or self._asked[1] != listed:
            self._asked, self._answer = (bindings, listed), translate(bindings, settings, listed)
        return self._answer

    def forget(self) -> None:
        """Forget the last result, because filters and mappings may have changed."""
        self._asked = None


# ACLs of the source that the settings leave out: by MM2's rules for ACLs, or by a filter. Pure.


def left_out(bindings: Collection[AclBinding], rules: AclRules, topics: SourceTopics) -> str:
    """Returns a text that names the ACLs that `sync.full.acl.enabled` (KIP-965) would also sync; "" if it is on.

    Leaves out ACLs that neither mode syncs: of the cluster, of topics that are not replicated, of excluded principals.
    `bindings`: all ACLs of the source.
    """
    if rules.full:
        return ""
    now = replace(rules, stage_writes=False)
    full = desired_acls(bindings, replace(now, full=True), topics).wanted
    missing = full - desired_acls(bindings, now, topics).wanted
    if not missing:
        return ""
    counts = Counter(map(_named, missing))
    named = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    return f"{number_of(len(missing), 'ACL')} that applications have ({named}): sync.full.acl.enabled=true keeps them"


def _named(acl: AclBinding) -> str:
    if acl.resource_type != TOPIC:
        return f"of a {acl.resource_type.lower().replace('_', ' ')}"
    return acl.operation if acl.pattern_type == LITERAL else "prefixed"


def held_by_source(
    bindings: Collection[AclBinding],
    rules: AclRules,
    topics: SourceTopics,
    existing: AbstractSet[AclBinding] | None,
    principals: Collection[str],
    reading: Collection[str] = (),
) -> set[AclBinding]:
    """Returns the ACLs that the target would have without any filter, because the source has them. Looks only at
    `principals` (of the target) and at `User:*`, because all ACLs of a large cluster take long.

    `existing`: count only ACLs that the target has, and ACLs of topics that have a copy there; None: count all. An
    operator may have removed the ACL alone.

    An ACL of groups counts only if an ACL of topics of the same principal counts, because an application that reads no
    replicated topic needs no group. `reading`: principals that keep an ACL of topics on the target in any case.
    """
    if EVERYONE not in principals:
        chosen = {*principals, EVERYONE}
        mapped = {one: rules.mapping.map(one) for one in {acl.principal for acl in bindings}}
        bindings = [acl for acl in bindings if mapped[acl.principal] in chosen]
    unfiltered = replace(rules, principals=PrincipalFilter())
    everything = replace(topics, replicates=lambda topic: not topics.comes_back(topic))
    copies = sorted(topics.target)
    kept = {
        acl
        for one in (unfiltered, replace(unfiltered, full=True, stage_writes=False))
        for acl in desired_acls(bindings, one, everything).wanted
        if existing is None or acl in existing or (acl.resource_type == TOPIC and covers_any(acl, copies))
    }
    readers = {acl.principal for acl in kept if acl.resource_type == TOPIC}.union(reading)
    everyone = EVERYONE in readers
    if readers:
        # Every reader may use the groups that User:* may.
        readers.add(EVERYONE)
    return {acl for acl in kept if acl.resource_type == TOPIC or everyone or acl.principal in readers}
