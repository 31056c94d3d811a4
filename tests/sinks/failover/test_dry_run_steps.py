"""A dry run says what would be done, also where only the way back is open."""

from __future__ import annotations

import pytest

from sinks.failover.commands import failover, fence, foreseen, promote, unfence
from sinks.failover.predicted_loss import predict
from sinks.ledger.failover_record import Command, NotNow, State, Step
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition
from streaming.mm2.replication_policy import IdentityReplicationPolicy
from tests.memory.memory_records import MemoryLog
from tests.sinks.builders import put_topic
from tests.sinks.failover.scenes import Stage, look, stage
from tests.sinks.failover.test_records_since_drain import drained
from tests.sinks.failover.test_shared_names import copied, somebody_makes_another

CUTOVER = (Command.FENCE, Command.DRAIN, Command.PROMOTE)


def fenced_with_shared_names() -> Stage:
    built = copied()
    fence(built.scene())
    somebody_makes_another(built)
    return built


def test_dry_unfence_says_what_is_taken_away_while_topics_share_a_name() -> None:
    built = fenced_with_shared_names()
    found = foreseen(built.scene(), [Command.UNFENCE])
    assert (list(found.steps), found.then) == ([(Command.UNFENCE, Step.LIFT_FENCE)], State.MIRRORING)
    assert found.topics == ["x", "y"]
    assert unfence(built.scene()).state is State.MIRRORING


def test_dry_cutover_refuses_with_the_reason_while_topics_share_a_name() -> None:
    with pytest.raises(LockstepError, match="would all be"):
        foreseen(fenced_with_shared_names().scene(), CUTOVER)


def test_dry_unfence_is_about_the_fenced_topics_alone() -> None:
    built = stage()
    assert foreseen(built.scene(), [Command.UNFENCE]).topics == []
    fence(built.scene(), ("y",))
    assert foreseen(built.scene(), [Command.UNFENCE]).topics == ["y"]


@pytest.mark.parametrize("command", [Command.FENCE, Command.UNFENCE])
def test_dry_run_answers_where_each_topic_has_its_name_on_both_sides(command: Command) -> None:
    built = stage(policy=IdentityReplicationPolicy())
    for topic in ("x", "y"):
        put_topic(built.world.target, topic, 1)
    fence(built.scene())
    assert foreseen(built.scene(), [command]).topics == ["x", "y"]


def test_dry_cutover_goes_on_from_where_the_flow_is() -> None:
    found = foreseen(drained().scene(), CUTOVER)
    assert found.then is State.PROMOTED
    assert found.topics == ["x", "y"]


def test_cutover_and_failover_are_about_the_same_topics_and_heartbeats_are_not_among_them() -> None:
    """MM2 writes heartbeats and copies of other clusters to the source; a failover loses nothing of theirs."""
    built = stage()
    for topic, copy in (("heartbeats", "a.heartbeats"), ("b.z", "a.b.z")):
        put_topic(built.world.source, topic, 1)
        put_topic(built.world.target, copy, 1)
        built.here.logs[TopicPartition(topic, 0)] = MemoryLog()
        built.there.logs[TopicPartition(copy, 0)] = MemoryLog()
    built.mirrors = False
    built.write("heartbeats", 0, 5)
    built.write("x", 0, 2)
    look(built, 1000.0)
    assert foreseen(built.scene(), [Command.FAIL_OVER]).topics == foreseen(built.scene(), CUTOVER).topics == ["x", "y"]
    answered, silent = (predict(built.scene(answers=answers)) for answers in (True, False))
    assert answered.known.keys() == silent.known.keys() == {"x", "y"}
    assert (answered.records, {where.topic for where in silent.arrivals}) == (2, {"x", "y"})


def test_dry_failover_is_about_the_topics_whose_ends_were_seen_and_the_way_back_about_those_that_diverged() -> None:
    built = stage()
    look(built, 1000.0)
    built.world.source.reachable = built.here.reachable = built.world.source_acls.reachable = False
    assert foreseen(built.scene(), [Command.FAIL_OVER]).topics == ["x", "y"]
    failover(built.scene(answers=False), accept_loss=None, agreed=lambda prediction: None)
    found = foreseen(built.scene(), [Command.INVALIDATE, Command.REVERSE])
    assert (found.then, found.topics) == (State.REVERSING, ["x", "y"])


def test_dry_run_of_what_cannot_begin_says_so() -> None:
    built = drained()
    promote(built.scene())
    with pytest.raises(NotNow, match="`fence` cannot begin"):
        foreseen(built.scene(), [Command.FENCE])
