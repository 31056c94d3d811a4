"""Offsets that an application is given."""

from __future__ import annotations

from app.application_offsets import ends_of, offsets_to_use
from sinks.kafka.ports.groups import LogRange
from sinks.kinds.offsets.direction import GroupOffset
from sinks.kinds.offsets.memory import OffsetMemory
from sinks.kinds.offsets.translation import Answer, Method, Unanswered
from sinks.kinds.offsets.verdicts import Judgement, Verdict
from streaming.mm2.records import TopicPartition
from tests.memory.memory_groups import MemoryGroups
from tests.sinks.builders import flow_settings


def row(partition: int, verdict: Verdict, answer: Answer | Unanswered) -> GroupOffset:
    return GroupOffset("g", TopicPartition("a.t", partition), 9, answer, Judgement(verdict, ""))


def test_offset_that_was_found_for_a_group_behind_the_source_s_end_is_not_given_to_an_application() -> None:
    found = Answer(9, 7, Method.CONSERVATIVE, 3)
    rows = [
        row(0, Verdict.PENDING, found),
        row(1, Verdict.ERROR, found),
        row(2, Verdict.TARGET_AHEAD, found),
        row(3, Verdict.TOO_OLD, Unanswered.TOO_OLD),
    ]
    assert offsets_to_use(rows) == {TopicPartition("a.t", 0): 7, TopicPartition("a.t", 2): 7}


def test_target_s_end_answers_no_reader_while_the_source_has_lost_its_tail() -> None:
    where, remote = TopicPartition("t", 0), TopicPartition("a.t", 0)
    source = MemoryGroups("a", {}, logs={where: LogRange(0, 100)})
    groups, memory = (source, MemoryGroups("b", {}, logs={remote: LogRange(0, 100)})), OffsetMemory()
    assert ends_of(flow_settings(), groups, memory, where, remote).replication_alone
    source.logs[where] = LogRange(0, 60)
    assert not ends_of(flow_settings(), groups, memory, where, remote).replication_alone
