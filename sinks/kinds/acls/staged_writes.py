"""Holds back ALLOW WRITE on the target until it takes over (`lockstep.acl.stage.writes`). Pure.

| wanted on the target       | until then  | when the target takes over |
|----------------------------|-------------|----------------------------|
| ALLOW WRITE of topics      | nothing     | as it is                   |
| ALLOW ALL of topics        | ALLOW READ  | ALLOW ALL as well          |
| everything else            | as it is    | as it is                   |

The ledger lists the ACLs that are held back, because at a failover the source may not answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial

from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.acl_binding import TOPIC, AclBinding
from sinks.kinds.acls.own_topics import danger, mm2s_topics
from sinks.kinds.acls.patterns import front_of, prefix_of
from sinks.ledger.ledger_entries import Entry, EntryKey
from sinks.model.changes import ALLOW, Key

MEANWHILE: Mapping[str, str | None] = {"WRITE": None, "ALL": "READ"}
"""What is allowed until the takeover, by wanted operation; None: nothing."""

Split = tuple[frozenset[AclBinding], frozenset[AclBinding]]


def held_back(wanted: Collection[AclBinding]) -> Split:
    """Splits the wanted ACLs into ACLs to create now and ACLs to create at the takeover."""
    later = {
        acl for acl in wanted if (acl.resource_type, acl.permission) == (TOPIC, ALLOW) and acl.operation in MEANWHILE
    }
    now = {acl for acl in wanted if acl not in later}
    now |= {replace(acl, operation=word) for acl in later if (word := MEANWHILE[acl.operation]) is not None}
    return frozenset(now), frozenset(later)


def granted_later(keys: Iterable[Key], settings: FlowSettings) -> list[AclBinding]:
    """Returns the ACLs that this flow could have held back, from `keys`, which a ledger lists as held back. Another
    client wrote the other keys into the ledger.

    These ACLs allow only writes of the flow's copies. Under a policy that keeps names any topic may be a copy.
    """
    if not settings.acls.stage_writes:
        return []
    found, mm2s, protected = list[AclBinding](), mm2s_topics(settings), settings.acls.protected
    for key in keys:
        try:
            acl = AclBinding.from_key(key)
        except ValueError:
            continue
        safe = acl.is_known and acl.principal not in protected and _covers_copies(acl, settings)
        safe = safe and not danger(acl, protected, settings.internal.on_target, mm2s)
        if safe and acl in held_back([acl])[1]:
            found.append(acl)
    return found


def _covers_copies(acl: AclBinding, settings: FlowSettings) -> bool:
    """Whether the pattern covers copies of this flow and nothing else."""
    policy, alias, prefix = settings.policy, settings.flow.source, prefix_of(acl)
    if prefix is not None:
        front = front_of(partial(policy.format_remote_topic, alias))
        return front is not None and prefix.startswith(front)
    topic = policy.upstream_topic(acl.resource_name)
    return topic is not None and policy.format_remote_topic(alias, topic) == acl.resource_name


def staged_entries(staged: Collection[AclBinding], known: Mapping[Key, str]) -> dict[EntryKey, str | None]:
    """Returns the entries to put into the ledger; None deletes one. `known`: the entries that it has now."""
    wanted = {acl.key for acl in staged}
    entries: dict[EntryKey, str | None] = {(Entry.STAGED, key): None for key in known.keys() - wanted}
    return entries | {(Entry.STAGED, key): "" for key in wanted - known.keys()}
