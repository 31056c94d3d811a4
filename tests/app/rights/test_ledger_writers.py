"""Who may write the ledger: every principal with an ALLOW on the topic's name, a prefix of it, or all topics."""

from __future__ import annotations

import pytest

from app.cli.rights_command import ledger_writers
from sinks.kafka.ports.acl_binding import AclBinding

LEDGER = "lockstep-ledger.a.internal"


def acl(
    name: str = LEDGER, pattern: str = "LITERAL", operation: str = "WRITE", permission: str = "ALLOW", of: str = "TOPIC"
) -> AclBinding:
    return AclBinding(of, name, pattern, "User:x", "*", operation, permission)


@pytest.mark.parametrize(
    "found",
    [
        acl(),
        acl("*"),
        acl("lockstep-", "PREFIXED"),
        *(acl(operation=one) for one in ("ALL", "DELETE", "ALTER_CONFIGS")),
    ],
)
def test_principal_that_may_change_the_ledger_is_named_once(found: AclBinding) -> None:
    assert ledger_writers(LEDGER, [found, found]) == ["User:x"]


@pytest.mark.parametrize(
    "found",
    [
        acl("lockstep-audit.a.internal"),
        acl("lockstep-", "LITERAL"),
        acl("other-", "PREFIXED"),
        acl(operation="READ"),
        acl(permission="DENY"),
        acl(of="GROUP"),
    ],
)
def test_others_are_not(found: AclBinding) -> None:
    assert ledger_writers(LEDGER, [found]) == []
