"""The last drill: kept in the ledger, audited, and reported by passes."""

from __future__ import annotations

import orjson
import pytest

from sinks.failover.drill import DrillResult, GroupDrill
from sinks.failover.journal import DRILL_KEY, last_drill
from sinks.failover.preflight import FailoverStatus
from sinks.failover.readiness import readiness
from sinks.failover.readiness_facts import ReadinessFacts
from sinks.flow_settings import FailoverRules
from sinks.ledger.failover_record import FailoverRecord, State
from streaming.errors import LockstepError
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
    drill = built.world.run_pass(after=INTERVAL).failover.drill
    assert drill is not None
    assert drill["agrees"]


def test_a_drill_that_came_to_its_end_is_kept_whole() -> None:
    result = DrillResult("d", 3, 3, None, [GroupDrill("g", None, 1, 0), GroupDrill("h", 2, 1, 0)], {"fence": 0.25})
    built = stage()
    built.scene().journal.note_drill(result.as_json())
    assert last_drill(built.ledger()) == {**result.as_json(), "who": "me", "at": "2024-02-29T12:00:00Z"}


DEEP = "[" * 300 + "]" * 300
WHOLE = '"topic": "d", "agrees": true, "who": "me", "at": "2024-02-29T12:00:00Z"'
FORGED = [
    f'{{"x": {DEEP}}}',
    '{"x": 1}',
    WHOLE.replace("true", "1").join("{}"),
    WHOLE.replace("2024-02-29", "yesterday").join("{}"),
    f'{{{WHOLE}, "error": {DEEP}}}',
    f'{{{WHOLE}, "loss": {{"predicted": 1, "measured": "2"}}}}',
    f'{{{WHOLE}, "groups": [{{"group": {DEEP}, "bound": 1, "read_twice": 0, "skipped": 0}}]}}',
    f'{{{WHOLE}, "groups": {{}}}}',
    f'{{{WHOLE}, "seconds": {{"fence": {DEEP}}}}}',
]


@pytest.mark.parametrize("text", ["{", "[]", '"x"', *FORGED])
def test_one_that_cannot_be_read_stops_nothing(text: str) -> None:
    world = world_in_step()
    world.ledger().put({DRILL_KEY: text})
    assert world.run_pass(after=INTERVAL).failover.drill is None


def test_of_what_somebody_put_into_a_drill_nothing_but_its_own_fields_is_shown_and_texts_are_cut() -> None:
    built = stage()
    built.ledger().put({DRILL_KEY: f'{{{WHOLE}, "x": {DEEP}, "error": "{"e" * 1_000_000}"}}'})
    found = last_drill(built.ledger())
    assert found is not None
    assert (len(found), len(found["error"])) == (5, 4097)
    orjson.dumps(FailoverStatus(drill=found).as_json(readiness(ReadinessFacts(FailoverRules()))))


@pytest.mark.parametrize("field", ['"who":""', '"why":""', '"topics":[]'])
def test_a_failover_whose_texts_are_none_is_not_believed(field: str) -> None:
    name, _ = field.split(":")
    text = FailoverRecord().to_text()
    assert field in text
    with pytest.raises(LockstepError, match="cannot be read"):
        FailoverRecord.from_text(text.replace(field, f"{name}:[{DEEP}]"))
