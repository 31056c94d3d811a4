"""The offset histories of all partitions of a flow, and the place in MM2's offset-syncs topic that they go up to."""

from __future__ import annotations

from sinks.kinds.offsets.history import NOWHERE, History
from streaming.mm2.records import TopicPartition


class Histories:
    """The histories of a flow's partitions, named as on the source."""

    def __init__(self) -> None:
        self._topics: dict[str, dict[int, History]] = {}
        self._hole = NOWHERE
        self.position = NOWHERE
        """The highest offset in the offset-syncs topic that a sync was taken from."""

    def take(self, topic: str, partition: int, upstream: int, downstream: int, position: int) -> bool:
        """Takes in the sync at the offset `position` of the offset-syncs topic; twice does no harm.

        Whether it tells of a restart of MM2.
        """
        restarted = False
        partitions = self._topics.get(topic)
        if partitions is None:
            partitions = self._topics[topic] = {}
        history = partitions.get(partition)
        if history is None:
            partitions[partition] = History(upstream, downstream, position)
        else:
            restarted = history.take(upstream, downstream, position, history.position < self._hole <= position)
        if position > self.position:
            self.position = position
        return restarted

    def note_hole(self, position: int) -> None:
        """Syncs before this offset of the offset-syncs topic may be missing: compaction took them before we read."""
        self._hole = max(self._hole, position)

    def forget_positions(self) -> None:
        """The offset-syncs topic was made again and counts from 0: all that comes is new, and some may be missing."""
        for partitions in self._topics.values():
            for history in partitions.values():
                history.position = NOWHERE
        self.position, self._hole = NOWHERE, 0

    def restore(self, where: TopicPartition, history: History) -> None:
        """Puts a history in place that the ledger kept."""
        self._topics.setdefault(where.topic, {})[where.partition] = history
        self.position = max(self.position, history.position)

    def drop(self, topic: str) -> list[TopicPartition]:
        """Forgets a topic that is gone, or was made again; returns the partitions whose histories that were."""
        return [TopicPartition(topic, partition) for partition in sorted(self._topics.pop(topic, {}))]

    def of(self, where: TopicPartition) -> History | None:
        """The history of one partition, None where no sync was seen."""
        return self._topics.get(where.topic, {}).get(where.partition)

    def topics(self) -> frozenset[str]:
        """Those with a history."""
        return frozenset(self._topics)

    def changed_since(self, position: int) -> list[TopicPartition]:
        """The partitions that took a sync behind this offset of the offset-syncs topic, for who writes them down.

        Ask with `Histories.position` as it was at the last writing; with -1 for all that took one.
        """
        return [
            TopicPartition(topic, partition)
            for topic, partitions in self._topics.items()
            for partition, history in partitions.items()
            if history.position > position
        ]

    def __len__(self) -> int:
        return sum(map(len, self._topics.values()))
