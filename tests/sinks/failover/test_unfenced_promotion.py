"""A promotion that cannot come to its end is taken back as long as no client was granted WRITE on the target."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

import pytest

from sinks.failover.commands import cutover, promote, unfence
from sinks.flow_settings import AclRules
from sinks.ledger.failover_record import NotNow, State, Step
from sinks.ledger.kept_divergences import divergences
from sinks.ledger.ledger_entries import Entry
from streaming.errors import LockstepError
from tests.sinks.failover.scenes import Died, Stage, mortal, stage
from tests.sinks.kinds.acls.acl_builders import acl

HELD_BACK = acl("ALLOW WRITE User:app TOPIC a.x")


def staged() -> Stage:
    """With a right to write that is held back until the promotion."""
    built = stage(acls=AclRules(stage_writes=True))
    built.ledger().put({(Entry.STAGED, HELD_BACK.key): ""})
    return built


def refused(after: int) -> Callable[[Collection[str], Collection[str]], str]:
    """Refused once they were written so often."""
    written = list[str]()

    def write(copies: Collection[str]) -> str:
        if len(written) >= after:
            raise LockstepError("the groups' last offsets cannot be written")
        written.append("")
        return ""

    return write


def test_a_flow_whose_last_offsets_are_refused_for_good_can_be_unfenced_and_cut_over_another_day() -> None:
    built = staged()
    with pytest.raises(LockstepError, match="last offsets"):
        cutover(replace(built.scene(), last_offsets=refused(after=1)))
    assert built.record().has_ended
    assert unfence(built.scene()).state is State.MIRRORING
    assert (built.record().has_ended, built.world.source_acls.bindings) == (False, set())
    assert (built.world.target_acls.bindings, divergences(built.ledger())) == (set(), {})
    assert built.ledger().values(Entry.STAGED) == {HELD_BACK.key: ""}
    assert cutover(built.scene()).state is State.PROMOTED
    assert built.world.target_acls.bindings == {HELD_BACK}


@pytest.mark.parametrize("after", [False, True])
def test_once_rights_may_be_granted_it_is_said_what_to_do_instead_and_nothing_is_lifted(after: bool) -> None:
    built = staged()
    with pytest.raises(Died):
        cutover(mortal(built.scene(), Step.GRANT_WRITES, after=after))
    fenced = set(built.world.source_acls.bindings)
    with pytest.raises(NotNow, match=r"`lockstep promote` reports, and run it again.*Then `lockstep failback`"):
        unfence(built.scene())
    assert built.world.source_acls.bindings == fenced
    assert promote(built.scene()).state is State.PROMOTED
