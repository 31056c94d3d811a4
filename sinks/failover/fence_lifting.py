"""Lifts the fence of a flow while other flows of the same source may use it, and says which ACLs stay.

Both directions are checked before a command begins: a half-done fence would block the next command.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from sinks.failover.fence_notes import own_fences, unclear_fences
from sinks.failover.fencing import Fence
from sinks.failover.scene import Scene
from sinks.ledger.fences import shown
from sinks.model.changes import Key
from streaming.number_of import number_of


@contextmanager
def open_fence(scene: Scene) -> Iterator[Fence]:
    """Opens the flow's fence, with the ledgers of the other flows from its source."""
    with scene.other_ledgers() as others:
        yield Fence(scene.settings, scene.source.acls, scene.journal.ledger, others, scene.journal.now)


def check_deniable(scene: Scene, topics: Collection[str]) -> None:
    """Checks that these topics can be fenced; writes nothing. Raises FenceUnclear, NoAuthorizer."""
    alone = Fence(scene.settings, scene.source.acls, scene.journal.ledger, now=scene.journal.now)
    if alone.not_certain(topics):
        with open_fence(scene) as fence:
            fence.check_known(topics)


def check_liftable(scene: Scene) -> None:
    """Checks that the fence can be lifted; writes nothing. Raises FenceUnclear."""
    if own_fences(scene.journal.ledger) | unclear_fences(scene.journal.ledger):
        with open_fence(scene) as fence:
            fence.liftable()


def lift_fence(scene: Scene, only: Collection[Key] | None = None) -> None:
    """Deletes the fence's DENY ACLs, or `only` these of them. Raises FenceUnclear, LockstepError."""
    with open_fence(scene) as fence:
        lifted = fence.lift(only)
    source = scene.settings.flow.source
    scene.say(f"{number_of(lifted.acls, 'DENY ACL was', 'DENY ACLs were')} taken away on {source}")
    if lifted.shared:
        topics = shown(sorted(acl.resource_name for acl in lifted.shared))
        scene.say(
            f"{topics} on {source} stay closed: another flow from there is fenced, too, or its `fence` is half done"
        )
    name_left(scene, {acl.resource_name for acl in lifted.left})


def name_left(scene: Scene, topics: Collection[str]) -> None:
    """Names the topics whose DENY was made by an unknown client, if there are any."""
    if topics:
        scene.say(
            f"CAREFUL: the DENY WRITE for User:* on {shown(sorted(topics))} stays on {scene.settings.flow.source}, "
            "after `unfence` as well: a command died before it learned who made it. If no client needs it, remove it "
            "with kafka-acls.sh --remove --deny-principal 'User:*' once no flow from there is fenced and producers may "
            "write there again"
        )
