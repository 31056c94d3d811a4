"""A flow goes on only with a ledger that has all that was written to it, and that keeps it."""

from __future__ import annotations

import pytest

from sinks.engine.ledger_entries import Entry
from sinks.faults import LedgerUntrusted
from tests.sinks.builders import World, put_topic, set_config, world_in_step


@pytest.fixture
def world() -> World:
    return world_in_step()


def test_ledger_that_lost_what_this_process_wrote_stops_the_flow(world: World) -> None:
    put_topic(world.source, "z")
    world.run_pass()
    assert "a.z" in world.target.topics
    world.target.topics[world.settings.internal.ledger].records.pop()
    with pytest.raises(LedgerUntrusted, match="lost its tail"):
        world.run_pass(everything=True)


def test_what_was_forgotten_on_purpose_may_be_compacted_away(world: World) -> None:
    ledger, place = world.ledger(), (Entry.PAUSED, ("acl",))
    ledger.put({place: "true"})
    ledger.put({place: None})
    del world.target.topics[world.settings.internal.ledger].records[-2:]
    ledger.refresh()
    assert ledger.paused() == set()


def test_no_pass_goes_on_between_the_full_comparisons_that_a_ledger_stops(world: World) -> None:
    world.target.topics[world.settings.internal.ledger].overrides["cleanup.policy"] = "delete"
    set_config(world.source, "x", "retention.ms", "2")
    with pytest.raises(LedgerUntrusted):
        world.run_pass(everything=True)
    with pytest.raises(LedgerUntrusted):
        world.run_pass(after=1.0)
    assert world.target.writes == 0
