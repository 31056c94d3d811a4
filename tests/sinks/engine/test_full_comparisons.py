"""The flows of a job compare everything one after the other, and none of them waits for long."""

from __future__ import annotations

from threading import Lock

import pytest

from sinks.engine.flow_agenda import LATEST, FullComparisons
from sinks.faults import ClusterUnreachable
from tests.sinks.builders import World, put_topic
from tests.sinks.memory_flow import Clock, PlainListing

INTERVAL = 60.0


def found_in_order(turn: Lock, at: float = 0.0) -> FullComparisons:
    """Of a flow that was compared in full at that time."""
    full = FullComparisons(INTERVAL, turn)
    assert full.begins(at, asked=False)
    full.done(at)
    full.over()
    return full


def test_it_comes_in_its_interval() -> None:
    full = found_in_order(Lock())
    assert not full.begins(INTERVAL - 0.1, asked=False)
    assert full.begins(INTERVAL, asked=False)


def test_flows_that_are_due_at_once_take_turns() -> None:
    turn = Lock()
    one, other = found_in_order(turn), found_in_order(turn)
    assert one.begins(INTERVAL, asked=False)
    assert not other.begins(INTERVAL, asked=False)
    assert other.due_at(INTERVAL) == INTERVAL
    one.done(INTERVAL)
    one.over()
    assert other.begins(INTERVAL + 1, asked=False)


def test_no_flow_waits_for_longer_than_half_an_interval() -> None:
    turn = Lock()
    one, other = found_in_order(turn), found_in_order(turn)
    assert one.begins(INTERVAL, asked=False)
    assert not other.begins(LATEST * INTERVAL - 0.1, asked=False)
    assert other.begins(LATEST * INTERVAL, asked=False)
    other.over()
    assert not turn.acquire(blocking=False)


def test_who_asks_waits_for_no_other_flow() -> None:
    turn = Lock()
    assert turn.acquire(blocking=False)
    assert found_in_order(turn).begins(1.0, asked=True)


def test_one_that_broke_off_is_begun_again_whoever_has_the_turn() -> None:
    turn = Lock()
    full = found_in_order(turn)
    assert full.begins(INTERVAL, asked=False)
    full.over()
    assert turn.acquire(blocking=False)
    assert full.begins(INTERVAL + 1, asked=False)


def test_a_pass_that_fails_gives_its_turn_back(monkeypatch: pytest.MonkeyPatch) -> None:
    world, turn = World(clock=Clock()), Lock()
    put_topic(world.source, "x")
    world.settle()
    world.reconcile._agenda.full = FullComparisons(INTERVAL, turn)

    def silent(*_: object) -> None:
        raise ClusterUnreachable("silent for a moment")

    monkeypatch.setattr(PlainListing, "list_topics", silent)
    with pytest.raises(ClusterUnreachable):
        world.run_pass(everything=True)
    assert turn.acquire(blocking=False)
