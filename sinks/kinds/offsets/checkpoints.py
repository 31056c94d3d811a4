"""Checkpoints in MM2's own format, so that its checkpoint connector can be switched off.

Java's `RemoteClusterUtils.translateOffsets` and `MirrorClient` read them like MM2's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sinks.kafka.ports.cluster import Cluster
from sinks.kinds.offsets.direction import GroupOffset
from sinks.kinds.offsets.history import Pair
from sinks.kinds.offsets.memory import OffsetMemory
from sinks.kinds.offsets.verdicts import Verdict
from streaming.mm2.codec import encode_checkpoint
from streaming.mm2.records import Checkpoint

CHECKPOINTS_TOPIC_CONFIGS: Mapping[str, str] = {"cleanup.policy": "compact"}
"""As `MirrorUtils.createCompactedTopic` makes the topic."""


class CheckpointEmitter:
    """Writes the checkpoints topic of one flow, which is created at the first checkpoint."""

    def __init__(self, topic: str, target: Cluster, factor: int, memory: OffsetMemory) -> None:
        self._topic, self._target, self._factor, self._memory = topic, target, factor, memory
        self._created = False

    def __call__(self, rows: Iterable[GroupOffset]) -> None:
        """One checkpoint for each row that the topic's newest does not have already; none for a row whose offset is not
        to be trusted. Raises ClusterUnreachable."""
        known = self._memory.checkpoints.newest
        changed = {
            (row.group, row.where): Pair(row.at, offset)
            for row in rows
            if row.judgement.verdict is not Verdict.ERROR
            and (offset := row.goes_on_at) is not None
            and known.get((row.group, row.where)) != (row.at, offset)
        }
        if not changed:
            return
        if not self._created:
            self._target.create_log(self._topic, self._factor, CHECKPOINTS_TOPIC_CONFIGS)
            self._created = True
        records = [encode_checkpoint(Checkpoint(group, where, *pair, "")) for (group, where), pair in changed.items()]
        self._target.append_log(self._topic, records)
        known |= changed
