"""An old record of a signed ledger that is written again is noticed, and what was there can be signed anew."""

from __future__ import annotations

from datetime import timedelta

import pytest

from app.cli.ledger_command import lacking_signature, newest_records
from sinks.faults import LedgerUntrusted
from sinks.ledger.ledger import Entry, Ledger
from sinks.ledger.seal import TOLERATED_MS, Seal
from sinks.model.changes import Kind
from sinks.model.times import milliseconds
from tests.memory.memory_cluster import MemoryCluster
from tests.sinks.builders import NOON

TOPIC = "lockstep-ledger.a.internal"
SEAL = Seal("a->b", "a secret of sixteen or more")
PAUSED = (Entry.PAUSED, ("acl",))
LATER = timedelta(milliseconds=TOLERATED_MS + 1)


class Stage:
    """A signed ledger, and a clock."""

    def __init__(self) -> None:
        self.cluster, self.now = MemoryCluster("b"), NOON

    def opened(self) -> Ledger:
        return Ledger(TOPIC, self.cluster, self.cluster, 1, lambda: self.now, SEAL)

    def put(self, value: str | None) -> None:
        self.opened().put({PAUSED: value})

    def replay(self, number: int) -> None:
        self.cluster.append_log(TOPIC, [self.cluster.read_log(TOPIC)[number]])


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.mark.parametrize("running", [True, False], ids=["running", "started later"])
@pytest.mark.parametrize(("first", "second"), [("", None), (None, "")], ids=["remembered", "forgotten"])
def test_old_record_that_is_written_again_stops_the_flow(
    stage: Stage, first: str | None, second: str | None, running: bool
) -> None:
    if first is None:
        stage.put("")
    stage.put(first)
    stage.now += LATER
    stage.put(second)
    ledger = stage.opened()
    stage.replay(-2)
    with pytest.raises(LedgerUntrusted, match="an old record was written again"):
        ledger.refresh() if running else stage.opened()


def test_what_was_there_can_be_looked_at_and_signed_anew(stage: Stage) -> None:
    stage.put("")
    stage.put(None)
    stage.now += LATER
    stage.put("")
    stage.replay(1)
    (found,) = lacking_signature(newest_records(stage.cluster.read_log(TOPIC), SEAL), SEAL)
    assert found.row() == ("PAUSED", "acl", "")
    stage.now += LATER
    stage.cluster.append_log(TOPIC, [(found.key, SEAL.wrap(found.key, found.data, milliseconds(stage.now)))])
    assert stage.opened().paused() == {Kind.ACL}
    assert lacking_signature(newest_records(stage.cluster.read_log(TOPIC), SEAL), SEAL) == []


def test_clocks_that_differ_by_minutes_are_no_replay(stage: Stage) -> None:
    stage.put("")
    late = stage.opened()
    stage.now -= timedelta(minutes=9)
    stage.opened().put({PAUSED: None})
    stage.now += LATER
    stage.put("")
    stage.now -= timedelta(minutes=9)
    late.put({PAUSED: None})
    assert stage.opened().paused() == set()


def test_clock_that_jumped_back_by_hours_writes_nothing_that_is_taken_for_a_replay(stage: Stage) -> None:
    stage.put("")
    stage.now -= timedelta(hours=5)
    stage.put(None)
    stage.put("")
    assert stage.opened().paused() == {Kind.ACL}


def test_forged_record_with_a_later_time_makes_no_true_one_a_replay(stage: Stage) -> None:
    stage.put("")
    ((key, _),) = stage.cluster.read_log(TOPIC)
    forged = Seal("a->b", "the secret of another flow").wrap(key, None, milliseconds(NOON + 9 * LATER))
    stage.cluster.append_log(TOPIC, [(key, forged)])
    stage.replay(0)
    assert stage.opened().paused() == {Kind.ACL}


@pytest.mark.parametrize("running", [True, False], ids=["running", "started later"])
def test_record_of_an_earlier_ledger_that_is_written_again_stops_the_flow(stage: Stage, running: bool) -> None:
    """After `lockstep ledger reset`, no newer record of its key tells that it is old."""
    stage.put("")
    (old,) = [record for record in stage.cluster.read_log(TOPIC) if b"PAUSED" in record[0]]
    stage.cluster.delete_topics([TOPIC])
    stage.now += LATER
    other = stage.opened()
    other.put({(Entry.PAUSED, ("topic",)): ""})
    ledger = stage.opened()
    stage.cluster.append_log(TOPIC, [old])
    with pytest.raises(LedgerUntrusted, match="a record of an earlier ledger was written again"):
        ledger.refresh() if running else stage.opened()
