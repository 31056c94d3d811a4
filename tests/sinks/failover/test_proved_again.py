"""A command that goes on where an earlier one was sees first that no client writes by now."""

from __future__ import annotations

import pytest

from sinks.failover.commands import cutover, drain, fence, promote
from sinks.failover.fence_proof import FenceBroken
from sinks.ledger.failover_record import NotNow, State
from tests.sinks.failover.scenes import Stage, stage


def writing(built: Stage) -> Stage:
    """Producers were started again; MM2 copies at once what they write."""
    built.producers.append(lambda: built.write("x", 0, 1))
    return built


@pytest.mark.parametrize("batch", [None, 1])
def test_a_cutover_without_a_fence_that_is_run_again_tells_nobody_to_move_while_somebody_writes(
    batch: int | None,
) -> None:
    built = stage()
    fence(built.scene(), ("x",) if batch else (), without_fence=True)
    with pytest.raises(FenceBroken, match=r"writes to x.*stays FENCED"):
        cutover(writing(built).scene(), batch=batch)
    assert built.record().state is State.FENCED
    built.producers.clear()
    assert cutover(built.scene(), batch=batch, without_fence=True).state is State.PROMOTED


def test_a_promotion_without_a_fence_begins_only_while_nobody_writes() -> None:
    built = stage()
    fence(built.scene(), without_fence=True)
    drain(built.scene())
    with pytest.raises(FenceBroken, match=r"writes to x.*stays DRAINED"):
        promote(writing(built).scene())
    assert (built.record().state, built.record().has_ended) == (State.DRAINED, False)


@pytest.mark.parametrize("batch", [None, 1])
def test_a_topic_whose_fence_is_gone_is_not_drained(batch: int | None) -> None:
    built = stage()
    fence(built.scene(), ("x",) if batch else ())
    built.world.source_acls.bindings.clear()
    with pytest.raises(NotNow, match=r"x.* can be written on a"):
        cutover(built.scene(), batch=batch)
    assert built.record().state is State.FENCED
