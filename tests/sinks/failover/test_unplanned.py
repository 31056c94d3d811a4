"""A failover without the source, and the way back, over clusters in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from sinks.failover.commands import cutover, drain, failover, fence
from sinks.failover.failing_back import failback, resume
from sinks.failover.open_transactions import NotDrained
from sinks.failover.predicted_loss import ANY_LOSS, Prediction, predict
from sinks.failover.record_matching import Behind
from sinks.failover.source_end_offsets import SourceEndOffsetStore
from sinks.failover.unreplicated import Unreplicated
from sinks.kafka.ports.record_reader import Stamp
from sinks.kinds.offsets.stored_memory import store_histories
from sinks.kinds.offsets.sync_history import History
from sinks.ledger.failover_record import FailoverRecord, NotNow, State, Step
from sinks.ledger.kept_divergences import divergences
from sinks.ledger.kept_end_offsets import LatestSync
from streaming.mm2.records import TopicPartition
from streaming.mm2.replication_policy import IdentityReplicationPolicy
from tests.inline_work import inline
from tests.memory.memory_records import MemoryLog
from tests.sinks.builders import flow_settings
from tests.sinks.failover.scenes import ME, Died, Stage, look, mortal, stage

X0, X1, Y0 = TopicPartition("x", 0), TopicPartition("x", 1), TopicPartition("y", 0)


def agree(prediction: Prediction) -> None:
    """To whatever it is."""


def watched() -> Stage:
    """A flow whose job kept the source's ends and MM2's offset-syncs; then three records came that MM2 did not copy."""
    built = stage()
    ledger = built.ledger()
    store_histories(ledger, {where: History(4, 4, 0) for where in (X0, X1, Y0)})
    built.mirrors = False
    built.write("x", 1, 3)
    look(built, 1000.0)
    return built


def lose_the_source(built: Stage, reachable: bool = False) -> None:
    """It answers nothing any more, or again."""
    for one in (built.world.source, built.world.source_acls, built.here):
        one.reachable = reachable


def failed_over(built: Stage) -> FailoverRecord:
    """Without the source, whatever is lost."""
    lose_the_source(built)
    return failover(built.scene(answers=False), accept_loss=None, agreed=agree)


def test_without_the_source_the_loss_is_told_from_what_was_seen_last() -> None:
    built, seen = watched(), list[Prediction]()
    lose_the_source(built)
    record = failover(built.scene(answers=False), accept_loss=None, agreed=seen.append)
    assert record.state is State.FAILED_OVER
    assert (seen[0].records, seen[0].at_ms) == (3, 1_700_000_000_000)
    assert not seen[0].exact
    assert built.record().has_ended


@pytest.mark.parametrize("records", [4, 10, 25])
def test_all_of_a_topic_that_was_recreated_while_no_job_ran_may_be_lost_until_its_next_sync(records: int) -> None:
    built, syncs = stage(), {X0: LatestSync(9, 9)}
    built.mirrors = False

    def job() -> SourceEndOffsetStore:
        return SourceEndOffsetStore(built.here, 5.0, beside=inline, syncs=lambda: dict(syncs))

    look(built, 1000.0, job())
    built.here.logs[X0] = MemoryLog()
    built.write("x", 0, records)
    # Its id told that it is another topic: what was known of the former one is forgotten.
    syncs.clear()
    again = job()
    look(built, 2000.0, again)
    found = predict(built.scene(answers=False))
    assert found.arrivals[X0].behind == Behind(records, None, exact=False)
    assert X0 in found.without_position
    syncs[X0] = LatestSync(records - 1, 9 + records)
    for number in range(records):
        built.there.logs[TopicPartition("a.x", 0)].append(b"%d" % number, b"new", 2000)
    look(built, 2010.0, again)
    found = predict(built.scene(answers=False))
    assert found.arrivals[X0].behind == Behind(0, None, exact=False)
    assert X0 not in found.without_position


def test_where_no_job_kept_the_ends_nobody_can_tell() -> None:
    built, seen = stage(), list[Prediction]()
    lose_the_source(built)
    failover(built.scene(answers=False), accept_loss=None, agreed=seen.append)
    assert (seen[0].records, seen[0].typed) == (None, "unknown")


def test_who_does_not_agree_changes_nothing() -> None:
    built = watched()
    lose_the_source(built)

    def refuse(prediction: Prediction) -> None:
        raise NotNow("no")

    with pytest.raises(NotNow):
        failover(built.scene(answers=False), accept_loss=None, agreed=refuse)
    assert built.record() == FailoverRecord()


@pytest.mark.parametrize(("accepted", "fits"), [(None, False), (2, False), (3, True), (9, True)])
def test_a_source_that_answers_wants_the_loss_accepted(accepted: int | None, fits: bool) -> None:
    built = watched()
    scene = built.scene()
    if fits:
        assert failover(scene, accept_loss=accepted, agreed=agree).state is State.FAILED_OVER
    else:
        with pytest.raises(NotNow, match="accept-loss"):
            failover(scene, accept_loss=accepted, agreed=agree)


@pytest.mark.parametrize(("built", "typed"), [(watched, "3"), (stage, "unknown")])
def test_a_topic_of_which_the_source_lists_no_partition_loses_what_was_seen_last_of_it(
    built: Callable[[], Stage], typed: str
) -> None:
    stage_ = built()
    stage_.world.source.topics["x"].partitions = 0
    assert predict(stage_.scene(answers=True)).typed == typed


def test_a_partition_without_an_offset_sync_may_lose_all_that_it_has() -> None:
    built, seen = watched(), list[Prediction]()
    store_histories(built.ledger(), {Y0: None})
    look(built, 1010.0)
    lose_the_source(built)
    failover(built.scene(answers=False), accept_loss=None, agreed=seen.append)
    assert seen[0].records == 3 + 10


def test_the_divergence_is_kept_as_it_was_when_the_target_took_over() -> None:
    built = watched()
    lose_the_source(built)
    for _ in range(2):
        process = mortal(built.scene(answers=False), Step.GRANT_WRITES, after=False)
        with pytest.raises(Died):
            failover(process, accept_loss=None, agreed=agree)
        built.there.logs[TopicPartition("a.x", 1)].append(b"a client's", b"", 5000)
    failed_over(built)
    kept = divergences(built.ledger())["x"]
    assert (list(kept.ends), list(kept.known), list(kept.lost)) == ([10, 10], [10, 13], [0, 3])


def test_records_that_never_crossed_are_counted_and_keep_the_flow_from_going_back() -> None:
    built = watched()
    failed_over(built)
    lose_the_source(built, reachable=True)
    with pytest.raises(NotNow, match="has 3 records that never reached b"):
        failback(built.scene(), export=None, discard=2, write_reverse=lambda: None)
    assert built.record().state is State.INVALIDATED
    assert "3 records on a never reached b: x 3" in built.said


def test_exported_records_are_those_that_never_crossed() -> None:
    built, handed = watched(), list[Unreplicated]()
    failed_over(built)
    built.there.logs[TopicPartition("a.x", 1)].append(b"a client's", b"", 5000)
    lose_the_source(built, reachable=True)
    record = failback(built.scene(), export=handed.append, discard=None, write_reverse=lambda: None)
    assert record.state is State.REVERSING
    assert {where: [one.offset for one in records] for where, records in handed[0].records.items()} == {
        X1: [10, 11, 12]
    }


def test_what_mm2_copied_after_the_takeover_has_crossed() -> None:
    built = watched()
    failed_over(built)
    lose_the_source(built, reachable=True)
    built.there.logs[TopicPartition("a.x", 1)].append(b"a client's", b"", 5000)
    for record in built.here.logs[X1].records[10:12]:
        built.there.logs[TopicPartition("a.x", 1)].append(record.key, record.value, record.timestamp)
    with pytest.raises(NotNow, match="has 1 record "):
        failback(built.scene(), export=None, discard=None, write_reverse=lambda: None)


def test_with_nothing_lost_failback_writes_the_reverse_flow_and_done_mirrors_again() -> None:
    built, written = watched(), list[str]()
    built.copy()
    failed_over(built)
    lose_the_source(built, reachable=True)
    record = failback(built.scene(), export=None, discard=None, write_reverse=lambda: written.append("the file"))
    assert (record.state, written) == (State.REVERSING, ["the file"])
    assert resume(built.scene(), typed="unknown").state is State.MIRRORING
    assert divergences(built.ledger()) == {}
    assert not built.record().has_ended


def test_a_failover_and_a_failback_that_are_done_are_done_once() -> None:
    built = watched()
    failed_over(built)
    events = len(built.states())
    assert failed_over(built).state is State.FAILED_OVER
    assert len(built.states()) == events
    lose_the_source(built, reachable=True)
    for _ in range(2):
        assert failback(built.scene(), export=None, discard=3, write_reverse=lambda: None).state is State.REVERSING
    for _ in range(2):
        assert resume(built.scene(), typed="unknown").state is State.MIRRORING
    assert divergences(built.ledger()) == {}


def test_a_command_that_was_taken_over_within_a_step_does_not_put_its_own_state_back() -> None:
    built = watched()
    fence(built.scene())
    other = replace(ME, claim="bob@there:2")

    def waiting() -> None:
        scene = built.scene(other, answers=True, is_alive=lambda claim: False)
        failover(scene, accept_loss=3, agreed=agree)

        built.producers.clear()
        built.copy()

    built.producers.append(waiting)
    with pytest.raises(NotNow, match="another failover command works on this flow now"):
        drain(built.scene())
    assert built.record().state is State.FAILED_OVER


def test_only_a_reversing_flow_mirrors_again() -> None:
    built = watched()
    failed_over(built)
    with pytest.raises(NotNow, match="REVERSING"):
        resume(built.scene())


def partly_moved() -> Stage:
    """x is fenced and drained, and its clients have moved; then y lags behind by seven."""
    built = stage()
    fence(built.scene(), ("x",))
    drain(built.scene())
    built.there.logs[TopicPartition("a.x", 0)].append(b"a client's", b"", 5000)
    built.mirrors = False
    built.write("y", 0, 7)
    return built


def test_a_failover_amid_a_batch_counts_and_keeps_the_topics_that_are_not_fenced_as_well() -> None:
    built, seen = partly_moved(), list[Prediction]()
    with pytest.raises(NotNow, match="7 records would be lost"):
        failover(built.scene(answers=True), accept_loss=0, agreed=agree)
    failover(built.scene(answers=True), accept_loss=7, agreed=seen.append)
    assert (seen[0].records, seen[0].exact) == (7, True)
    kept = divergences(built.ledger())
    assert [(list(kept[topic].ends), list(kept[topic].lost)) for topic in ("x", "y")] == [
        ([10, 10], [0, 0]),
        ([10], [7]),
    ]


def test_without_the_source_what_moved_clients_wrote_hides_no_loss() -> None:
    built, seen = partly_moved(), list[Prediction]()
    built.write("x", 0, 1, super_user=True)
    store_histories(built.ledger(), {where: History(4, 4, 0) for where in (X0, X1, Y0)})
    look(built, 1000.0)
    lose_the_source(built)
    failover(built.scene(answers=False), accept_loss=None, agreed=seen.append)
    assert seen[0].records == 1 + 7


def test_a_failback_after_a_failover_amid_a_batch_names_what_the_source_alone_has() -> None:
    built = partly_moved()
    failover(built.scene(answers=True), accept_loss=7, agreed=agree)
    with pytest.raises(NotNow, match="has 7 records"):
        failback(built.scene(), export=None, discard=None, write_reverse=lambda: None)


def cut_off(built: Stage) -> None:
    """The leader of x-1 knows nothing of what the job saw last, as one that its controller does not reach."""
    log = built.here.logs[X1]
    log.records, log.end = log.records[:10], 10


def test_what_a_job_saw_counts_as_lost_although_a_leader_tells_less() -> None:
    built = watched()
    cut_off(built)
    found = predict(built.scene(answers=True))
    assert (found.records, found.exact) == (3, False)
    with pytest.raises(NotNow, match="3"):
        failover(built.scene(answers=True), accept_loss=0, agreed=agree)


def test_no_flow_is_cut_over_while_a_leader_tells_less_than_a_job_saw() -> None:
    built = watched()
    cut_off(built)
    with pytest.raises(NotDrained, match="x"):
        cutover(built.scene())


def test_a_topic_that_the_source_hides_is_lost_as_far_as_a_job_saw_it() -> None:
    built = watched()
    built.world.source.unseen.add("x")
    found = predict(built.scene(answers=True))
    assert (found.records, found.exact, found.whole) == (3, False, False)
    failover(built.scene(answers=True), accept_loss=3, agreed=agree)
    assert set(divergences(built.ledger())) == {"x", "y"}


@pytest.mark.parametrize("policy", [None, IdentityReplicationPolicy()])
def test_a_hidden_topic_of_which_no_copy_tells_is_neither_cut_over_nor_failed_over_without_its_loss(
    policy: IdentityReplicationPolicy | None,
) -> None:
    built = watched()
    if policy is not None:
        built.world.settings = flow_settings(policy=policy)
    for name in ("a.x", "a.y") if policy is None else ():
        del built.world.target.topics[name]
    built.world.source.unseen.add("x")
    for command in (cutover, fence):
        with pytest.raises(NotNow, match="a does not list x, and does not say either that they are gone"):
            command(built.scene())
    found = predict(built.scene(answers=True))
    assert (found.exact, found.whole, found.records == 0) == (False, False, False)
    with pytest.raises(NotNow, match="--accept-loss"):
        failover(built.scene(answers=True), accept_loss=0, agreed=agree)


def test_partitions_that_cannot_be_compared_are_led_back_once_the_operator_says_so() -> None:
    built = watched()
    copy = built.there.logs[TopicPartition("a.x", 0)]
    copy.records = [one._replace(stamp=Stamp.APPEND, timestamp=9000 + one.offset) for one in copy.records]
    built.write("x", 0, 5)
    failed_over(built)
    lose_the_source(built, reachable=True)
    # Retention took the last record that was copied.
    built.here.logs[X0].cut(12)
    for discard in (None, 1000):
        with pytest.raises(NotNow, match=r"for example x-0.*--discard unknown"):
            failback(built.scene(), export=None, discard=discard, write_reverse=lambda: None)
    handed = list[Unreplicated]()
    record = failback(built.scene(), export=handed.append, discard=ANY_LOSS, write_reverse=lambda: None)
    assert (record.state, [found.count for found in handed]) == (State.REVERSING, [3])


def test_a_topic_that_the_file_forgot_counts_in_the_loss_as_long_as_it_has_a_copy() -> None:
    built = watched()
    chosen = flow_settings({"topics": "y"}).topic_filter
    built.world.settings = replace(built.world.settings, topic_filter=chosen)
    assert predict(built.scene()).records == 3
    lose_the_source(built)
    assert predict(built.scene(answers=False)).records == 3


def test_of_lost_records_that_the_source_compacted_away_since_none_stands_for_a_copied_one() -> None:
    built = stage()
    built.here.compacting.add("y")
    built.there.compacting.add("a.y")
    built.mirrors = False
    built.write("y", 0, 6)
    failover(built.scene(), accept_loss=ANY_LOSS, agreed=agree)
    built.here.logs[Y0].lose(10, 11, 12, 13)
    found = list[Unreplicated]()
    failback(built.scene(), export=found.append, discard=None, write_reverse=lambda: None)
    assert [one.offset for one in found[0].records[Y0]] == [14, 15]
