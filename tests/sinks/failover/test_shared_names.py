"""Topics to which a policy gives one name on the target: MM2 copies them all, so no failover may pass over them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sinks.failover.commands import cutover, drain, failover, fence, promote, unfence
from sinks.failover.failing_back import failback
from sinks.failover.predicted_loss import predict
from sinks.failover.scene import Scene
from sinks.failover.source_end_offsets import SourceEndOffsetStore
from sinks.ledger.failover_record import State
from sinks.ledger.kept_divergences import divergences
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition
from streaming.mm2.replication_policy import DefaultReplicationPolicy
from tests.inline_work import inline
from tests.memory.memory_records import MemoryLog
from tests.sinks.builders import World, flow_settings, put_topic
from tests.sinks.failover.scenes import Stage, known_end_offsets, look


class OneCase(DefaultReplicationPolicy):
    """Remote topics in lower case."""

    def format_remote_topic(self, source_cluster_alias: str, topic: str) -> str:
        return super().format_remote_topic(source_cluster_alias, topic).lower()


def copied() -> Stage:
    """Topics x and y, ten records each, copied."""
    built = Stage(World(flow_settings(policy=OneCase())))
    for where in built.here.logs:
        built.write(where.topic, where.partition, 10)
    built.copy()
    return built


def somebody_makes_another(built: Stage) -> None:
    """`X`, which is `a.x` as well; MM2 goes on with x, whose last seven records are not on the target yet."""
    put_topic(built.world.source, "X", 2)
    for number in range(2):
        built.here.logs[TopicPartition("X", number)] = MemoryLog()
    built.mirrors = False
    built.write("x", records=7)


def accepting(scene: Scene) -> object:
    return failover(scene, accept_loss=100, agreed=lambda prediction: None)


@pytest.mark.parametrize("command", [fence, cutover, accepting, lambda scene: fence(scene, ("y",))])
def test_no_failover_begins_while_topics_share_a_name(command: Callable[[Scene], object]) -> None:
    built = copied()
    somebody_makes_another(built)
    with pytest.raises(LockstepError, match=r"on b: X and x would all be a\.x\. .* \(topics\.exclude\)"):
        command(built.scene())
    assert built.record().state is State.MIRRORING
    assert built.world.source_acls.bindings == set()


def test_flow_is_not_drained_while_topics_share_a_name_and_its_fence_can_be_taken_back() -> None:
    built = copied()
    fence(built.scene())
    somebody_makes_another(built)
    with pytest.raises(LockstepError, match="would all be"):
        drain(built.scene())
    assert built.record().state is State.FENCED
    assert unfence(built.scene()).state is State.MIRRORING


def test_flow_is_not_promoted_while_topics_share_a_name() -> None:
    built = copied()
    fence(built.scene())
    drain(built.scene())
    somebody_makes_another(built)
    with pytest.raises(LockstepError, match="would all be"):
        promote(built.scene())
    assert built.record().state is State.DRAINED


def test_nobody_can_tell_what_is_lost_of_topics_that_share_a_name() -> None:
    built = copied()
    somebody_makes_another(built)
    prediction = predict(built.scene(answers=True))
    assert prediction.typed == "unknown"
    assert {where.topic for where, one in prediction.arrivals.items() if one.problem} == {"x", "X"}


def failed_over() -> Stage:
    """Without the source, whose ends were kept since it has both topics."""
    built = copied()
    keeper = SourceEndOffsetStore(built.here, 5.0, beside=inline)
    look(built, 1000.0, keeper)
    somebody_makes_another(built)
    look(built, 1010.0, keeper)
    for one in (built.world.source, built.world.source_acls, built.here):
        one.reachable = False
    assert predict(built.scene(answers=False)).typed == "unknown"
    failover(built.scene(answers=False), accept_loss=None, agreed=lambda prediction: None)
    return built


def test_ends_of_topics_that_share_a_name_are_kept_and_so_is_where_they_diverged() -> None:
    built = failed_over()
    seen = known_end_offsets(built.ledger())
    assert seen is not None
    assert {topic: tuple(ends) for topic, ends in seen.ends.items()} == {"x": (17, 10), "X": (0, 0), "y": (10,)}
    assert divergences(built.ledger()).keys() == {"x", "X", "y"}


def test_records_of_topics_that_share_a_name_are_counted_on_the_way_back_as_the_most_that_it_can_be() -> None:
    built = failed_over()
    for one in (built.world.source, built.world.source_acls, built.here):
        one.reachable = True
    # A younger one of the other topic came to the shared copy last.
    built.here.logs[TopicPartition("X", 0)].append(b"X", b"X", 9000)
    built.there.logs[TopicPartition("a.x", 0)].append(b"X", b"X", 9000)
    failback(built.scene(), export=None, discard=7, write_reverse=lambda: None)
    assert any("at most 7 records on a never reached b: x 7" in line for line in built.said)
