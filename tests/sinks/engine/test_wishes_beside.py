"""A flow that another process leads still says what it wants, to the flows that this process leads."""

from __future__ import annotations

from contextlib import suppress

import pytest

from sinks.every_kind.wishes import Wishes
from sinks.faults import NotLeading
from sinks.kafka.ports.acl_binding import AclBinding
from sinks.kinds.acls.controller import REST
from sinks.ledger.lease import Unled
from tests.memory.memory_acls import MemoryAcls
from tests.sinks.builders import World
from tests.sinks.engine.test_wishes import GROUP, made_by_hand, passes, restarted, two_worlds
from tests.sinks.kinds.acls.acl_builders import acl

MINUTE = 60.0


class LedElsewhere(Unled):
    """Another process leads."""

    def leads(self) -> bool:
        raise NotLeading("another process leads it")


def one_leads() -> tuple[World, World]:
    """This process leads a->b alone; until a moment ago one led both."""
    one, other = two_worlds()
    passes(one, other)
    other.leadership = LedElsewhere()
    restarted(one, other)
    return one, other


def rounds(one: World, other: World, count: int = 4) -> None:
    for _ in range(count):
        one.run_pass(after=MINUTE)
        other.clock.now += MINUTE
        with suppress(NotLeading):
            other.reconcile.run_pass()


def test_acl_that_neither_wants_goes_although_another_process_leads_one_of_the_flows() -> None:
    one, other = one_leads()
    for world in (one, other):
        world.source_acls.bindings.remove(GROUP)
    rounds(one, other)
    assert GROUP not in one.target_acls.bindings


def test_acl_that_a_flow_wants_which_another_process_leads_stays() -> None:
    one, other = one_leads()
    one.source_acls.bindings.remove(GROUP)
    rounds(one, other)
    assert GROUP in one.target_acls.bindings
    assert [refusal.reason for refusal in one.run_pass(after=MINUTE).plan.refused] == ["still wanted by c->b"]


def test_acl_stays_that_a_flow_wanted_which_a_process_leads_by_itself_and_whose_source_shows_none_now() -> None:
    one, other = two_worlds()
    made_by_hand(other)
    other.wishes = Wishes()
    other.restart()
    passes(one)
    passes(other)
    other.leadership = LedElsewhere()
    restarted(one, other)
    other.source_acls.bindings = set()
    one.source_acls.bindings.remove(GROUP)
    rounds(one, other)
    assert GROUP in one.target_acls.bindings


def test_flow_that_another_process_leads_writes_nothing_when_it_says_what_it_wants() -> None:
    one, other = one_leads()
    records = {topic: len(kept.records) for topic, kept in one.target.topics.items()}
    one.target.writes = one.target_acls.writes = 0
    other.source_acls.bindings.add(GROUP)
    other.target_acls.bindings.discard(GROUP)
    for _ in range(3):
        other.clock.now += MINUTE
        with suppress(NotLeading):
            other.reconcile.run_pass()
    assert (one.target.writes, one.target_acls.writes) == (0, 0)
    assert {topic: len(kept.records) for topic, kept in one.target.topics.items()} == records


def test_flow_that_is_alone_reads_nothing_while_another_process_leads_it() -> None:
    world = World()
    world.leadership = LedElsewhere()
    world.restart()
    world.source.reachable = False
    with suppress(NotLeading):
        world.run_pass()
    assert world.reconcile._published_at == float("-inf")


def test_acls_are_not_read_again_because_another_flow_wants_more_while_no_deletion_waits_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, other = two_worlds()
    passes(one, other)
    other.source_acls.bindings.add(acl("ALLOW READ User:bob TOPIC x"))
    passes(other)
    read, describe = list[str](), MemoryAcls.describe

    def noted(acls: MemoryAcls) -> list[AclBinding]:
        read.append(acls.alias)
        return describe(acls)

    monkeypatch.setattr(MemoryAcls, "describe", noted)
    one.run_pass(after=REST)
    assert read == ["a"]
