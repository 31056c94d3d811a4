"""The last drill: kept in the ledger, audited, and reported by passes."""

from __future__ import annotations

import pytest

from sinks.failover.last_drill import DRILL_KEY, last_drill
from sinks.failover.states import State
from tests.sinks.builders import world_in_step
from tests.sinks.failover.scenes import stage

INTERVAL = 60.0


def test_a_drill_is_kept_and_audited_and_leaves_the_state_alone() -> None:
    built = stage()
    built.scene().journal.note_drill({"topic": "d", "agrees": False, "error": "MM2 is not there"})
    assert last_drill(built.ledger()) == {
        "topic": "d",
        "agrees": False,
        "error": "MM2 is not there",
        "who": "me",
        "at": "2024-02-29T12:00:00Z",
    }
    event = built.world.events()[-1]
    assert (event.kind, event.key, built.record().state) == ("failover", ("drill", "d"), State.MIRRORING)


def test_a_pass_reports_the_last_drill() -> None:
    built = stage()
    built.scene().journal.note_drill({"topic": "d", "agrees": True})
    assert (built.world.run_pass(after=INTERVAL).failover.drill or {})["agrees"]


@pytest.mark.parametrize("text", ["{", "[]", '"x"'])
def test_one_that_cannot_be_read_stops_nothing(text: str) -> None:
    world = world_in_step()
    world.ledger().put({DRILL_KEY: text})
    assert world.run_pass(after=INTERVAL).failover.drill is None
