"""A source that loses its brokers one by one: what it had by then is not forgotten before it is gone."""

from __future__ import annotations

import pytest

from sinks.failover.commands import failover
from sinks.failover.predicted_loss import ANY_LOSS, Prediction, predict
from sinks.failover.readiness_facts import losses_of
from sinks.faults import ClusterUnreachable
from sinks.kinds.offsets.stored_memory import store_histories
from sinks.kinds.offsets.sync_history import History
from sinks.ledger.failover_record import NotNow, State
from sinks.ledger.kept_divergences import divergences
from streaming.mm2.records import TopicPartition
from tests.memory.memory_records import MemoryLog
from tests.sinks.builders import put_topic
from tests.sinks.failover.scenes import Stage, look, stage
from tests.sinks.failover.test_unplanned import X0, X1, Y0, agree, lose_the_source, watched


def test_a_broker_of_the_source_that_died_first_hides_no_loss() -> None:
    built, seen = stage(), list[Prediction]()
    built.mirrors = False
    built.write("x", 1, 4)
    store_histories(built.ledger(), {where: History(4, 4, 0) for where in (X0, X1, Y0)})
    look(built, 1000.0)
    del built.here.logs[X1]
    look(built, 1010.0)
    lose_the_source(built)
    failover(built.scene(answers=False), accept_loss=None, agreed=seen.append)
    assert seen[0].records == 4


def test_of_a_partition_whose_end_was_never_seen_nobody_can_tell_what_is_lost() -> None:
    built = stage()
    del built.here.logs[X1]
    look(built, 1000.0)
    lose_the_source(built)
    with pytest.raises(NotNow, match="how many records of x-1 are lost"):
        failover(built.scene(answers=False), accept_loss=1000, agreed=agree)


def half_dead() -> Stage:
    """The job saw that three records wait in x-1. Then x-1 has no leader on the source; the others answer."""
    built = watched()
    del built.here.logs[X1]
    return built


def test_of_a_partition_that_does_not_answer_what_was_seen_last_counts() -> None:
    built = half_dead()
    built.write("y", 0, 2)
    found = predict(built.scene(answers=True))
    assert (found.records, found.exact, found.whole) == (3 + 2, False, False)
    assert found.at_ms == 1_700_000_000_000


def test_partition_of_a_dying_source_that_nobody_saw_is_named_and_the_others_are_counted() -> None:
    built = half_dead()
    put_topic(built.world.source, "new", 2)
    built.here.logs[TopicPartition("new", 0)] = MemoryLog()
    found = predict(built.scene(answers=True))
    assert (found.records, found.typed) == (None, "unknown")
    assert set(found.unknown) == {TopicPartition("new", 1)}
    assert losses_of(found.arrivals.values(), 0)["x"].records == 3


@pytest.mark.parametrize(("accepted", "fits"), [(None, False), (2, False), (3, True), (ANY_LOSS, True)])
def test_source_that_answers_in_part_is_failed_over_by_whoever_accepts_the_loss(
    accepted: float | None, fits: bool
) -> None:
    built = half_dead()
    if fits:
        record = failover(built.scene(answers=True), accept_loss=accepted, agreed=agree)
        assert record.state is State.FAILED_OVER
        kept = divergences(built.ledger())["x"]
        assert (list(kept.ends), list(kept.known), list(kept.lost)) == ([10, 10], [10, 13], [0, 3])
    else:
        with pytest.raises(NotNow, match="accept-loss"):
            failover(built.scene(answers=True), accept_loss=accepted, agreed=agree)


def test_message_about_a_source_that_answers_in_part_names_its_partitions_and_the_way_on() -> None:
    built = half_dead()
    with pytest.raises(NotNow, match=r"but not for x-1.*--accept-loss 3"):
        failover(built.scene(answers=True), accept_loss=None, agreed=agree)


def test_loss_that_nobody_can_tell_is_accepted_by_its_word() -> None:
    built = stage()
    del built.here.logs[X1]
    with pytest.raises(NotNow, match=r"x-1.*--accept-loss unknown"):
        failover(built.scene(answers=True), accept_loss=10**9, agreed=agree)
    record = failover(built.scene(answers=True), accept_loss=ANY_LOSS, agreed=agree)
    assert record.state is State.FAILED_OVER
    assert list(divergences(built.ledger())["x"].known) == [10, -1]


def test_source_that_dies_while_its_records_are_counted_is_predicted_from_what_was_seen_last() -> None:
    built = watched()
    built.here.reachable = False
    found = predict(built.scene(answers=True))
    assert (found.records, found.whole) == (3, False)


def test_topic_that_the_listing_of_a_dying_source_lacks_is_not_forgotten() -> None:
    built = half_dead()
    built.world.source.topics["y"].partitions = 0
    del built.here.logs[Y0]
    found = predict(built.scene(answers=True))
    assert found.records == 3
    assert TopicPartition("y", 0) in found.arrivals


def test_target_that_does_not_answer_stops_the_prediction() -> None:
    built = half_dead()
    built.there.reachable = False
    with pytest.raises(ClusterUnreachable, match="b"):
        predict(built.scene(answers=True))
