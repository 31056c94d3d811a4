"""What the job knows of compared records outlives a round in which something could not be looked at."""

from __future__ import annotations

from sinks.kafka.ports.groups import LogRange
from sinks.verify.flow_progress import FlowProgress
from sinks.verify.partition_verdicts import Difference, FoundDifference
from streaming.mm2.records import TopicPartition

PLACE = (TopicPartition("t", 0), TopicPartition("a.t", 0))
LOGS = {PLACE: (LogRange(0, 10), LogRange(0, 7))}
MISSING = {("t", "MISSING"): 3}


def with_a_difference() -> FlowProgress:
    progress = FlowProgress()
    progress.recognize({"t": ("1", "2")})
    progress.see(LOGS, [PLACE], 0, 0.0, 0.0)
    progress.partitions[PLACE[0]].known.spots.append(FoundDifference(Difference.MISSING, 4, None, 3))
    return progress


def test_a_partition_without_a_leader_keeps_its_differences() -> None:
    progress = with_a_difference()
    progress.see({}, [PLACE], 0, 1.0, 1.0)
    assert dict(progress.status(1.0).differences) == MISSING


def test_a_topic_whose_id_is_not_known_now_is_no_other_one() -> None:
    progress = with_a_difference()
    assert not progress.recognize({"t": ("", "2")})
    assert not progress.recognize({"t": ("1", "")})
    assert dict(progress.status(1.0).differences) == MISSING
    assert progress.recognize({"t": ("3", "2")}) == {"t"}
    assert not progress.status(1.0).differences


def test_a_partition_that_is_listed_no_more_is_forgotten() -> None:
    progress = with_a_difference()
    progress.see({}, [], 0, 1.0, 1.0)
    assert not progress.partitions
