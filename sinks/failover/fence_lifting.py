"""Takes the fence of a flow away, beside the other flows from the same source, and says what stays.

Both ways are asked about before a command begins: half done it would stand in the way of another one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from sinks.failover.fence_notes import own_fences, unclear_fences
from sinks.failover.fencing import Fence
from sinks.failover.scene import Scene
from sinks.ledger.fence_rules import shown
from sinks.model.changes import Key
from streaming.number_of import number_of


@contextmanager
def open_fence(scene: Scene) -> Iterator[Fence]:
    """That of the flow, with the ledgers of the other flows from its source."""
    with scene.other_ledgers() as others:
        yield Fence(scene.settings, scene.source.acls, scene.journal.ledger, others, scene.journal.now)


def check_deniable(scene: Scene, topics: Collection[str]) -> None:
    """Asked before a command begins that fences these topics; writes nothing. Raises FenceUnclear, NoAuthorizer."""
    alone = Fence(scene.settings, scene.source.acls, scene.journal.ledger, now=scene.journal.now)
    if alone.not_certain(topics):
        with open_fence(scene) as fence:
            fence.check_known(topics)


def check_liftable(scene: Scene) -> None:
    """Asked before a command begins that ends with the fence taken away; writes nothing. Raises FenceUnclear."""
    if own_fences(scene.journal.ledger) | unclear_fences(scene.journal.ledger):
        with open_fence(scene) as fence:
            fence.liftable()


def lift_fence(scene: Scene, only: Collection[Key] | None = None) -> None:
    """Takes its DENY ACLs away, or `only` these of them. Raises FenceUnclear, LockstepError."""
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
    """Says that nobody can tell who made the DENY of these topics, if there are any."""
    if topics:
        scene.say(
            f"CAREFUL: the DENY WRITE for User:* on {shown(sorted(topics))} stays on {scene.settings.flow.source}, "
            "after `unfence` as well: a command died before it learned who made it. If it is nobody's, remove it with "
            "kafka-acls.sh --remove --deny-principal 'User:*' once no flow from there is fenced and producers may "
            "write there again"
        )
