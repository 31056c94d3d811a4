"""A super user who writes less often than a proof lasts is found by the next look, until the promotion, and named."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sinks.failover.commands import cutover, drain, fence, promote, unfence
from sinks.failover.fence_proof import FenceBroken
from sinks.kafka.ports.transactions import ActiveProducer
from sinks.ledger.failover_record import FailoverRecord, State
from sinks.ledger.ledger_entries import Entry
from sinks.model.times import milliseconds, utc_text
from streaming.mm2.records import TopicPartition
from tests.sinks.builders import NOON
from tests.sinks.failover.scenes import Stage, stage

X = TopicPartition("x", 0)
BETWEEN_WRITES = 15.0


def writing(built: Stage) -> Stage:
    """The producer 9, a super user, writes to x-0 every 15 s."""

    def write() -> None:
        written = [one for one in built.here.logs[X].records if one.value == b"slow"]
        if built.now >= BETWEEN_WRITES * (len(written) + 1):
            built.here.logs[X].written(ActiveProducer(9, 0, milliseconds(built.time())), b"slow", b"slow")

    built.producers.append(write)
    return built


def lagging(built: Stage, seconds: float) -> Stage:
    """MM2 copies what was written so far only after so many seconds."""
    built.mirrors = False
    built.write("y", 0, 3)
    built.producers.append(lambda: setattr(built, "mirrors", built.now > seconds))
    return built


def test_one_who_writes_while_the_last_records_are_awaited_is_found_and_named() -> None:
    built = writing(lagging(stage(), 20))
    with pytest.raises(FenceBroken, match=r"writes to x.*x-0: producer id 9 .*stays FENCED"):
        cutover(built.scene())
    assert built.record().state is State.FENCED


def test_one_who_wrote_since_another_command_proved_the_fence_is_waited_for_longer_than_its_pause() -> None:
    built = writing(stage())
    fence(built.scene())
    while built.now < 20:
        built.sleep(1)
    built.said.clear()
    with pytest.raises(FenceBroken, match=r"x-0: producer id 9"):
        cutover(built.scene())
    wrote = utc_text(NOON + timedelta(seconds=BETWEEN_WRITES))
    assert any("x-0" in line and wrote in line and "since the fence was proven" in line for line in built.said)
    assert not built.record().has_ended


def test_one_who_wrote_after_the_drain_is_found_by_promote() -> None:
    built = writing(stage())
    fence(built.scene())
    drain(built.scene())
    while built.now < 20:
        built.sleep(1)
    with pytest.raises(FenceBroken, match="stays DRAINED"):
        promote(built.scene())


def test_one_who_was_stopped_meanwhile_costs_another_proof_and_no_more() -> None:
    built = writing(stage())
    fence(built.scene())
    while built.now < 20:
        built.sleep(1)
    built.producers.clear()
    assert cutover(built.scene()).state is State.PROMOTED
    assert built.now > 20 + 2 * 10


def test_one_who_writes_while_the_flow_ends_is_told_of_and_named() -> None:
    built = stage()

    def told(before: FailoverRecord, after: FailoverRecord) -> None:
        if after.state is State.PROMOTED:
            built.here.logs[X].written(ActiveProducer(9, 0, milliseconds(built.time())), b"late", b"late")

    assert cutover(built.scene(on_state=told)).state is State.PROMOTED
    assert [line for line in built.said if "CAREFUL" in line and "x-0: producer id 9" in line]


def test_a_proof_says_how_long_it_lasted_and_whom_it_does_not_find() -> None:
    built = stage()
    fence(built.scene())
    assert any("for 10 s" in line and "writes less often" in line for line in built.said)


def test_a_fence_that_nobody_proved_is_proven_before_the_drain() -> None:
    built = stage()
    fence(built.scene())
    built.ledger().put(
        {(Entry.FAILOVER, key): None for key in built.ledger().values(Entry.FAILOVER) if key != ("state",)}
    )
    built.producers.append(lambda: built.write("x", super_user=True))
    with pytest.raises(FenceBroken, match="stays FENCED"):
        cutover(built.scene())


def test_a_fence_that_is_taken_away_leaves_no_proof_behind() -> None:
    built = stage()
    fence(built.scene())
    unfence(built.scene())
    assert set(built.ledger().values(Entry.FAILOVER)) == {("state",)}


def test_who_wrote_is_unknown_where_brokers_do_not_tell() -> None:
    built = stage()
    built.producers.append(lambda: built.write("y", super_user=True))
    with pytest.raises(FenceBroken, match=r"y-0: a producer without an id"):
        cutover(built.scene())
    built.transactions.supported = False
    with pytest.raises(FenceBroken, match=r"Who wrote is unknown: .*too old"):
        cutover(built.scene())
