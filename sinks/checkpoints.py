"""Checkpoints in MM2's own format, so that its checkpoint connector can be switched off.

Java's `RemoteClusterUtils.translateOffsets` and `MirrorClient` read them like MM2's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sinks.cluster.base import Cluster
from sinks.offsets import GroupOffset
from streaming.codec import encode_checkpoint
from streaming.records import Checkpoint, TopicPartition

CONFIGS: Mapping[str, str] = {"cleanup.policy": "compact"}
"""As `MirrorUtils.createCompactedTopic` makes the topic."""


class CheckpointEmitter:
    """Writes the checkpoints topic of one flow, which is made at the first checkpoint."""

    def __init__(self, topic: str, target: Cluster, factor: int) -> None:
        self._topic, self._target, self._factor = topic, target, factor
        self._created = False
        self._emitted: dict[tuple[str, TopicPartition], tuple[int, int]] = {}

    def __call__(self, rows: Iterable[GroupOffset]) -> None:
        """One checkpoint for each row whose translation is another than the last. Raises ClusterUnreachable."""
        news = {
            (row.group, row.where): (row.at, offset)
            for row in rows
            if (offset := row.goes_on_at) is not None and self._emitted.get((row.group, row.where)) != (row.at, offset)
        }
        if not news:
            return
        if not self._created:
            self._target.create_log(self._topic, self._factor, CONFIGS)
            self._created = True
        records = [
            encode_checkpoint(Checkpoint(group, where, upstream, downstream, ""))
            for (group, where), (upstream, downstream) in news.items()
        ]
        self._target.append_log(self._topic, records)
        self._emitted |= news
