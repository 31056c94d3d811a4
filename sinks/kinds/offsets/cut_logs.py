"""How many records a copy may lack because a log lost its tail: an upper bound, told by MM2's next offset-sync.

MM2 goes on at its own position and does not look at the target. It writes a sync at once where the downstream offset
goes back. If the copy lost its tail, the records that it had up to MM2's position are missing behind the cut. If the
source lost its tail, the records that took the places of the old ones are missing up to where MM2 had read.

A cut behind MM2's last sync is told only if a poll of the groups saw the copy end earlier. MM2 writes syncs
`offset.lag.max` (100) records apart, and none where a single record was cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sinks.kinds.offsets.sync_history import History, Pair
from streaming.hints import SyncSeen
from streaming.mm2.records import TopicPartition


class Missed(NamedTuple):
    """Upper bound of the records that are missing. `unknown`: others may be."""

    records: int
    unknown: bool = False

    def with_more(self, other: Missed) -> Missed:
        return Missed(self.records + other.records, self.unknown or other.unknown)


NOTHING_MISSED = Missed(0)


def _copied_to(pairs: Sequence[Pair], upstream: int) -> int:
    """Returns the end that the copy had at most when MM2 had read the source to `upstream`."""
    below = [one for one in pairs if one.upstream <= upstream]
    if not below:
        return min(upstream, pairs[0].downstream)
    return below[-1].downstream + upstream - below[-1].upstream


@dataclass
class CutLogs:
    """The cuts of one flow's logs that no sync has explained yet, and what the copies may lack.

    `_copies`: the syncs that were known of a copy before it lost its tail.
    """

    _copies: dict[TopicPartition, tuple[Pair, ...]] = field(default_factory=dict)
    _sources: dict[TopicPartition, tuple[int, int]] = field(default_factory=dict)
    _missed: dict[TopicPartition, Missed] = field(default_factory=dict)
    _unexplained: set[TopicPartition] = field(default_factory=set)

    def note_unexplained(self, partitions: Iterable[TopicPartition]) -> None:
        """An earlier process saw these logs lose their tails, and MM2 has written no sync since. What was known of them
        went with that process, so what the next sync tells is unknown."""
        self._unexplained.update(partitions)

    def note_copy_cut(self, where: TopicPartition, history: History | None) -> None:
        """The copy of a partition lost its tail. `history`: as it was before."""
        if history is not None:
            self._copies[where] = tuple(history.pairs())

    def note_source_cut(self, where: TopicPartition, history: History | None, end: int) -> None:
        """The log on the source ended behind `end` before. `history`: as it was then."""
        if history is not None:
            lowest, reached = self._sources.get(where, (end, 0))
            self._sources[where] = min(lowest, end), max(reached, history.latest.upstream + 1)

    def note_sync(self, sync: SyncSeen, history: History | None) -> None:
        """MM2 wrote a sync. `history`: without it, None if there is none."""
        where, pair = TopicPartition(sync.topic, sync.partition), Pair(sync.upstream, sync.downstream)
        before = self._copies.pop(where, None)
        if before is None and history is not None and pair.downstream < history.reached and pair != history.latest:
            before = tuple(history.pairs())
        records = max(0, _copied_to(before, pair.upstream) - pair.downstream) if before else 0
        if (cut := self._sources.pop(where, None)) is not None:
            end, reached = cut
            records += max(0, min(reached, pair.upstream) - end)
        unknown = where in self._unexplained
        self._unexplained.discard(where)
        if records or unknown:
            found = Missed(records, unknown)
            self._missed[where] = self._missed.get(where, NOTHING_MISSED).with_more(found)

    def take(self) -> Mapping[TopicPartition, Missed]:
        """Returns what was found since the last call."""
        found, self._missed = self._missed, {}
        return found
