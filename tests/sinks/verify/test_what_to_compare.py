"""From where on a partition is compared."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from sinks.faults import Observed
from sinks.flow_settings import Copier
from sinks.kafka.ports.groups import LogRange
from sinks.kafka.ports.record_reader import PartitionTime
from sinks.kinds.offsets.memory import OffsetMemory
from sinks.kinds.shared_listings import list_both
from sinks.verify.partition_check import PartitionPlan
from sinks.verify.what_to_compare import (
    ComparisonScope,
    SurveyedSide,
    _since,
    changed_meanwhile,
    ids_on_both,
    survey_logs,
)
from sinks.verify.windows import Window, cut
from streaming.mm2.records import TopicPartition
from streaming.mm2.replication_policy import IdentityReplicationPolicy
from tests.memory.memory_cluster import GONE
from tests.memory.memory_records import MemoryLog, MemoryRecords
from tests.sinks.builders import World, flow_settings, put_topic
from tests.sinks.verify.verified_world import VerifiedWorld, records

X = TopicPartition("x", 0)


class Untimed(MemoryRecords):
    """A cluster that finds no offset by its time."""

    def offsets_for_times(self, moments: Collection[PartitionTime]) -> Observed[PartitionTime, int | None]:
        return Observed({}, dict.fromkeys(moments, GONE))


def since(records: MemoryRecords, since_ms: int) -> int:
    for number in range(9):
        records.logs.setdefault(X, MemoryLog()).append(b"k", b"v", 1000 + number)
    return _since(records, {X: LogRange(0, 9)}, OffsetMemory(), ComparisonScope(since_ms=since_ms))[X]


def test_a_partition_is_compared_from_the_first_record_of_that_time_on() -> None:
    assert since(MemoryRecords("a"), 1004) == 4


def test_of_a_partition_without_a_record_as_young_nothing_is_compared() -> None:
    assert since(MemoryRecords("a"), 2000) == 9


def test_a_partition_of_which_nobody_can_tell_where_that_time_is_is_compared_whole() -> None:
    assert since(Untimed("a"), 1004) == 0


# What was read is what was surveyed: no start of a log moved meanwhile, and no topic was recreated.


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


def test_beside_a_copier_that_preserves_offsets_all_that_both_logs_have_is_one_closed_window() -> None:
    policy = IdentityReplicationPolicy()
    world = World(replace(flow_settings(policy=policy), copier=Copier.OFFSET_PRESERVING))
    for cluster, reader, log in (
        (world.source, world.source_records, MemoryLog(start=2, end=40)),
        (world.target, world.target_records, MemoryLog(start=5, end=30)),
    ):
        put_topic(cluster, "x")
        reader.logs[X] = log
    listed = list_both(world.settings, world.source, world.target)
    sides = SurveyedSide(world.source, world.source_records), SurveyedSide(world.target, world.target_records)
    (plan,) = survey_logs(world.settings, *sides, listed, OffsetMemory(), ComparisonScope()).plans
    assert [window for window in plan.windows if window.closed] == [Window(5, 30, 5, 30)]
