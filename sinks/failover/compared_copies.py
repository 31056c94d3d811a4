"""The records of both sides compared, where somebody asked for it, before clients may move or the flow ends."""

from __future__ import annotations

from sinks.failover.arrival import arrivals
from sinks.failover.cut_reader import AsItWas
from sinks.failover.divergence import divergences, takeover_ends
from sinks.failover.resent import Pairs
from sinks.failover.scene import Scene
from streaming.mm2.records import TopicPartition


def compare_copies(scene: Scene, pairs: Pairs) -> bool:
    """Compares what was not compared yet of these partitions; whether there was anything. Raises what that raises."""
    return scene.verify is not None and scene.verify.run({where.topic for where in pairs}, _drained_ends(scene, pairs))


def _drained_ends(scene: Scene, pairs: Pairs) -> dict[TopicPartition, int]:
    """Where copies ended when they were drained, if they had all that the source has: their clients may have moved.

    What came to the source since then, and was copied, is compared as well.
    """
    taken = takeover_ends(divergences(scene.journal.ledger))
    drained = {where: copy for where, copy in pairs.items() if copy in taken}
    if not drained:
        return {}
    with scene.readers() as (source, target):
        found = arrivals(source, AsItWas(target, taken), drained)
    return {copy: taken[copy] for where, copy in drained.items() if found[where].arrived}
