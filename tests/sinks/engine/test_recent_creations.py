"""What the target took and does not show yet is not created once more, and what was shown and is gone is, at once."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import pytest

from sinks.every_kind.kinds_agenda import LAGS
from sinks.kafka.ports.acl_binding import AclBinding
from sinks.model.changes import Kind, Op
from tests.memory.memory_acls import MemoryAcls
from tests.memory.memory_cluster import MemoryCluster
from tests.sinks.builders import World, put_topic
from tests.sinks.kinds.acls.acl_builders import acl

AL = acl("ALLOW READ User:al TOPIC x")
AL_THERE = acl("ALLOW READ User:al TOPIC a.x")


@dataclass
class LateCluster(MemoryCluster):
    """Does not list these topics yet."""

    late: set[str] = field(default_factory=set)

    def list_topics(self) -> dict[str, int]:
        return {name: count for name, count in super().list_topics().items() if name not in self.late}


@dataclass
class LateAcls(MemoryAcls):
    """Does not show these yet; counts how often one was created."""

    late: set[AclBinding] = field(default_factory=set)
    created: list[AclBinding] = field(default_factory=list)

    def describe(self) -> list[AclBinding]:
        return [one for one in super().describe() if one not in self.late]

    def create(self, bindings: Collection[AclBinding]) -> dict[AclBinding, None]:  # type: ignore[override]  # no faults
        self.created += bindings
        super().create(bindings)
        return dict.fromkeys(bindings)


@pytest.fixture
def world() -> World:
    """x and an ACL of it were created a moment ago, and the target shows neither."""
    target, acls = LateCluster("b", "id-of-b", late={"a.x"}), LateAcls("b", late={AL_THERE})
    world = World(target=target, target_acls=acls, source_acls=MemoryAcls("a", {AL}))
    put_topic(world.source, "x")
    put_topic(world.target, "a.y")
    assert {one.change.key for one in world.run_pass().outcomes} == {("a.x",), AL_THERE.key}
    return world


def created(world: World, seconds: float, step: float = 10.0) -> set[Kind]:
    """Kinds of what passes create in so many seconds, full comparisons and others."""
    found: set[Kind] = set()
    for number in range(int(seconds / step)):
        outcomes = world.run_pass(everything=number % 2 == 0, after=step).outcomes
        found |= {one.change.kind for one in outcomes if one.change.op is Op.CREATE}
    return found


def show(world: World) -> None:
    """The target shows all that it has."""
    assert isinstance(world.target, LateCluster)
    assert isinstance(world.target_acls, LateAcls)
    world.target.late.clear()
    world.target_acls.late.clear()


def test_what_is_not_shown_yet_is_not_created_again_and_said_to_be_awaited(world: World) -> None:
    assert created(world, LAGS - 20.0) == set()
    errors = world.run_pass(after=1.0).plan.errors
    assert {error.kind for error in errors} == {Kind.TOPIC, Kind.ACL}
    assert all("b took 1 creations and does not show them yet" in error.reason for error in errors)
    show(world)
    assert created(world, 20.0) == set()
    assert world.run_pass(everything=True).plan.errors == ()


def test_what_is_not_shown_for_minutes_is_created_again(world: World) -> None:
    assert created(world, LAGS + 30.0) == {Kind.TOPIC, Kind.ACL}


def test_what_was_shown_once_and_is_deleted_by_another_hand_is_created_again_at_once(world: World) -> None:
    show(world)
    created(world, 20.0)
    world.target.delete_topics(["a.x"])
    world.target_acls.bindings.clear()
    assert created(world, 20.0) == {Kind.TOPIC, Kind.ACL}


def test_what_is_not_shown_yet_stays_ours(world: World) -> None:
    created(world, 60.0)
    ledger = world.ledger()
    assert AL_THERE.key in ledger.owned(Kind.ACL)
    assert ("a.x",) in ledger.owned(Kind.TOPIC)


def test_what_the_source_gives_up_before_it_is_shown_is_not_awaited(world: World) -> None:
    world.source.delete_topics(["x"])
    world.source_acls.bindings = {acl("ALLOW READ User:bo TOPIC y")}
    put_topic(world.source, "y")
    created(world, 20.0)
    assert not [error for error in world.run_pass(after=1.0).plan.errors if error.kind is Kind.TOPIC]
