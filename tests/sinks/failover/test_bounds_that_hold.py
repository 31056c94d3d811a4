"""Counts of missing records that were too small, or exact without a reason."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinks.failover.commands import cutover, predict
from sinks.failover.lost_before_copying import ANY_OFFSET, Lost, acknowledged, entries_of, kept_lost
from sinks.failover.open_transactions import NotDrained
from sinks.failover.readiness import CheckResult
from sinks.failover.readiness_facts import losses_of
from sinks.failover.record_matching import TAIL_RECORDS, Fingerprint, fingerprint_of, lacking
from sinks.failover.source_end_offsets import SourceEndOffsetStore
from sinks.failover.uncopied_records import ArrivalMemory, arrivals, with_ages
from sinks.failover.unreplicated import not_copied_back, unreplicated
from sinks.faults import ItemFault
from sinks.kafka.ports.record_reader import Stamp
from sinks.kafka.ports.transactions import ActiveProducer
from sinks.kinds.offsets.direction import summary_of, unread
from sinks.kinds.offsets.log_tails import Missed
from sinks.ledger.failover_record import NotNow, State
from streaming.mm2.records import TopicPartition
from tests.inline_work import inline
from tests.memory.memory_records import MemoryLog
from tests.sinks.builders import put_topic
from tests.sinks.failover.scenes import Stage, look, stage
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
    assert predict(built.scene(answers=True)).records == 8
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


def test_what_a_copy_lost_is_kept_until_it_is_acknowledged_and_no_cutover_goes_over_it() -> None:
    built = stage()
    cut = [{X: Missed(4)}]
    keeper = SourceEndOffsetStore(built.here, 5.0, lambda: NOW_MS, inline, cut=lambda: cut.pop() if cut else {})
    look(built, 0.0, keeper)
    assert kept_lost(built.ledger()) == {X: Lost(4, ANY_OFFSET, int(NOW_MS))}
    with pytest.raises(NotNow, match="LOST BEFORE COPYING: at most 4 of x are not on b"):
        cutover(built.scene())
    built.ledger().put(entries_of(acknowledged(kept_lost(built.ledger()), ["x"])))
    look(built, 10.0, keeper)
    assert cutover(built.scene()).state is State.PROMOTED


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ({X: Missed(10**15)}, {X: Lost(10, ANY_OFFSET, int(NOW_MS))}),
        ({TopicPartition("nobody-has-this", 0): Missed(4), TopicPartition("x", 77): Missed(4)}, {}),
    ],
    ids=["too large", "of no partition"],
)
def test_forged_syncs_tell_of_no_loss_larger_than_the_log_nor_of_other_partitions(
    told: dict[TopicPartition, Missed], kept: dict[TopicPartition, Lost]
) -> None:
    built, cut = stage(), [told]
    keeper = SourceEndOffsetStore(built.here, 5.0, lambda: NOW_MS, inline, cut=lambda: cut.pop() if cut else {})
    look(built, 0.0, keeper)
    assert kept_lost(built.ledger()) == kept


def test_what_cuts_tell_is_kept_although_the_source_gives_no_answer_at_first() -> None:
    built, cut = stage(), [{X: Missed(4)}]
    keeper = SourceEndOffsetStore(built.here, 5.0, lambda: NOW_MS, inline, cut=lambda: cut.pop() if cut else {})
    built.here.reachable = False
    look(built, 0.0, keeper)
    assert (cut, kept_lost(built.ledger())) == ([], {})
    built.here.reachable = True
    look(built, 10.0, keeper)
    assert kept_lost(built.ledger()) == {X: Lost(4, ANY_OFFSET, int(NOW_MS))}


def test_a_topic_that_lost_records_may_be_accepted() -> None:
    built = stage()
    built.ledger().put(entries_of({X: Lost(4, 12, 0)}))
    built.choices = replace(built.choices, accepted=frozenset({"x"}))
    assert cutover(built.scene()).state is State.PROMOTED


@pytest.mark.parametrize("since", [1, 3, 10])
@pytest.mark.parametrize("lost", [1, 4])
@pytest.mark.parametrize("compacted", [False, True])
def test_records_that_the_copy_lost_right_before_its_last_ones_are_missing(
    since: int, lost: int, compacted: bool
) -> None:
    built = stage()
    built.mirrors = False
    built.write("x", 0, since)
    records, copy = built.here.logs[X].records, MemoryLog()
    for record in (*records[: 10 - lost], *records[10:]):
        copy.append(record.key, record.value, record.timestamp)
    built.there.logs[COPY] = copy
    built.here.compacting = {"x"} if compacted else set()
    found = arrivals(built.here, built.there, {X: COPY})[X].behind
    assert found is not None
    assert (found.records, found.exact) == ((0, True) if compacted else (lost, False))


@pytest.mark.parametrize("stamp", [Stamp.APPEND, Stamp.CREATE])
@given(values=st.lists(st.integers(0, 5), min_size=1, max_size=30), back=st.integers(0, 12))
def test_no_record_is_missing_where_mm2_sent_some_again(stamp: Stamp, values: list[int], back: int) -> None:
    source, copy = MemoryLog(), MemoryLog()
    for at, value in enumerate(values):
        source.append(b"%d" % value, b"v", at)
    for at in (*range(len(values)), *range(max(0, len(values) - back), len(values))):
        copy.append(b"%d" % values[at], b"v", at, stamp)
    built = stage()
    built.here.logs[X], built.there.logs[COPY] = source, copy
    found = arrivals(built.here, built.there, {X: COPY})[X].behind
    assert found is not None
    assert not lacking(fingerprints(source), fingerprints(copy))


def fingerprints(log: MemoryLog) -> list[Fingerprint]:
    return [fingerprint_of(record) for record in log.records[-TAIL_RECORDS:]]


@pytest.mark.parametrize("accepted", [False, True])
def test_no_cutover_leaves_a_topic_behind_that_has_a_copy_unless_it_is_accepted(accepted: bool) -> None:
    built = stage(properties={"topics": "x, yy"})
    if accepted:
        built.choices = replace(built.choices, accepted=frozenset({"y"}))
        assert cutover(built.scene()).state is State.PROMOTED
        return
    with pytest.raises(NotNow, match=r"y would be left behind: b has a copy, but neither .* names it"):
        cutover(built.scene())
    assert built.record().state is State.MIRRORING


@pytest.mark.parametrize("accepted", [False, True])
def test_no_cutover_leaves_a_topic_behind_whose_copy_mm2_has_not_made_unless_it_is_accepted(accepted: bool) -> None:
    built = stage()
    put_topic(built.world.source, "own-internal")
    built.here.logs[TopicPartition("own-internal", 0)] = MemoryLog()
    built.mirrors = False
    if accepted:
        built.choices = replace(built.choices, accepted=frozenset({"own-internal"}))
        assert cutover(built.scene()).state is State.PROMOTED
        return
    with pytest.raises(NotNow, match=r"b has no copy of own-internal\. MM2 of Kafka 4 creates"):
        cutover(built.scene())
    assert built.record().state is State.MIRRORING


def test_what_mm2_writes_for_itself_on_the_target_is_no_record_of_a_client() -> None:
    built = stage()
    assert cutover(built.scene()).state is State.PROMOTED
    put_topic(built.world.target, "a.checkpoints.internal")
    log = built.there.logs[TopicPartition("a.checkpoints.internal", 0)] = MemoryLog()
    log.append(b"g", b"checkpoint", 5000)
    assert not_copied_back(built.scene()).count == 0


def test_a_group_that_cannot_be_read_leaves_its_kind_unknown() -> None:
    row = unread("g", "b", ItemFault("GROUP_AUTHORIZATION_FAILED", "denied"), back=False)
    assert summary_of([row]).unread == row.judgement.reason
