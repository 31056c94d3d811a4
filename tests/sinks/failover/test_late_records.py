"""Records that come to the source after a flow was drained: noticed, or copied all the same."""

from __future__ import annotations

import pytest

from sinks.failover.commands import cutover, drain, fence, promote
from sinks.failover.open_transactions import NotDrained
from sinks.ledger.failover_record import Command, State, Step
from sinks.ledger.kept_divergences import divergences
from streaming.mm2.records import TopicPartition
from tests.sinks.failover.scenes import before_step, stage


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

    def late() -> None:
        built.write("y", 0, 5, super_user=True)

    with pytest.raises(NotDrained, match=r"`promote` is half done: 5 records of y are not on the target"):
        cutover(before_step(built.scene(), Command.PROMOTE, Step.KEEP_DIVERGENCE, late))
    assert (built.record().state, built.record().doing) == (State.DRAINED, Command.PROMOTE)
    built.copy()
    assert cutover(built.scene()).state is State.PROMOTED


def test_a_record_that_comes_while_offsets_are_written_keeps_its_topic_from_being_drained() -> None:
    built = stage()
    built.mirrors = False

    def late() -> None:
        built.write("x", 0, 1, super_user=True)

    fence(built.scene(), ("x",))
    with pytest.raises(NotDrained, match="`cutover` is half done: 1 record of x is not on the target"):
        drain(before_step(built.scene(), Command.DRAIN, Step.KEEP_DIVERGENCE, late))
    assert (built.record().state, divergences(built.ledger())) == (State.FENCED, {})


def test_a_copy_whose_end_is_unknown_is_not_drained() -> None:
    """Else its later end would say how far MM2 copied, and moved clients write behind it."""
    built, copy = stage(), TopicPartition("a.x", 0)

    def lose_leader() -> None:
        built.there.leaderless.add(copy)

    fence(built.scene(), ("x",))
    with pytest.raises(NotDrained):
        drain(before_step(built.scene(), Command.DRAIN, Step.KEEP_DIVERGENCE, lose_leader))
    built.there.leaderless.clear()
    assert (built.record().state, divergences(built.ledger())) == (State.FENCED, {})
    drain(built.scene())
    assert list(divergences(built.ledger())["x"].ends) == [10, 10]
