"""A command that goes on where an earlier one was sees first that no client writes by now."""

from __future__ import annotations

import pytest

from sinks.failover.commands import cutover, drain, fence, promote
from sinks.failover.fence_proof import FenceBroken
from sinks.failover.open_transactions import NotDrained
from sinks.ledger.failover_record import Command, NotNow, State, Step
from streaming.mm2.records import TopicPartition
from tests.memory.memory_records import MemoryLog
from tests.sinks.failover.scenes import Stage, before_step, stage

X_2 = TopicPartition("x", 2)


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


def with_a_partition_more(built: Stage) -> None:
    """The topic x gets a third one, after its fence was proven."""
    for world, name in ((built.world.source, "x"), (built.world.target, "a.x")):
        world.topics[name].partitions = 3
    built.here.logs[X_2], built.there.logs[TopicPartition("a.x", 2)] = MemoryLog(), MemoryLog()


@pytest.mark.parametrize("batch", [None, 1])
def test_a_client_that_writes_only_to_a_partition_added_since_the_proof_is_found(batch: int | None) -> None:
    built = stage()
    fence(built.scene())
    with_a_partition_more(built)
    built.producers.append(lambda: built.write("x", 2, super_user=True))
    with pytest.raises(FenceBroken):
        cutover(built.scene(), batch=batch)


def test_a_record_on_a_partition_added_since_the_proof_is_told_where_it_comes_while_the_flow_ends() -> None:
    built = stage()
    fence(built.scene())
    drain(built.scene())
    with_a_partition_more(built)

    def late() -> None:
        built.write("x", 2, 3, super_user=True)

    promote(before_step(built.scene(), Command.PROMOTE, Step.GRANT_WRITES, late))
    assert any("CAREFUL: records came to x" in line for line in built.said)


def test_a_source_that_lost_records_since_the_proof_is_not_drained() -> None:
    built = stage()
    built.mirrors = False
    built.write("y", 0, 3)
    fence(built.scene())
    log = built.here.logs[TopicPartition("y", 0)]
    log.records, log.end = log.records[:10], 10
    with pytest.raises(NotDrained, match="at most 3 records of y"):
        cutover(built.scene())
