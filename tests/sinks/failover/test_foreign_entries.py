"""What somebody else wrote into a ledger gives nobody a right, lifts no ACL and ends no flow."""

from __future__ import annotations

import pytest

from sinks.engine.ledger_entries import Entry
from sinks.failover.commands import cutover, fence, unfence
from sinks.failover.states import State
from tests.sinks.failover.scenes import stage
from tests.sinks.kinds.acls.acl_builders import acl


@pytest.mark.parametrize(
    "key",
    [
        ("CLUSTER", "kafka-cluster", "LITERAL", "User:mallory", "*", "ALL", "ALLOW"),
        ("TOPIC", "*", "LITERAL", "User:mallory", "*", "ALL", "ALLOW"),
        ("TOPIC", "__consumer_offsets", "LITERAL", "User:mallory", "*", "WRITE", "ALLOW"),
        ("TOPIC", "a.x", "LITERAL", "User:mallory", "*", "DELETE", "ALLOW"),
        ("x",),
    ],
)
def test_what_could_not_have_been_held_back_is_not_granted(key: tuple[str, ...]) -> None:
    built = stage()
    built.ledger().put({(Entry.STAGED, key): ""})
    assert cutover(built.scene()).state is State.PROMOTED
    assert built.world.target_acls.bindings == set()
    assert any("not granted" in line for line in built.said)


@pytest.mark.parametrize("key", [acl("DENY READ User:mallory TOPIC payroll").key, ("x",)])
def test_what_has_not_the_form_of_a_fence_is_not_lifted_whatever_the_ledger_says(key: tuple[str, ...]) -> None:
    built = stage()
    fence(built.scene())
    foreign = acl("DENY READ User:mallory TOPIC payroll")
    built.world.source_acls.bindings.add(foreign)
    built.ledger().put({(Entry.FENCE, key): ""})
    unfence(built.scene())
    assert built.world.source_acls.bindings == {foreign}
