"""When a flow wants its next pass: the earliest of what its controllers want, unless they are idle or in trouble."""

from __future__ import annotations

from typing import cast

from sinks.engine.attempts import Attempts
from sinks.engine.kind_trouble import KindTrouble
from sinks.engine.model import Kind
from sinks.engine.reconcile import NEVER, KindIntervals, due_at
from sinks.faults import CoordinatorUnavailable
from sinks.kinds.controller import Controller, ControllerStatus, PassContext


class Wanting:
    """A controller of some kinds."""

    def __init__(self, *kinds: Kind) -> None:
        self.kinds = frozenset(kinds)


def due(*wanted: tuple[Wanting, float], idle: frozenset[Kind] = frozenset(), attempts: Attempts | None = None) -> float:
    controllers = [cast(Controller, controller) for controller, _ in wanted]
    status = [ControllerStatus(due=at) for _, at in wanted]
    return due_at(controllers, status, attempts or Attempts(), idle, [60.0])


def test_the_earliest_wish_counts() -> None:
    assert due((Wanting(Kind.ACL), 7.0), (Wanting(Kind.TOPIC), 9.0)) == 7.0
    assert due((Wanting(Kind.ACL), NEVER)) == 60.0


def test_a_controller_all_of_whose_kinds_are_idle_wants_nothing() -> None:
    one = Wanting(Kind.TOPIC, Kind.TOPIC_CONFIG)
    assert due((one, 1.0), idle=frozenset({Kind.TOPIC, Kind.TOPIC_CONFIG})) == 60.0
    assert due((one, 1.0), idle=frozenset({Kind.TOPIC})) == 1.0


def test_a_controller_in_trouble_is_asked_when_it_is_tried_again() -> None:
    attempts, one = Attempts(), Wanting(Kind.GROUP_OFFSET)

    def fails(context: PassContext) -> bool:
        raise CoordinatorUnavailable("away")

    context = cast(PassContext, type("At", (), {"now": 10.0, "everything": False, "requested": ()}))
    attempts.ask(cast(Controller, one), context, KindTrouble(), fails)
    assert due((one, 1.0), attempts=attempts) == 11.0


def test_kinds_that_rest_wake_after_their_interval_and_others_do_not() -> None:
    intervals = KindIntervals({Kind.ACL: 30.0, Kind.TOPIC: 10.0, Kind.SCRAM_USER: 1.0})
    intervals.polled([Kind.ACL, Kind.TOPIC, Kind.SCRAM_USER], 5.0)
    assert intervals.waking({Kind.ACL, Kind.SCRAM_USER}, 7.0) == [35.0]
