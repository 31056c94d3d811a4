"""A running job takes over what others write to a ledger, and never works without what it could not read."""

from __future__ import annotations

import pytest

from app.overrides.with_overrides import OverridesUnknown, OverrideWatch
from sinks.ledger.ledger import Entry, Ledger
from streaming.flow import Flow
from tests.memory.memory_cluster import MemoryCluster

AB = Flow("a", "b")
KEY = ("flow", "topics")


@pytest.fixture
def ledger() -> Ledger:
    cluster = MemoryCluster("b")
    return Ledger("lockstep-ledger.a.internal", cluster, cluster, 1)


def test_nothing_differs_while_the_ledger_holds_what_is_in_force(ledger: Ledger) -> None:
    watch = OverrideWatch({AB: {}})
    watch.see(AB, ledger)
    assert watch.differing() == frozenset()


def test_what_somebody_wrote_differs_once_and_again_when_it_changes(ledger: Ledger) -> None:
    watch = OverrideWatch({AB: {}})
    for value in ("one", "two"):
        ledger.put({(Entry.OVERRIDE, KEY): value})
        watch.see(AB, ledger)
        assert watch.differing() == {AB}
        assert watch.differing() == frozenset(), "a reload that was refused is not tried twice a second"


def test_what_was_adopted_differs_no_more_and_its_end_does(ledger: Ledger) -> None:
    ledger.put({(Entry.OVERRIDE, KEY): "one"})
    watch = OverrideWatch({AB: {}})
    watch.see(AB, ledger)
    watch.adopt({AB: {KEY: "one"}})
    assert watch.differing() == frozenset()
    ledger.put({(Entry.OVERRIDE, KEY): None})
    watch.see(AB, ledger)
    assert watch.differing() == {AB}


def test_flow_whose_overrides_are_unknown_waits_until_they_are_in_force(ledger: Ledger) -> None:
    ledger.put({(Entry.OVERRIDE, KEY): "one"})
    watch = OverrideWatch({AB: None})
    with pytest.raises(OverridesUnknown, match="a->b waits until the 1 overrides in its ledger are in force"):
        watch.see(AB, ledger)
    assert watch.differing() == {AB}
    watch.adopt({AB: {KEY: "one"}})
    watch.see(AB, ledger)


def test_flow_whose_ledger_turns_out_to_have_none_goes_on(ledger: Ledger) -> None:
    watch = OverrideWatch({AB: None})
    watch.see(AB, ledger)
    assert watch.differing() == frozenset()
