"""Ctrl-C while `apply` writes: what became of the request under way is recorded, and no other is sent."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from typing import Any, cast

import pytest

from app.cli.plan_command import REVIEW_AGAIN, Planned, write
from app.held_interrupts import SIGNALS, held_interrupts
from app.single_pass import SinglePass
from sinks.kafka.ports.cluster import Faults, TopicSpec
from sinks.ledger.ledger_entries import Entry
from sinks.model.changes import Kind
from tests.memory.memory_acls import MemoryAcls
from tests.sinks.builders import World, put_topic
from tests.sinks.kinds.acls.acl_builders import acl


def send(number: signal.Signals = signal.SIGINT) -> None:
    os.kill(os.getpid(), number)


def test_what_became_of_the_request_under_way_is_recorded_and_no_other_is_sent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    world = World(source_acls=MemoryAcls("a", {acl("ALLOW READ User:alice TOPIC x")}))
    put_topic(world.source, "x")
    create = world.target.create_topics

    def interrupted(specs: Mapping[str, TopicSpec]) -> Faults:
        send()
        return create(specs)

    monkeypatch.setattr(world.target, "create_topics", interrupted)
    one = SinglePass(world.settings, cast(Any, None), world.reconcile, tuple(world.controllers))
    with pytest.raises(KeyboardInterrupt):
        write(Planned(one, one.compare()))
    ledger = world.ledger()
    assert ledger.owned(Kind.TOPIC) == {("a.x",)}
    assert ledger.values(Entry.INTENT) == {}
    assert world.target_acls.bindings == set()
    assert {(event.key, event.result) for event in world.events()} == {(("a.x",), "applied")}
    assert capsys.readouterr().err == "a->b: interrupted: 1 of 2 changes sent; `lockstep apply` again sends the rest\n"


def test_a_reviewed_plan_that_was_interrupted_needs_a_new_plan(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    world = World()
    put_topic(world.source, "x")
    monkeypatch.setattr(world.target, "create_topics", lambda specs: send() or Faults())
    one = SinglePass(world.settings, cast(Any, None), world.reconcile, tuple(world.controllers))
    with pytest.raises(KeyboardInterrupt):
        write(Planned(one, one.compare()), again=REVIEW_AGAIN)
    said = capsys.readouterr().err
    assert said.endswith("sent; make a new plan for the rest: `lockstep plan --out FILE`\n")


@pytest.mark.parametrize("number", SIGNALS)
def test_first_signal_waits_for_the_end_and_a_second_one_does_not(number: signal.Signals) -> None:
    steps = []
    with pytest.raises(KeyboardInterrupt), held_interrupts():
        send(number)
        steps.append("first")
    with pytest.raises(KeyboardInterrupt), held_interrupts():
        send(number)
        send(number)
        steps.append("second")
    assert steps == ["first"]


def test_signals_are_as_before_afterwards() -> None:
    before = [signal.getsignal(number) for number in SIGNALS]
    with held_interrupts():
        assert [signal.getsignal(number) for number in SIGNALS] != before
    assert [signal.getsignal(number) for number in SIGNALS] == before


@pytest.mark.parametrize("number", SIGNALS)
def test_signal_that_is_ignored_goes_on_being_ignored(number: signal.Signals) -> None:
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with held_interrupts() as end_here:
            send(number)
            send(number)
            end_here()
        assert signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, before)


def test_what_is_raised_meanwhile_is_not_hidden_by_a_signal() -> None:
    with pytest.raises(ValueError, match="its own"), held_interrupts():
        send()
        raise ValueError("its own")
