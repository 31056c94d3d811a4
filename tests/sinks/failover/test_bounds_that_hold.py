"""Counts of missing records that were too small, or exact without a reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sinks.failover.arrival import ArrivalMemory, with_ages
from sinks.failover.commands import cutover
from sinks.failover.open_transactions import NotDrained
from sinks.failover.readiness_checks import CheckResult
from sinks.failover.readiness_facts import losses_of
from sinks.failover.unplanned import predict
from sinks.failover.unreplicated import unreplicated
from sinks.kafka.ports.transactions import ActiveProducer
from sinks.ledger.failover_record import State
from streaming.mm2.records import TopicPartition
from tests.sinks.failover.scenes import Stage, stage
from tests.sinks.failover.test_readiness import check

X, COPY = TopicPartition("x", 0), TopicPartition("a.x", 0)
NOW_MS = 1_800_000_000_000.0


def test_resent_copies_of_equal_records_stand_for_no_other_ones() -> None:
    built = stage()
    built.mirrors = False
    log, copy = built.here.logs[X], built.there.logs[COPY]
    for _ in range(20):
        log.append(None, b"+1", 5000)
    for _ in range(12):
        copy.append(None, b"+1", 5000)
    # MM2 dies, sends again what lies before and these twelve, and dies again: eight never came.
    for one in log.records[2:22]:
        copy.append(one.key, one.value, one.timestamp)
    assert predict(built.scene(), source_answers=True).records == 8
    with pytest.raises(NotDrained, match="8 records of x"):
        cutover(built.scene())


def age_of_what_waits(built: Stage) -> float | None:
    """The age that preflight shows for x."""
    with built.scene().readers() as (source, target):
        found = ArrivalMemory().observe(source, target, {X: COPY}, {"x": ("1", "2")}).arrivals
    aged = with_ages(found, lambda: replace(built.here, committed=False))
    return losses_of(aged.values(), NOW_MS)["x"].age


def test_what_an_open_transaction_hides_is_as_old_as_its_first_record() -> None:
    built = stage(isolation="read_committed")
    producer = ActiveProducer(*[7] + [0] * (len(ActiveProducer._fields) - 1))
    built.here.logs[X].written(producer, b"k", b"v", transactional=True)
    for number in range(100):
        built.here.logs[X].append(b"%d" % number, b"v", int(NOW_MS))
    assert age_of_what_waits(built) == pytest.approx(NOW_MS / 1000)


def test_records_of_a_producer_whose_clock_is_ahead_have_no_age_and_count_as_old() -> None:
    built = stage()
    built.here.logs[X].append(b"k", b"v", int(NOW_MS) + 3_600_000)
    with built.scene().readers() as (source, target):
        found = ArrivalMemory().observe(source, target, {X: COPY}, {"x": ("1", "2")}).arrivals
    counted = losses_of(found.values(), NOW_MS)
    assert counted["x"].age is None
    assert check("records not copied", losses=counted).result is CheckResult.FAILED


@pytest.mark.parametrize(("on_source_alone", "counted"), [(0, 0), (3, 3)])
def test_retention_of_the_target_since_the_takeover_makes_no_copied_record_missing(
    on_source_alone: int, counted: int
) -> None:
    built = stage()
    assert cutover(built.scene()).state is State.PROMOTED
    copy = built.there.logs[COPY]
    for number in range(30):
        copy.append(b"c%d" % number, b"c", 5000 + number)
    copy.cut(25)
    for number in range(on_source_alone):
        built.here.logs[X].append(b"late%d" % number, b"v", 6000)
    found = unreplicated(built.scene())
    assert (found.count, found.exact) == (counted, False)
