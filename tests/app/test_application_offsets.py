"""Offsets that an application is given."""

from __future__ import annotations

from app.application_offsets import offsets_to_use
from sinks.kinds.offsets.direction import GroupOffset
from sinks.kinds.offsets.translation import Answer, Method, Unanswered
from sinks.kinds.offsets.verdicts import Judgement, Verdict
from streaming.mm2.records import TopicPartition


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
