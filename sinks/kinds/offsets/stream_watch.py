"""Whether MM2 wrote offset-syncs that the stream has not brought: a batch ends early for a group that wants them."""

from __future__ import annotations

from collections.abc import Collection

from sinks.faults import RightsMissing
from sinks.kafka.ports.groups import GroupReader
from sinks.kinds.offsets.direction import GroupOffset
from sinks.kinds.offsets.translation import Unanswered
from streaming.mm2.records import TopicPartition

END_POLL_INTERVAL = 1.0
"""Seconds between two polls of the topic's end."""


class StreamWatch:
    """Of one flow's offset-syncs topic, on the cluster that `groups` belong to."""

    def __init__(self, groups: GroupReader, topic: str) -> None:
        self._groups, self._where = groups, TopicPartition(topic, 0)
        self._polled_at = float("-inf")
        self._signalled_end = 0

    def moved(self, now: float, position: int) -> bool:
        """Whether the topic goes on behind this position, the last that is known; each end is told of once.

        Raises ClusterUnreachable. A topic that may not be read moves for nobody.
        """
        if now - self._polled_at < END_POLL_INTERVAL:
            return False
        self._polled_at = now
        try:
            log = self._groups.ends([self._where]).items.get(self._where)
        except RightsMissing:
            return False
        if log is None or log.end <= max(position + 1, self._signalled_end):
            return False
        self._signalled_end = log.end
        return True


def waits_for_syncs(rows: Collection[GroupOffset]) -> bool:
    """Whether one of these could be nearer with more of what MM2 writes: no offset was found, or MM2 sends again."""
    return any(isinstance(row.answer, Unanswered) or row.held for row in rows)
