"""Records that come to the source after a flow was drained: noticed, or copied all the same."""

from __future__ import annotations

import pytest

from sinks.failover.commands import drain, fence, promote
from sinks.failover.states import State
from sinks.failover.steps import NotDrained
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
