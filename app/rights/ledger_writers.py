"""Who may write a flow's ledger, as the target's ACLs have it. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from sinks.engine.model import ALLOW
from sinks.kafka.ports.acl_binding import LITERAL, PREFIXED, TOPIC, WILDCARD, AclBinding

WRITING = frozenset({"ALL", "WRITE", "ALTER", "ALTER_CONFIGS", "DELETE"})
"""Operations that change what the ledger says, or make it forget."""


def ledger_writers(topic: str, bindings: Iterable[AclBinding]) -> list[str]:
    """The principals that an ALLOW lets do one of these, sorted; a DENY beside it is not counted in.

    Super users may as well, and no client sees who they are.
    """
    return sorted({acl.principal for acl in bindings if _writes(acl, topic)})


def _writes(acl: AclBinding, topic: str) -> bool:
    covers = (acl.pattern_type == LITERAL and acl.resource_name in (topic, WILDCARD)) or (
        acl.pattern_type == PREFIXED and topic.startswith(acl.resource_name)
    )
    return acl.resource_type == TOPIC and acl.permission == ALLOW and acl.operation in WRITING and covers
