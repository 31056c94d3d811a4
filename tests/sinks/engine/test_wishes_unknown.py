"""What of a flow is not known that does not say what it wants: it is held, and left as it is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sinks.every_kind.wishes import NOT_KNOWN, STOPPED
from sinks.ledger.failover_record import FailoverRecord, State
from sinks.ledger.ledger_entries import Entry, EntryKey
from sinks.model.changes import Change, Kind
from sinks.model.principals import ADOPT, NamedPrincipals
from tests.memory.memory_users import Stored
from tests.sinks.engine.test_wishes import AL, ALICE, GROUP, passes, restarted, two_worlds


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


PAUSED: tuple[EntryKey, str] = (Entry.PAUSED, (Kind.ACL.value,)), ""
ENDED: tuple[EntryKey, str] = (Entry.FAILOVER, ("state",)), FailoverRecord(State.PROMOTED).to_text()


@pytest.mark.parametrize("stopped", [PAUSED, ENDED])
def test_after_a_restart_what_a_stopped_flow_may_want_stays_and_the_refusal_says_how_to_go_on(
    stopped: tuple[EntryKey, str],
) -> None:
    one, other = two_worlds()
    passes(one, other)
    entry, value = stopped
    other.ledger().put({entry: value})
    restarted(one, other)
    one.source_acls.bindings.remove(GROUP)
    passes(one, other)
    refused = one.run_pass(after=600.0).plan.refused
    assert [(refusal.key, refusal.reason) for refusal in refused] == [(GROUP.key, STOPPED.format("c->b"))]
    assert GROUP in one.target_acls.bindings
    one.wishes.withdraw(other.settings.flow, Kind.ACL)
    passes(one)
    assert GROUP not in one.target_acls.bindings


@pytest.mark.parametrize("stopped", [PAUSED, ENDED])
def test_after_a_restart_a_stopped_flow_that_never_wanted_anything_holds_nobody_up(
    stopped: tuple[EntryKey, str],
) -> None:
    one, other = two_worlds()
    other.source_acls.bindings = set()
    passes(one, other)
    entry, value = stopped
    other.ledger().put({entry: value})
    restarted(one, other)
    one.source_acls.bindings.remove(GROUP)
    passes(one, other)
    assert GROUP not in one.target_acls.bindings


def test_kind_that_is_resumed_says_again_what_it_wants() -> None:
    one, other = two_worlds()
    passes(one, other)
    entry, value = PAUSED
    other.ledger().put({entry: value})
    restarted(one, other)
    for world in (one, other):
        world.source_acls.bindings.remove(GROUP)
    passes(one, other)
    assert GROUP in one.target_acls.bindings
    other.ledger().put({entry: None})
    passes(other, one, after=600.0)
    assert GROUP not in one.target_acls.bindings


def test_what_a_flow_wants_that_was_paused_from_the_start_is_unknown_from_its_resumption_on() -> None:
    one, other = two_worlds()
    other.ledger().put({PAUSED[0]: PAUSED[1]})
    restarted(one, other)
    passes(one, other)
    wishes, flow = one.wishes, other.settings.flow
    delete = Change(Kind.ACL, GROUP.key, "", None)
    assert wishes.hold(one.settings.flow, [delete])[1] == []
    other.ledger().put({PAUSED[0]: None})
    wishes.stop(flow, (), other.ledger())
    assert [refusal.reason for refusal in wishes.hold(one.settings.flow, [delete])[1]] == [NOT_KNOWN.format(flow.name)]
