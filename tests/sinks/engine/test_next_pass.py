"""When a flow wants its next pass: the earliest of what its controllers want, unless they are idle or in trouble."""

from __future__ import annotations

from sinks.engine.flow_agenda import FlowAgenda, KindIntervals, Kinds
from sinks.faults import CoordinatorUnavailable
from sinks.model.changes import Kind
from sinks.model.times import NEVER_AT

ACLS, TOPICS, GROUPS = (
    frozenset({Kind.ACL}),
    frozenset({Kind.TOPIC, Kind.TOPIC_CONFIG}),
    frozenset({Kind.GROUP_OFFSET}),
)


def due(*polls: tuple[Kinds, float], idle: Kinds = frozenset(), agenda: FlowAgenda | None = None) -> float:
    agenda = agenda or FlowAgenda()
    return agenda.due_at(0.0, polls, idle=idle, awake=frozenset(Kind), others=[60.0])


def test_the_earliest_wish_counts() -> None:
    assert due((ACLS, 7.0), (TOPICS, 9.0)) == 7.0
    assert due((ACLS, NEVER_AT)) == 60.0


def test_a_controller_all_of_whose_kinds_are_idle_wants_nothing() -> None:
    assert due((TOPICS, 1.0), idle=TOPICS) == 60.0
    assert due((TOPICS, 1.0), idle=frozenset({Kind.TOPIC})) == 1.0


def test_a_controller_in_trouble_is_asked_when_it_is_tried_again() -> None:
    agenda = FlowAgenda()
    agenda.of[GROUPS].failed(CoordinatorUnavailable("away"), 10.0)
    assert due((GROUPS, 1.0), agenda=agenda) == 11.0


def test_kinds_that_rest_wake_after_their_interval_and_others_do_not() -> None:
    intervals = KindIntervals({Kind.ACL: 30.0, Kind.TOPIC: 10.0, Kind.SCRAM_USER: 1.0})
    intervals.note_polled([Kind.ACL, Kind.TOPIC, Kind.SCRAM_USER], 5.0)
    assert intervals.waking({Kind.ACL, Kind.SCRAM_USER}, 7.0) == [35.0]
