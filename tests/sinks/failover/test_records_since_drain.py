"""Who takes a fence back is told what clients that have moved wrote on the target, and nothing else."""

from __future__ import annotations

import pytest

from sinks.failover.commands import drain, fence, unfence
from sinks.failover.steps import lift_fence
from sinks.kafka.ports.record_reader import Stamp
from sinks.ledger.failover_record import State
from streaming.mm2.records import TopicPartition
from tests.memory.memory_records import MemoryLog
from tests.sinks.failover.scenes import Stage, stage

WHERE, COPY = TopicPartition("x", 1), TopicPartition("a.x", 1)


def drained() -> Stage:
    built = stage()
    fence(built.scene())
    drain(built.scene())
    return built


def warnings(built: Stage) -> list[str]:
    return [line for line in built.said if "CAREFUL" in line]


@pytest.mark.parametrize("timestamp", [9000, 0])
def test_what_moved_clients_wrote_is_named(timestamp: int) -> None:
    built = drained()
    built.there.logs[COPY].append(b"moved", b"1", timestamp)
    assert unfence(built.scene()).state is State.MIRRORING
    (line,) = warnings(built)
    assert "a client wrote to a.x on b" in line
    assert "a.y" not in line


def test_copies_that_nobody_wrote_alarm_nobody() -> None:
    built = drained()
    unfence(built.scene())
    assert not warnings(built)


def test_records_that_mm2_sends_again_alarm_nobody() -> None:
    built = drained()
    for record in built.here.logs[WHERE].records[4:] * 2:
        built.there.logs[COPY].append(record.key, record.value, record.timestamp)
    unfence(built.scene())
    assert not warnings(built)


def test_records_that_came_once_the_fence_was_lifted_alarm_nobody_who_runs_it_again() -> None:
    built = drained()
    # A process did it, and died before it could say so.
    lift_fence(built.scene())
    for topic in ("x", "y"):
        built.write(topic, records=5)
    built.copy()
    unfence(built.scene())
    assert not warnings(built)


def test_record_of_a_moved_client_is_found_among_those_that_mm2_sends_again() -> None:
    built = drained()
    for record in built.here.logs[WHERE].records[4:]:
        built.there.logs[COPY].append(record.key, record.value, record.timestamp)
    built.there.logs[COPY].append(b"moved", b"1", 1005)
    unfence(built.scene())
    assert "a client wrote to a.x on b" in warnings(built)[0]


def test_copy_with_timestamps_of_its_own_is_one_of_which_nobody_can_tell() -> None:
    built = drained()
    built.there.logs[COPY].append(b"moved", b"1", 9000, Stamp.APPEND)
    unfence(built.scene())
    (line,) = warnings(built)
    assert "cannot tell" in line


def test_fence_is_lifted_though_nobody_can_tell_who_wrote() -> None:
    built = drained()
    built.there.reachable = False
    assert unfence(built.scene()).state is State.MIRRORING
    assert built.world.source_acls.bindings == set()
    assert "cannot tell" in warnings(built)[0]


def test_copy_of_a_partition_that_the_source_cannot_show_is_one_of_which_nobody_can_tell() -> None:
    built = drained()
    built.there.logs[COPY].append(b"moved", b"1", 9000)
    del built.here.logs[WHERE]
    unfence(built.scene())
    (line,) = warnings(built)
    assert "cannot tell" in line


def test_copy_that_the_target_cannot_show_is_one_of_which_nobody_can_tell() -> None:
    built = drained()
    built.there.logs[COPY].append(b"moved", b"1", 9000)
    # Its leader is gone.
    del built.there.logs[COPY]
    unfence(built.scene())
    (line,) = warnings(built)
    assert "cannot tell whether moved clients wrote to a.x on b" in line


def sent_again(built: Stage, first: int = 2) -> MemoryLog:
    """MM2 copies x-1 once more from this record on. The source's log."""
    log = built.here.logs[WHERE]
    for record in log.records[first:]:
        built.there.logs[COPY].append(record.key, record.value, record.timestamp)
    return log


@pytest.mark.parametrize("left", [5, 10])
def test_what_mm2_sent_again_alarms_nobody_though_the_sources_retention_took_it_since(left: int) -> None:
    built = drained()
    sent_again(built).cut(left)
    unfence(built.scene())
    assert not warnings(built)


def test_what_mm2_sent_again_alarms_nobody_though_the_source_compacted_it_away_since() -> None:
    built = drained()
    sent_again(built).lose(*range(9))
    built.here.compacting.add("x")
    unfence(built.scene())
    assert not warnings(built)


@pytest.mark.parametrize("left", [5, 10])
def test_what_neither_log_has_any_more_after_retention_is_not_blamed_on_clients(left: int) -> None:
    built = drained()
    sent_again(built).cut(left)
    built.there.logs[COPY].cut(10)
    unfence(built.scene())
    (line,) = warnings(built)
    assert "cannot tell whether moved clients wrote to a.x on b" in line


def test_what_both_logs_may_have_compacted_away_is_not_blamed_on_clients() -> None:
    built = drained()
    sent_again(built).lose(*range(9))
    built.there.logs[COPY].lose(*range(10))
    built.here.compacting.add("x")
    unfence(built.scene())
    (line,) = warnings(built)
    assert "cannot tell whether moved clients wrote to a.x on b" in line


@pytest.mark.parametrize("compacted", [False, True])
def test_moved_client_is_found_beside_what_both_logs_have_lost(compacted: bool) -> None:
    built = drained()
    log = sent_again(built)
    built.there.logs[COPY].append(b"moved", b"1", 9000)
    if compacted:
        log.lose(*range(9))
        built.here.compacting.add("x")
    else:
        log.cut(5)
    built.there.logs[COPY].lose(*range(10))
    unfence(built.scene())
    (line,) = warnings(built)
    assert "a client wrote to a.x on b" in line


def test_what_is_younger_than_all_that_retention_took_on_the_source_is_a_moved_clients() -> None:
    built = drained()
    built.here.logs[WHERE].cut(5)
    built.there.logs[COPY].append(b"moved", b"1", 9000)
    unfence(built.scene())
    (line,) = warnings(built)
    assert "a client wrote to a.x on b" in line
