"""A DENY with an unknown creator: no flow that is fenced with it copies it, and no flow deletes it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import timedelta

import pytest

from sinks.failover.commands import fence, unfence
from sinks.failover.scene import Scene
from sinks.kafka.ports.acl_binding import AclBinding
from sinks.kafka.ports.acls import AclFaults
from sinks.ledger.failover_record import State
from tests.memory.memory_acls import MemoryAcls
from tests.sinks.builders import NOON
from tests.sinks.failover.scenes import Died, Stage, stage
from tests.sinks.failover.test_shared_fences import FENCE, Opens, other_ledger, ours, theirs

STAY_CLOSED = "x, y on a stay closed: another flow from there is fenced, too"
CAREFUL = "CAREFUL: the DENY WRITE for User:* on x, y stays on a"


def alone(built: Stage) -> Scene:
    """A process of a->b where no other flow comes from a."""
    return built.scene()


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> Callable[[Opens], Stage]:
    """A flow whose `fence` died right after its ACLs were made."""

    def died(opens: Opens) -> Stage:
        there = stage()

        def made_and_died(bindings: Collection[AclBinding]) -> AclFaults:
            MemoryAcls.create(there.world.source_acls, bindings)
            raise Died

        with monkeypatch.context() as patch, pytest.raises(Died):
            patch.setattr(there.world.source_acls, "create", made_and_died)
            fence(opens(there))
        return there

    return died


def later(scene: Scene) -> Scene:
    """The same, when another client may have made them since."""
    scene.journal.now = lambda: NOON + timedelta(minutes=11)
    return scene


def copied(built: Stage) -> Collection[AclBinding]:
    """What a->b's own sync has made on b since."""
    for _ in range(3):
        built.world.run_pass(everything=True, after=70)
    return built.world.target_acls.bindings


def says(built: Stage, command: Callable[[Scene], object], opens: Opens) -> str:
    """The lines of one command."""
    built.said.clear()
    command(later(opens(built)))
    return "\n".join(built.said)


def test_flow_that_fences_again_long_after_it_died_copies_none_of_what_it_may_have_made(
    built: Callable[[Opens], Stage],
) -> None:
    there = built(alone)
    assert fence(later(alone(there))).state is State.FENCED
    assert not copied(there)
    assert CAREFUL in says(there, unfence, alone)
    assert not there.ledger().fences()
    assert there.world.source_acls.bindings == FENCE


@pytest.mark.parametrize("again", [False, True])
def test_fence_that_another_flow_relies_on_is_not_forgotten_where_the_one_that_died_is_unfenced(
    again: bool, built: Callable[[Opens], Stage]
) -> None:
    there = built(theirs)
    assert CAREFUL in says(there, fence, ours)
    if again:
        says(there, fence, theirs)
    said = says(there, unfence, theirs)
    assert STAY_CLOSED in said
    assert "CAREFUL" not in said
    assert not copied(there)
    # Nor does the flow that was unfenced copy it.
    assert other_ledger(there).fences() == {acl.key for acl in FENCE}


@pytest.mark.parametrize("order", [(ours, theirs), (theirs, ours)])
def test_the_last_flow_that_lets_go_of_it_forgets_it_everywhere_and_names_it(
    order: Sequence[Opens], built: Callable[[Opens], Stage]
) -> None:
    there = built(theirs)
    says(there, fence, ours)
    assert STAY_CLOSED in says(there, unfence, order[0])
    assert CAREFUL in says(there, unfence, order[1])
    assert not there.ledger().fences() | other_ledger(there).fences()
    assert there.world.source_acls.bindings == FENCE


def test_it_is_named_for_removal_only_once_no_flow_is_fenced(built: Callable[[Opens], Stage]) -> None:
    there = built(theirs)
    assert "once no flow from there is fenced" in says(there, fence, ours)
