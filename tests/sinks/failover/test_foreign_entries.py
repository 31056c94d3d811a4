"""What another program wrote into a ledger grants no right, lifts no ACL and ends no flow."""

from __future__ import annotations

import pytest

from sinks.failover.commands import cutover, fence, unfence
from sinks.failover.fence_notes import OWNED
from sinks.failover.open_transactions import NotDrained
from sinks.faults import LedgerUntrusted
from sinks.flow_settings import AclRules
from sinks.ledger.failover_record import Command, FailoverRecord, State, Step
from sinks.ledger.ledger_entries import Entry
from tests.sinks.failover.scenes import stage
from tests.sinks.kinds.acls.acl_builders import acl


@pytest.mark.parametrize(
    "key",
    [
        ("CLUSTER", "kafka-cluster", "LITERAL", "User:mallory", "*", "ALL", "ALLOW"),
        ("TOPIC", "*", "LITERAL", "User:mallory", "*", "ALL", "ALLOW"),
        ("TOPIC", "__consumer_offsets", "LITERAL", "User:mallory", "*", "WRITE", "ALLOW"),
        ("TOPIC", "a.x", "LITERAL", "User:mallory", "*", "DELETE", "ALLOW"),
        ("TOPIC", "payments-of-b", "LITERAL", "User:mallory", "*", "ALL", "ALLOW"),
        ("TOPIC", "pay", "PREFIXED", "User:mallory", "*", "WRITE", "ALLOW"),
        ("x",),
    ],
)
def test_what_could_not_have_been_held_back_is_not_granted(key: tuple[str, ...]) -> None:
    built = stage(acls=AclRules(stage_writes=True))
    built.ledger().put({(Entry.STAGED, key): ""})
    assert cutover(built.scene()).state is State.PROMOTED
    assert built.world.target_acls.bindings == set()
    assert any("not granted" in line for line in built.said)


def test_nothing_is_granted_later_where_the_file_holds_nothing_back() -> None:
    built = stage()
    built.ledger().put({(Entry.STAGED, acl("ALLOW WRITE User:mallory TOPIC a.x").key): ""})
    assert cutover(built.scene()).state is State.PROMOTED
    assert built.world.target_acls.bindings == set()
    assert any("not granted" in line for line in built.said)


@pytest.mark.parametrize("key", [acl("DENY READ User:mallory TOPIC payroll").key, ("x",)])
def test_what_has_not_the_form_of_a_fence_is_not_lifted_whatever_the_ledger_says(key: tuple[str, ...]) -> None:
    built = stage()
    fence(built.scene())
    foreign = acl("DENY READ User:mallory TOPIC payroll")
    built.world.source_acls.bindings.add(foreign)
    built.ledger().put({(Entry.FENCE, key): OWNED})
    unfence(built.scene())
    assert built.world.source_acls.bindings == {foreign}


def test_a_promotion_that_a_ledger_calls_half_done_still_insists_that_everything_is_copied() -> None:
    built = stage()
    built.mirrors = False
    built.write("x", 0, 7)
    forged = FailoverRecord(State.DRAINED, Command.PROMOTE, (Step.KEEP_DIVERGENCE,), without_fence=True)
    built.ledger().put({(Entry.FAILOVER, ("state",)): forged.to_text()})
    with pytest.raises(NotDrained, match="7 records of x"):
        cutover(built.scene())


@pytest.mark.parametrize(
    "forged",
    [
        FailoverRecord(State.MIRRORING, Command.PROMOTE),
        FailoverRecord(State.DRAINED, Command.PROMOTE, (Step.AWAIT_RECORDS,)),
        FailoverRecord(State.DRAINED, None, (Step.LAST_OFFSETS,)),
    ],
)
def test_a_record_that_no_command_leads_to_stops_the_flow(forged: FailoverRecord) -> None:
    built = stage()
    built.ledger().put({(Entry.FAILOVER, ("state",)): forged.to_text()})
    with pytest.raises(LedgerUntrusted):
        built.record()
