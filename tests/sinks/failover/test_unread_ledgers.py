"""A fence on which another flow may rely stays while that flow's ledger cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta

import pytest

from sinks.failover.commands import cutover, fence, unfence
from sinks.failover.drill import DrillTopic
from sinks.failover.failing_back import failback, resume
from sinks.failover.fence_notes import OtherLedgers
from sinks.failover.fence_proof import FenceBroken
from sinks.failover.fencing import Fence, FenceUnclear
from sinks.failover.scene import Scene
from sinks.kafka.ports.acl_binding import AclBinding
from sinks.kafka.ports.acls import AclFaults
from sinks.ledger.failover_record import State
from sinks.ledger.fence_acls import fence_acls
from tests.sinks.builders import NOON
from tests.sinks.failover.scenes import Died, Stage, stage
from tests.sinks.failover.test_shared_fences import ours, theirs

FENCE = set(fence_acls(["x", "y"]))
UNREAD = OtherLedgers(unread={"a->c": "c does not answer"})


def beside(built: Stage, others: OtherLedgers = UNREAD) -> Scene:
    return replace(built.scene(), other_ledgers=lambda: nullcontext(others))


@pytest.mark.parametrize("leads_to", [fence, cutover])
def test_unfence_leaves_the_fence_and_the_state_until_the_ledger_can_be_read(
    leads_to: Callable[[Scene], object],
) -> None:
    built = stage()
    leads_to(beside(built))
    before = built.record()
    with pytest.raises(FenceUnclear, match=r"the fence on a stays, because a->c .*\(a->c: c does not answer\)"):
        unfence(beside(built))
    assert built.world.source_acls.bindings == FENCE
    assert built.record() == before
    unfence(beside(built, OtherLedgers()))
    assert not built.world.source_acls.bindings


def test_flow_without_a_fence_is_unfenced_whatever_cannot_be_read() -> None:
    assert unfence(beside(stage())).state is State.MIRRORING


def test_flow_that_leads_back_keeps_its_fence_and_its_state_until_the_ledger_can_be_read() -> None:
    built = stage()
    cutover(built.scene())
    failback(built.scene(), export=None, discard=None, write_reverse=lambda: None)
    with pytest.raises(FenceUnclear):
        resume(beside(built), typed="unknown")
    assert (built.record().state, built.record().doing) == (State.REVERSING, None)
    assert built.world.source_acls.bindings == FENCE


def test_fence_that_breaks_says_who_writes_and_why_it_stays() -> None:
    built = stage()
    built.producers.append(lambda: built.write("y", super_user=True))
    with pytest.raises(FenceBroken, match=r"still writes to y\. .*The fence on a stays, because a->c"):
        fence(beside(built))
    assert built.world.source_acls.bindings == FENCE
    built.producers.clear()
    assert fence(beside(built)).state is State.FENCED


@pytest.mark.parametrize("leads_to", [fence, cutover])
@pytest.mark.parametrize("is_told", [True, False])
def test_fence_that_is_there_and_may_be_another_flows_is_not_relied_upon(
    leads_to: Callable[[Scene], object], is_told: bool
) -> None:
    built = stage()
    others = theirs(built)
    fence(others if is_told else replace(others, other_ledgers=lambda: nullcontext(OtherLedgers())))
    before = built.record()
    with pytest.raises(FenceUnclear, match=r"x, y on a have a DENY WRITE already.*\(a->c: c does not answer\)"):
        leads_to(beside(built))
    assert built.record() == before
    leads_to(ours(built))
    unfence(theirs(built))
    assert built.world.source_acls.bindings == FENCE


def test_fence_that_died_long_ago_does_not_go_on_while_its_acls_may_be_another_flows_by_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built = stage()

    def die(bindings: Collection[AclBinding]) -> AclFaults:
        raise Died

    with monkeypatch.context() as patch, pytest.raises(Died):
        patch.setattr(built.world.source_acls, "create", die)
        fence(beside(built))
    built.world.source_acls.create(FENCE)
    scene = beside(built)
    scene.journal.now = lambda: NOON + timedelta(minutes=11)
    with pytest.raises(FenceUnclear):
        fence(scene)


def test_flow_fences_more_topics_whatever_cannot_be_read() -> None:
    built = stage()
    fence(beside(built), ("x",))
    assert fence(beside(built), ("y",)).topics == ("x", "y")


def test_drill_takes_the_fence_of_its_own_topic_away_all_the_same() -> None:
    built = stage()
    own = DrillTopic(beside(built), "practice", "a.practice")
    own.make()
    assert own.is_seen()
    scene = built.scene()
    Fence(scene).deny(["practice"])
    own.scene.journal.ledger.refresh()
    assert own.take_away() == []
    assert not built.world.source_acls.bindings
