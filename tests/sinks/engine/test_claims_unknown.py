"""What of a flow is not known that does not say what it wants: it is held, and left as it is."""

from __future__ import annotations

from dataclasses import replace

from sinks.engine.model import Kind
from sinks.kafka.memory.memory_users import Stored
from sinks.kinds.acls.principals import ADOPT, NamedPrincipals
from tests.sinks.engine.test_claims import AL, ALICE, passes, restarted, two_worlds


def test_after_a_restart_a_source_without_users_leaves_the_passwords_of_those_whom_its_flow_adopted() -> None:
    one, other = two_worlds(Kind.SCRAM_USER)
    one.target_users.stored = {user: Stored(4096, "by hand") for user in (ALICE, AL)}
    acls = replace(other.settings.acls, adopted=NamedPrincipals(ADOPT, "al.*"))
    other.settings = replace(other.settings, acls=acls)
    one.provider.known = dict.fromkeys(("alice", "al"), ("password of a", "2"))
    other.provider.known = dict.fromkeys(("alice", "al"), ("password of c", "1"))
    restarted(one, other)
    passes(one, other)
    assert {stored.password for stored in one.target_users.stored.values()} == {"password of c"}
    restarted(one, other)
    other.source_users.stored = {}
    passes(other, one)
    assert {stored.password for stored in one.target_users.stored.values()} == {"password of c"}
