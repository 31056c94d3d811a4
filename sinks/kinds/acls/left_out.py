"""ACLs that applications have on the source and that MM2's rules for ACLs leave out: for who fails over. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace

from sinks.flow_settings import AclRules
from sinks.kafka.ports.acl_binding import LITERAL, TOPIC, AclBinding
from sinks.kinds.acls.patterns import SourceTopics
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
