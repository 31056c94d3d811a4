"""ACLs of the source that the settings leave out: by MM2's rules for ACLs, or by a filter. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from collections.abc import Set as AbstractSet
from dataclasses import replace

from sinks.flow_settings import AclRules
from sinks.kafka.ports.acl_binding import EVERYONE, LITERAL, TOPIC, AclBinding
from sinks.kinds.acls.patterns import SourceTopics
from sinks.kinds.acls.principals import PrincipalFilter
from sinks.kinds.acls.rules import desired_acls
from streaming.number_of import number_of


def left_out(bindings: Collection[AclBinding], rules: AclRules, topics: SourceTopics) -> str:
    """What `sync.full.acl.enabled` (KIP-965) would keep on the target besides, in words; empty where it is on.

    ACLs that no mode keeps there (of the cluster, of topics that are not replicated, of principals that are left out)
    are not among them. `bindings`: all that the source has.
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
) -> set[AclBinding]:
    """What the target would have without any filter: the source has it. Of these principals of the target, and of
    everybody: to translate all of tens of thousands takes long.

    `existing`: counts only what the target has; None: whatever it has.

    ACLs of groups count where an ACL of topics does of the same principal: an application that reads no replicated
    topic any more needs them no more, whatever it has on others.
    """
    if EVERYONE not in principals:
        chosen = {*principals, EVERYONE}
        mapped = {one: rules.mapping.map(one) for one in {acl.principal for acl in bindings}}
        bindings = [acl for acl in bindings if mapped[acl.principal] in chosen]
    unfiltered = replace(rules, principals=PrincipalFilter())
    everything = replace(topics, replicates=lambda topic: not topics.comes_back(topic))
    kept = {
        acl
        for one in (unfiltered, replace(unfiltered, full=True, stage_writes=False))
        for acl in desired_acls(bindings, one, everything).wanted
        if existing is None or acl in existing
    }
    readers = {acl.principal for acl in kept if acl.resource_type == TOPIC}
    everyone = EVERYONE in readers
    return {
        acl
        for acl in kept
        if acl.resource_type == TOPIC or everyone or acl.principal in readers or (readers and acl.principal == EVERYONE)
    }
