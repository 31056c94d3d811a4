"""No flow is drained or promoted over a transaction that is open on the source: it is named, awaited, or ended."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sinks.failover.commands import cutover, drain, failover, fence, promote
from sinks.failover.failing_back import failback
from sinks.failover.open_transactions import NotDrained, tell_open
from sinks.failover.predicted_loss import predict
from sinks.failover.scene import both_readers
from sinks.failover.uncopied_records import ArrivalMemory
from sinks.failover.unreplicated import unreplicated
from sinks.faults import ItemFault
from sinks.kafka.ports.transactions import ActiveProducer
from sinks.ledger.failover_record import Command, NotNow, State, Step
from streaming.mm2.records import TopicPartition
from tests.sinks.failover.scenes import Stage, before_step, stage

X, COPY = TopicPartition("x", 0), TopicPartition("a.x", 0)
MM2 = ActiveProducer(3, 0, 1000)
ISOLATIONS = ["read_committed", "read_uncommitted"]


def opened(isolation: str = "read_committed", **choices: object) -> Stage:
    """A flow with a transaction `pay` of producer 7, open in x-0 from offset 10 on."""
    built = stage(isolation=isolation)
    for text in (b"a", b"b"):
        built.transactions.write("pay", 7, X, text, 1)
    built.copy()
    built.choices = replace(built.choices, **choices)  # type: ignore[arg-type]  # a test's own names
    return built


def copied(built: Stage) -> list[bytes | None]:
    return [record.value for record in built.there.logs[TopicPartition("a.x", 0)].records[10:]]


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_an_open_transaction_keeps_a_flow_from_being_drained_and_is_named(isolation: str) -> None:
    built = opened(isolation)
    with pytest.raises(
        NotDrained, match=r"pay \(producer id 7, Ongoing for .*x-0 from offset 10.*--abort-transactions"
    ):
        cutover(built.scene())
    assert built.record().state is State.FENCED
    assert built.now >= 60
    assert any("waiting for" in line and "pay" in line for line in built.said)


def test_what_becomes_of_its_records_is_said_for_either_isolation() -> None:
    for isolation, said in (
        ("read_uncommitted", "even if their transactions abort"),
        ("read_committed", "once their transactions commit"),
    ):
        with pytest.raises(NotDrained, match=said):
            cutover(opened(isolation).scene())


def test_a_cutover_goes_on_once_the_transaction_is_committed_and_copied() -> None:
    built = opened()

    def commit() -> None:
        if built.now > 20 and built.transactions.known["pay"].started_ms is not None:
            built.transactions.commit("pay")

    built.producers.append(commit)
    assert cutover(built.scene()).state is State.PROMOTED
    assert built.now > 20
    assert copied(built) == [b"a", b"b"]


def test_a_transaction_that_opens_after_the_drain_keeps_the_flow_from_being_promoted() -> None:
    built = stage(isolation="read_committed")
    fence(built.scene())
    drain(built.scene())
    built.transactions.write("pay", 7, X, b"late", 1)
    with pytest.raises(NotDrained, match="pay"):
        promote(built.scene())
    assert not built.record().has_ended


def test_a_transaction_that_opens_while_the_flow_ends_stops_the_promotion_half_way() -> None:
    built = stage(isolation="read_committed")

    def late() -> None:
        built.transactions.write("pay", 7, X, b"late", 1)

    with pytest.raises(NotDrained, match="pay"):
        cutover(before_step(built.scene(), Command.PROMOTE, Step.KEEP_DIVERGENCE, late))
    assert (built.record().state, built.record().doing) == (State.DRAINED, Command.PROMOTE)
    built.transactions.commit("pay")
    built.copy()
    assert promote(built.scene()).state is State.PROMOTED


def test_on_request_the_producer_is_fenced_so_that_it_learns_of_the_abort() -> None:
    built = opened(abort_transactions=True)
    assert cutover(built.scene()).state is State.PROMOTED
    assert built.transactions.fenced == {7}
    assert (copied(built), built.now < 20) == ([], True)
    assert any("pay" in line and "aborted" in line for line in built.said)


def test_fence_ends_transactions_on_request_and_else_tells_of_them() -> None:
    built = opened()
    assert fence(built.scene()).state is State.FENCED
    assert any("pay" in line and "--abort-transactions" in line for line in built.said)
    assert not built.transactions.fenced
    built.choices = replace(built.choices, abort_transactions=True)
    fence(built.scene())
    assert built.transactions.fenced == {7}


def test_one_that_hangs_gets_an_abort_marker_for_no_coordinator_would_end_it() -> None:
    built = opened()
    built.transactions.known.clear()
    with pytest.raises(NotDrained, match=r"producer id 7 .*no coordinator.*x-0 from offset 10"):
        cutover(built.scene())
    built.choices = replace(built.choices, abort_transactions=True)
    assert cutover(built.scene()).state is State.PROMOTED
    assert (built.transactions.fenced, copied(built)) == (set(), [])


def test_one_whose_id_may_be_hidden_is_not_aborted_since_its_producer_would_not_learn_of_it() -> None:
    built = opened(abort_transactions=True)
    built.transactions.hidden = "DESCRIBE on TRANSACTIONAL_ID * is missing on a"
    with pytest.raises(NotDrained, match=r"producer id 7 .*DESCRIBE on TRANSACTIONAL_ID"):
        cutover(built.scene())
    assert built.here.logs[X].stable == 10
    assert any("not aborted" in line for line in built.said)


def test_one_that_its_coordinator_is_committing_is_awaited_and_not_aborted() -> None:
    built = opened(abort_transactions=True)
    built.transactions.known["pay"] = built.transactions.known["pay"]._replace(state="PrepareCommit")
    with pytest.raises(NotDrained, match="PrepareCommit"):
        cutover(built.scene())
    assert not built.transactions.fenced


def test_brokers_that_name_no_producer_still_do_not_let_it_pass() -> None:
    built = opened(abort_transactions=True)
    built.transactions.supported = False
    with pytest.raises(NotDrained, match=r"x-0.*too old"):
        cutover(built.scene())


def test_a_right_that_is_missing_to_name_it_is_said() -> None:
    built = opened()
    built.transactions.denied = ItemFault("TOPIC_AUTHORIZATION_FAILED", "")
    with pytest.raises(NotDrained, match=r"x-0.*TOPIC_AUTHORIZATION_FAILED"):
        cutover(built.scene())


def test_topics_that_are_accepted_may_have_one() -> None:
    built = opened(accepted=frozenset({"x"}))
    assert cutover(built.scene()).state is State.PROMOTED


def test_a_partition_whose_last_stable_offset_cannot_be_read_is_not_drained() -> None:
    built = stage()
    fence(built.scene())
    built.here.unstable.add(X)
    with pytest.raises(NotDrained, match=r"last stable offset of x-0.*cannot be read"):
        drain(built.scene())


def leaderless_until(built: Stage, seconds: float) -> None:
    """The end of x-0 cannot be read before this time."""
    log = built.here.logs.pop(X)

    def elect() -> None:
        if built.now >= seconds:
            built.here.logs[X] = log

    built.producers.append(elect)


def test_a_partition_whose_end_cannot_be_read_is_awaited_like_any_other() -> None:
    built = stage()
    fence(built.scene())
    leaderless_until(built, built.now + 20)
    assert drain(built.scene()).state is State.DRAINED
    assert any("waiting for" in line and "the end of x-0 (UNKNOWN_TOPIC" in line for line in built.said)


def test_once_time_is_over_the_partition_whose_end_cannot_be_read_is_named_with_the_reason() -> None:
    built = stage()
    fence(built.scene())
    began = built.now
    leaderless_until(built, began + 1000)
    with pytest.raises(NotDrained, match=r"after 60 s the end of x-0 \(UNKNOWN_TOPIC.*cannot be read"):
        drain(built.scene())
    assert built.now - began >= 60


def test_a_transaction_in_a_partition_that_answers_late_is_aborted_on_request() -> None:
    built = opened()
    fence(built.scene())
    built.transactions.write("other", 8, TopicPartition("y", 0), b"c", 1)
    leaderless_until(built, built.now + 5)
    built.choices = replace(built.choices, abort_transactions=True)
    assert drain(built.scene()).state is State.DRAINED
    assert built.transactions.fenced == {7, 8}


def test_a_fence_that_is_proven_stands_although_an_end_cannot_be_read() -> None:
    built = opened()
    leaderless_until(built, 1000)
    tell_open(built.scene(), [X, TopicPartition("y", 0)])
    assert any("the end of x-0 (UNKNOWN_TOPIC" in line and "cannot be read" in line for line in built.said)


def test_what_mm2_copied_in_a_transaction_of_its_own_that_is_open_is_no_copy_yet() -> None:
    built = stage()
    built.mirrors = False
    built.write("x", 0, 1)
    log, (record,) = built.there.logs[TopicPartition("a.x", 0)], built.here.logs[X].records[10:]
    producer = ActiveProducer(3, 0, record.timestamp)
    log.written(producer, record.key or b"", record.value or b"", transactional=True)
    with pytest.raises(NotDrained, match="1 record of x"):
        cutover(built.scene())
    log.decide(3, commit=True)
    assert cutover(built.scene()).state is State.PROMOTED


def half_copied(built: Stage, then: bool | None) -> None:
    """Twenty records, which MM2 copied in a transaction of its own: committed, aborted, or open (None)."""
    built.mirrors = False
    built.write("x", 0, 20)
    log = built.there.logs[COPY]
    for record in built.here.logs[X].records[10:]:
        log.written(MM2, record.key or b"", record.value or b"", transactional=True)
        log.records[-1] = log.records[-1]._replace(timestamp=record.timestamp)
    if then is not None:
        log.decide(MM2.producer, commit=then)


@pytest.mark.parametrize(("then", "lost"), [(None, 20), (False, 20), (True, 0)])
def test_a_failover_with_the_source_loses_what_mm2_copied_and_did_not_commit(then: bool | None, lost: int) -> None:
    built = stage()
    half_copied(built, then)
    found = predict(built.scene(answers=True))
    assert (found.records, found.exact) == (lost, True)


@pytest.mark.parametrize(("then", "missing"), [(None, 20), (False, 20), (True, 0)])
def test_a_preflight_counts_no_copy_that_mm2_did_not_commit(then: bool | None, missing: int) -> None:
    built = stage()
    half_copied(built, then)
    scene = built.scene()
    with both_readers(scene.settings, scene.source, scene.target) as (source, target):
        seen = ArrivalMemory().observe(source, target, {X: COPY}, {})
    behind, position = seen.arrivals[X].behind, seen.positions[X]
    assert behind is not None
    assert (behind.records, behind.exact, position.missing) == (missing, True, missing)


def test_what_mm2_copied_and_aborted_is_counted_as_never_crossed_once_the_source_is_back() -> None:
    built = stage()
    half_copied(built, None)
    failover(built.scene(answers=True), accept_loss=20, agreed=lambda prediction: None)
    built.there.logs[COPY].decide(MM2.producer, commit=False)
    found = unreplicated(built.scene())
    assert (found.by_topic(), found.exact) == ({"x": 20}, True)


def test_copies_behind_a_clients_open_transaction_are_hidden_so_that_what_never_crossed_is_counted_at_most() -> None:
    built = stage()
    built.mirrors = False
    built.write("x", 0, 3)
    failover(built.scene(answers=True), accept_loss=3, agreed=lambda prediction: None)
    log = built.there.logs[COPY]
    log.written(ActiveProducer(9, 0, 5000), b"a client's", b"", transactional=True)
    for record in built.here.logs[X].records[10:]:
        log.append(record.key, record.value, record.timestamp)
    found = unreplicated(built.scene())
    assert (found.by_topic(), found.exact) == ({"x": 3}, False)
    log.decide(9, commit=False)
    found = unreplicated(built.scene())
    assert (found.by_topic(), found.exact) == ({}, True)


def test_committed_records_behind_an_open_transaction_count_as_lost() -> None:
    built = stage(isolation="read_committed")
    built.mirrors = False
    built.transactions.write("pay", 7, X, b"a", 1)
    built.write("x", 0, 5)
    found = predict(built.scene(answers=True))
    assert (found.records, found.exact) == (6, False)
    with pytest.raises(NotNow, match="6"):
        failover(built.scene(answers=True), accept_loss=0, agreed=lambda prediction: None)
    failover(built.scene(answers=True), accept_loss=6, agreed=lambda prediction: None)
    with pytest.raises(NotNow, match=r"for example x-0: an open transaction hides"):
        failback(built.scene(), export=None, discard=6, write_reverse=lambda: None)
    built.transactions.fence_producers(["pay"])
    with pytest.raises(NotNow, match="5 records that never reached b"):
        failback(built.scene(), export=None, discard=0, write_reverse=lambda: None)


def test_a_preflight_counts_what_an_open_transaction_hides() -> None:
    built = stage(isolation="read_committed")
    built.mirrors = False
    built.transactions.write("pay", 7, X, b"a", 1)
    built.write("x", 0, 5)
    with both_readers(built.world.settings, built.scene().source, built.scene().target) as (source, target):
        seen = ArrivalMemory().observe(source, target, {X: COPY}, {})
    behind = seen.arrivals[X].behind
    assert behind is not None
    assert (behind.records, behind.exact) == (6, False)
    # How far the partition was copied before the transaction is known all the same.
    assert seen.positions[X] == (10, 10, 0)
