"""Records that come to the source after a flow was drained: noticed, or copied all the same."""

from __future__ import annotations

import pytest

from sinks.failover.commands import cutover, drain, fence, promote
from sinks.failover.open_transactions import NotDrained
from sinks.ledger.failover_record import Command, FailoverRecord, State
from tests.sinks.failover.scenes import stage


def test_a_record_that_came_after_the_drain_keeps_the_flow_from_being_promoted() -> None:
    built = stage()
    fence(built.scene())
    drain(built.scene())
    built.mirrors = False
    built.write("x", super_user=True)
    with pytest.raises(NotDrained):
        promote(built.scene())
    assert not built.record().has_ended


def test_a_record_that_came_after_the_drain_and_was_copied_since_does_not() -> None:
    built = stage()
    fence(built.scene())
    drain(built.scene())
    built.write("x", super_user=True)
    built.copy()
    assert promote(built.scene()).state is State.PROMOTED


def test_a_record_that_comes_while_the_flow_ends_stops_the_promotion_until_it_is_copied() -> None:
    built = stage()
    built.mirrors = False

    def told(before: FailoverRecord, after: FailoverRecord) -> None:
        if after.doing is Command.PROMOTE:
            built.write("y", 0, 5, super_user=True)

    with pytest.raises(NotDrained, match=r"`promote` is half done: 5 records of y are not on the target"):
        cutover(built.scene(on_state=told))
    assert (built.record().state, built.record().doing) == (State.DRAINED, Command.PROMOTE)
    built.copy()
    assert cutover(built.scene()).state is State.PROMOTED
