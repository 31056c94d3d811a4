"""Flows from one source: each takes away its own fence alone, and only what is certainly its own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta

import pytest

from sinks.failover.commands import cutover, fence, unfence
from sinks.failover.fence_notes import OtherLedgers, own_fences
from sinks.failover.fence_proof import FenceBroken
from sinks.failover.journal import Journal
from sinks.failover.scene import Scene
from sinks.faults import ItemFault, RightsMissing
from sinks.kafka.ports.acl_binding import AclBinding
from sinks.kafka.ports.acls import AclFaults
from sinks.ledger.audit import Audit
from sinks.ledger.failover_record import Begun, State
from sinks.ledger.fence_acls import fence_acls
from sinks.ledger.ledger import Ledger
from streaming.errors import LockstepError
from streaming.flow import Flow
from tests.memory.memory_acls import MemoryAcls
from tests.sinks.builders import NOON
from tests.sinks.failover.scenes import Died, Stage, stage

FENCE = set(fence_acls(["x", "y"]))

Opens = Callable[[Stage], Scene]


def other_ledger(built: Stage) -> Ledger:
    return Ledger("lockstep-ledger.a.c", built.world.target, built.world.target, 1, lambda: NOON)


def ours(built: Stage) -> Scene:
    """A process that leads a->b, and opens the ledger of a->c."""
    return replace(built.scene(), other_ledgers=lambda: nullcontext(OtherLedgers([other_ledger(built)])))


def theirs(built: Stage) -> Scene:
    """The other way round."""
    scene = built.scene()
    audit = Audit(built.world.settings.internal.audit, built.world.target, 1, "c", lambda: NOON)
    settings = replace(scene.settings, flow=Flow("a", "c"))
    journal = Journal(settings.flow, other_ledger(built), audit, Begun("c", "", "", "c@here:2"), now=lambda: NOON)
    return replace(
        scene, settings=settings, journal=journal, other_ledgers=lambda: nullcontext(OtherLedgers([built.ledger()]))
    )


def test_to_unfence_a_flow_that_never_fenced_leaves_the_fence_of_another_one() -> None:
    built = stage()
    cutover(ours(built))
    assert unfence(theirs(built)).state is State.MIRRORING
    assert built.world.source_acls.bindings == FENCE
    assert own_fences(built.ledger()) == other_ledger(built).fences() == {acl.key for acl in FENCE}


def test_a_fence_that_breaks_leaves_that_of_another_flow() -> None:
    built = stage()
    cutover(ours(built))
    built.producers.append(lambda: built.write("y", super_user=True))
    with pytest.raises(FenceBroken):
        fence(theirs(built))
    assert built.world.source_acls.bindings == FENCE
    assert own_fences(built.ledger()) == {acl.key for acl in FENCE}


@pytest.mark.parametrize("order", [(ours, theirs), (theirs, ours)])
def test_a_topic_that_two_flows_fence_is_open_once_both_let_go_of_it(order: Sequence[Opens]) -> None:
    built = stage()
    for scene in (ours, theirs):
        fence(scene(built))
    unfence(order[0](built))
    assert built.world.source_acls.bindings == FENCE
    assert built.ledger().fences() == other_ledger(built).fences() == {acl.key for acl in FENCE}
    unfence(order[1](built))
    assert not built.world.source_acls.bindings
    assert not built.ledger().fences() | other_ledger(built).fences()


def refuse(bindings: Collection[AclBinding]) -> AclFaults:
    return dict.fromkeys(bindings, ItemFault("CLUSTER_AUTHORIZATION_FAILED", "no ALTER"))


def die(bindings: Collection[AclBinding]) -> AclFaults:
    raise Died


def test_a_deny_that_somebody_makes_after_a_refused_fence_is_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    built = stage()
    with monkeypatch.context() as patch, pytest.raises(LockstepError, match="was refused"):
        patch.setattr(built.world.source_acls, "create", refuse)
        fence(ours(built))
    assert not built.ledger().fences() | other_ledger(built).fences()
    built.world.source_acls.create(FENCE)
    fence(ours(built))
    unfence(ours(built))
    assert built.world.source_acls.bindings == FENCE


def test_acls_that_were_made_although_a_right_was_said_to_be_missing_are_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built = stage()
    acls = built.world.source_acls

    def made_and_refused(bindings: Collection[AclBinding]) -> AclFaults:
        MemoryAcls.create(acls, list(bindings)[:1])
        raise RightsMissing("a login was refused meanwhile")

    with monkeypatch.context() as patch, pytest.raises(RightsMissing):
        patch.setattr(acls, "create", made_and_refused)
        fence(ours(built))
    fence(ours(built))
    unfence(ours(built))
    assert not acls.bindings


@pytest.mark.parametrize(("minutes", "left"), [(9, set()), (11, FENCE)])
@pytest.mark.parametrize("again", [False, True])
def test_a_deny_that_is_there_long_after_a_fence_died_is_left_to_whoever_made_it(
    minutes: int, left: set[AclBinding], again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = stage()
    with monkeypatch.context() as patch, pytest.raises(Died):
        patch.setattr(built.world.source_acls, "create", die)
        fence(ours(built))
    built.world.source_acls.create(FENCE)

    def later() -> Scene:
        scene = ours(built)
        scene.journal.now = lambda: NOON + timedelta(minutes=minutes)
        return scene

    if again:
        fence(later())
    unfence(later())
    assert built.world.source_acls.bindings == left
    assert not built.ledger().fences()
    assert bool(left) == any("CAREFUL: the DENY WRITE" in line for line in built.said)


def fenced_after_the_other_died(monkeypatch: pytest.MonkeyPatch) -> Stage:
    """This flow is fenced; the other one died when it was about to be."""
    built = stage()
    with monkeypatch.context() as patch, pytest.raises(Died):
        patch.setattr(built.world.source_acls, "create", die)
        fence(theirs(built))
    fence(ours(built))
    return built


@pytest.mark.parametrize(("minutes", "left"), [(9, FENCE), (11, set())])
def test_a_fence_is_lifted_by_its_owner_though_another_flow_died_long_ago_about_to_make_it(
    minutes: int, left: set[AclBinding], monkeypatch: pytest.MonkeyPatch
) -> None:
    built = fenced_after_the_other_died(monkeypatch)
    scene = ours(built)
    scene.journal.now = lambda: NOON + timedelta(minutes=minutes)
    unfence(scene)
    assert built.world.source_acls.bindings == left


def test_a_flow_that_died_long_ago_about_to_fence_makes_anew_what_the_owner_has_lifted_since(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built = fenced_after_the_other_died(monkeypatch)
    for opens, command in ((ours, unfence), (theirs, fence)):
        scene = opens(built)
        scene.journal.now = lambda: NOON + timedelta(minutes=11)
        command(scene)
    assert built.world.source_acls.bindings == FENCE
    unfence(theirs(built))
    assert not built.world.source_acls.bindings
