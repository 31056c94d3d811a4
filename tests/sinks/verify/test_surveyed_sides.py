"""What was read is what was surveyed: no start of a log moved meanwhile, and no topic was recreated."""

from __future__ import annotations

from sinks.kafka.ports.groups import LogRange
from sinks.verify.partition_check import PartitionPlan
from sinks.verify.surveyed_sides import SurveyedSide, changed_meanwhile, ids_on_both
from sinks.verify.windows import cut
from streaming.mm2.records import TopicPartition
from tests.sinks.verify.verified_world import VerifiedWorld, records

X = TopicPartition("x", 0)


def changed(made: VerifiedWorld, recreated: str | None = None, started: bool = False) -> set[TopicPartition]:
    """Of a topic that had ten records on both sides when it was surveyed."""
    made.put("x", records(10), records(10))
    world = made.world
    sides = SurveyedSide(world.source, world.source_records), SurveyedSide(world.target, world.target_records)
    ids = ids_on_both(world.source, world.target, {"x": "a.x"})
    log = LogRange(0, 10)
    plan = PartitionPlan(X, TopicPartition("a.x", 0), log, log, cut((), (), log, log))
    if recreated:
        cluster = world.source if recreated == "x" else world.target
        cluster.topics[recreated].id = "another"
    if started:
        made.put("x", records(5, first=5), records(10), starts=(5, 0))
    return changed_meanwhile([plan], *sides, ids)


def test_a_topic_that_was_recreated_on_either_side_while_it_was_read_was_not_compared() -> None:
    assert changed(VerifiedWorld()) == set()
    assert changed(VerifiedWorld(), recreated="x") == {X}
    assert changed(VerifiedWorld(), recreated="a.x") == {X}


def test_a_log_whose_start_moved_while_it_was_read_was_not_compared() -> None:
    assert changed(VerifiedWorld(), started=True) == {X}
