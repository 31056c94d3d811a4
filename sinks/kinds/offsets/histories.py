"""The offset histories of all partitions of a flow, and how far MM2's offset-syncs topic was read for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sinks.kinds.offsets.exact_runs import ExactOffsets
from sinks.kinds.offsets.sync_history import NOWHERE, Discontinuity, History
from sinks.ledger.kept_end_offsets import LatestSync
from streaming.mm2.records import TopicPartition


class Histories:
    """The histories of a flow's partitions, named as on the source."""

    def __init__(self, ids_of: Callable[[str], str | None] = lambda topic: "") -> None:
        """`ids_of`: ids of a topic and of the offset-syncs topic, as text; None while they are unknown."""
        self.exact = ExactOffsets(ids_of)
        self._known: dict[TopicPartition, History] = {}
        self._hole = NOWHERE
        self.position = NOWHERE
        """The highest offset in the offset-syncs topic that was seen."""
        self.are_whole = False
        """Whether the last reading of the topic came to its end."""

    def take(
        self, where: TopicPartition, upstream: int, downstream: int, position: int, end: int = 0
    ) -> Discontinuity | None:
        """Takes in the sync at the offset `position` of the offset-syncs topic. Returns what else it shows.

        A sync that comes again, as after a restart of the job, changes nothing. `end`: the highest end that the
        target's log was seen to have.
        """
        if position > self.position:
            self.reach(position)
        history = self._known.get(where)
        if history is None:
            self._known[where] = History(upstream, downstream, position)
            return None
        discontinuity = history.take(upstream, downstream, position, history.position < self._hole <= position, end)
        self.exact.take_in(where, position, upstream, downstream, discontinuity is not None)
        return discontinuity

    def reach(self, position: int) -> None:
        """Notes that the record at this offset of the offset-syncs topic was seen.

        Compaction took the records between the last one and this one before they were read.
        """
        if position > self.position + 1:
            self._hole = position
        self.position = max(self.position, position)

    def forget_positions(self) -> None:
        """The offset-syncs topic was recreated and counts from 0. Everything that comes is new; some may be missing."""
        for history in self._known.values():
            history.position = NOWHERE
        self.position, self._hole = NOWHERE, 0
        self.exact.forget_all()

    def restore(self, where: TopicPartition, history: History) -> None:
        """Takes over a history that the ledger has."""
        self._known[where] = history
        self.position = max(self.position, history.position)

    def partitions(self, topic: str) -> list[TopicPartition]:
        """Returns the partitions of a topic that have a history."""
        return sorted(where for where in self._known if where.topic == topic)

    def drop(self, topic: str) -> list[TopicPartition]:
        """Forgets a topic that is gone or was recreated. Returns the partitions that had a history."""
        dropped = self.partitions(topic)
        for where in dropped:
            self.drop_partition(where)
        return dropped

    def drop_partition(self, where: TopicPartition) -> None:
        """Forgets a partition that its topic does not have."""
        self._known.pop(where, None)
        self.exact.forget(where)

    def beyond(self, counts: Mapping[str, int]) -> list[TopicPartition]:
        """Returns partitions whose number is too high for their topic: a sync can name any. `counts`: partitions by
        topic. A topic that is listed without any is left out, because its number is unknown."""
        return [where for where in self._known if 0 < counts.get(where.topic, 0) <= where.partition]

    def emptied(self) -> list[TopicPartition]:
        """Returns partitions whose copy lost its tail, and for which no sync came since."""
        return [where for where, history in self._known.items() if history.is_empty]

    def of(self, where: TopicPartition) -> History | None:
        """The history of one partition. None: no sync was seen, or none since a truncation."""
        history = self.with_empty(where)
        return None if history is None or history.is_empty else history

    def exact_offset(self, where: TopicPartition, upstream: int) -> int | None:
        """Returns where a group at this source offset continues, if that was verified and still holds.

        It must lie between two offset-syncs. Behind the newest sync only the ledger would vouch for it.
        """
        runs, history = self.exact.of(where), self.of(where)
        if runs is None or history is None or not all(map(runs.fits, *zip(*history.pairs(), strict=True))):
            return None
        below, following = history.around(upstream)
        found = runs.offset_of(upstream)
        if found is None or below is None or following is None:
            return None
        return found if below.downstream <= found <= following.downstream else None

    def latest(self) -> dict[TopicPartition, LatestSync] | None:
        """The last sync of each partition; None while there may be later ones that were not read yet."""
        if not self.are_whole:
            return None
        return {
            where: LatestSync(*pair, history.resending_since(pair.downstream) is not None, history.shows_gap)
            for where, history in self._known.items()
            if not history.is_empty
            for pair in [history.latest]
        }

    def with_empty(self, where: TopicPartition) -> History | None:
        """The history of one partition, even if a truncation emptied it."""
        return self._known.get(where)

    def is_news(self, where: TopicPartition, position: int) -> bool:
        """Whether a sync at this offset of the offset-syncs topic was not taken before."""
        history = self.with_empty(where)
        return history is None or position > history.position

    def is_truncated(self, where: TopicPartition) -> bool:
        """Whether a truncation emptied the history, and no sync was taken since."""
        history = self.with_empty(where)
        return history is not None and history.is_empty

    def reached(self, where: TopicPartition) -> int:
        """An end that the log on the target had once, as far as the syncs show; else 0."""
        history = self.of(where)
        return 0 if history is None else history.reached

    def topics(self) -> frozenset[str]:
        return frozenset(where.topic for where in self._known)

    def changed_since(self, position: int) -> list[TopicPartition]:
        """Returns the partitions that took a sync behind this offset of the offset-syncs topic.

        Call with `Histories.position` as it was when the ledger was last written, or with -1 for all.
        """
        return [where for where, history in self._known.items() if history.position > position]
