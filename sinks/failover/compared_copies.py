"""Compares the records of both sides, if `--verify` asks for it, before clients may move or the flow ends."""

from __future__ import annotations

from sinks.failover.arrival import arrivals
from sinks.failover.cut_reader import AsItWas
from sinks.failover.divergence import divergences, takeover_ends
from sinks.failover.resent import Pairs
from sinks.failover.scene import Scene
from streaming.mm2.records import TopicPartition


def compare_copies(scene: Scene, pairs: Pairs) -> bool:
    """Compares what was not compared yet of these partitions. Returns whether there was any. Raises what `compare`
    does."""
    return scene.verify is not None and scene.verify.run({where.topic for where in pairs}, _drained_ends(scene, pairs))


def _drained_ends(scene: Scene, pairs: Pairs) -> dict[TopicPartition, int]:
    """Returns where complete copies ended when they were drained. Clients that moved may have written behind these
    ends.

    Records that came to the source since then, and were copied, are compared as well.
    """
    taken = takeover_ends(divergences(scene.journal.ledger))
    drained = {where: copy for where, copy in pairs.items() if copy in taken}
    if not drained:
        return {}
    with scene.readers() as (source, target):
        found = arrivals(source, AsItWas(target, taken), drained)
    return {copy: taken[copy] for where, copy in drained.items() if found[where].arrived}
