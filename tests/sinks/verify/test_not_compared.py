"""What cannot be compared at all is named: topics with one name on the target, partitions that only a copy has."""

from __future__ import annotations

from sinks.kinds.offsets.memory import OffsetMemory
from sinks.kinds.shared_listings import list_both
from sinks.verify.partition_verdicts import Difference, PartitionVerdict
from sinks.verify.what_to_compare import ComparisonScope, LogSurvey, SurveyedSide, survey_logs
from streaming.mm2.records import TopicPartition
from tests.memory.memory_records import MemoryLog
from tests.sinks.builders import World, flow_settings, put_topic
from tests.sinks.failover.test_shared_names import OneCase
from tests.sinks.verify.verified_world import VerifiedWorld, records


def surveyed(made: VerifiedWorld, *topics: str) -> LogSurvey:
    world = made.world
    listed = list_both(world.settings, world.source, world.target)
    sides = SurveyedSide(world.source, world.source_records), SurveyedSide(world.target, world.target_records)
    return survey_logs(world.settings, *sides, listed, OffsetMemory(), ComparisonScope(topics))


def two_of_one_name() -> VerifiedWorld:
    """`x` and `X`, which are both `a.x`, and `y`."""
    made = VerifiedWorld(world=World(flow_settings(policy=OneCase())))
    made.put("y", records(20), records(20))
    made.put("x", records(20), records(5))
    put_topic(made.world.source, "X")
    made.world.source_records.logs[TopicPartition("X", 0)] = MemoryLog(start=0, end=0)
    return made


def with_a_partition_more(count: int) -> VerifiedWorld:
    """The copy of `x` has another partition, with so many records."""
    made = VerifiedWorld()
    made.put("x", records(20), records(20))
    made.world.target.create_partitions({"a.x": 2})
    made.world.target_records.logs[TopicPartition("a.x", 1)] = MemoryLog(start=0, end=count)
    return made


def test_topics_that_share_a_name_on_the_target_are_unverifiable_each() -> None:
    found = surveyed(two_of_one_name())
    assert [(one.where.topic, one.verdict) for one in found.reports] == [
        ("X", PartitionVerdict.UNVERIFIABLE),
        ("x", PartitionVerdict.UNVERIFIABLE),
    ]
    assert "x would be a.x on the target as well" in (found.reports[0].reason or "")
    assert [plan.where.topic for plan in found.plans] == ["y"]
    (named,) = surveyed(two_of_one_name(), "x").reports
    assert named.verdict is PartitionVerdict.UNVERIFIABLE


def test_records_in_a_partition_that_only_the_copy_has_are_extra() -> None:
    (found,) = surveyed(with_a_partition_more(50)).reports
    assert (found.where, found.verdict) == (TopicPartition("x", 1), PartitionVerdict.DIFFERENT)
    assert (found.differences, found.is_whole, found.checked) == ({Difference.EXTRA: 50}, False, None)
    assert surveyed(with_a_partition_more(0)).reports == []


def test_the_job_counts_both_as_not_compared() -> None:
    made = two_of_one_name()
    made.run(3)
    assert made.progress.status(made.now).partitions == {"NOT_COMPARED": 2, "VERIFIED": 1}
    more = with_a_partition_more(50)
    more.run(3)
    assert more.progress.status(more.now).partitions == {"NOT_COMPARED": 1, "VERIFIED": 1}
