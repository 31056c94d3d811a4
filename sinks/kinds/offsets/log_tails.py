"""How far each log of a cluster was seen to reach, and which groups' offsets a truncation made untrue.

A log loses its tail when a replica that lacks it becomes leader (an unclean election). Producers, or MM2, then write
other records at the same offsets. A group that committed such an offset before never read the record there now.
The ledger keeps the truncations, so that a command and the job's next process know of them as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from sinks.kinds.offsets.sync_history import History, Pair
from streaming.hints import SyncSeen
from streaming.mm2.records import MAX_INT64, TopicPartition

NO_OFFSET_BEHIND = MAX_INT64
"""`at` of a truncation that makes untrue only the offsets in `still`."""

BYTES_IN_A_PART = 200_000
"""Of the names and offsets in one entry of the ledger: brokers take records of a megabyte by default."""

DIGITS = 22
"""Bytes of an offset with what stands around it."""


@dataclass
class Truncation:
    """`at`: the log was truncated at this offset or before it. `is_located`: no later sync can say more.

    `first`: by group, its first offset that was seen after the truncation. `still`: by group, an offset that an
    earlier truncation made untrue.
    """

    at: int
    is_located: bool = True
    first: dict[str, int] = field(default_factory=dict)
    still: dict[str, int] = field(default_factory=dict)

    def untrue(self) -> dict[str, int]:
        """The offset of each group that is untrue as long as the group stays at it."""
        return self.still | {group: offset for group, offset in self.first.items() if offset > self.at}

    def as_texts(self) -> list[str]:
        """For the ledger, in parts: any client of the source can make many groups with long names."""
        return [
            orjson.dumps({"at": self.at, "is_located": self.is_located, "first": first, "still": still}).decode()
            for first, still in _in_parts(self.first, self.still)
        ]

    @classmethod
    def parse(cls, texts: Sequence[str]) -> Truncation:
        """Reads what `as_texts` wrote. Raises ValueError, LookupError, TypeError, AttributeError."""
        parts = [orjson.loads(text) for text in texts]
        first, still = (_offsets([part[name] for part in parts]) for name in ("first", "still"))
        return cls(_offset(parts[0]["at"]), bool(parts[0]["is_located"]), first, still)


def _in_parts(first: Mapping[str, int], still: Mapping[str, int]) -> list[tuple[dict[str, int], dict[str, int]]]:
    parts: list[tuple[dict[str, int], dict[str, int]]] = [({}, {})]
    size = 0
    for number, offsets in enumerate((first, still)):
        for group, offset in offsets.items():
            size += len(orjson.dumps(group)) + DIGITS
            if size > BYTES_IN_A_PART and any(parts[-1]):
                size = 0
                parts.append(({}, {}))
            parts[-1][number][group] = offset
    return parts


class LogTails:
    """The logs of a flow's topics on one of its clusters, by the partition on the source."""

    def __init__(self) -> None:
        self.highest: dict[TopicPartition, int] = {}
        """The highest end of each log that was seen since it was truncated."""
        self.truncations: dict[TopicPartition, Truncation] = {}
        """The last truncation of each log that was seen truncated."""
        self._generations: dict[TopicPartition, int] = {}
        self._topic_generations: dict[str, int] = {}
        self.unsaved = set[TopicPartition]()
        """Partitions whose truncation the ledger does not have as it is known here."""

    def restore(self, truncations: Mapping[TopicPartition, Truncation], ends: Mapping[TopicPartition, int]) -> None:
        """Takes over what earlier processes saw: truncations, and where logs ended."""
        self.truncations, self.highest = dict(truncations), dict(ends)

    def note_end(self, where: TopicPartition, end: int, reached: int = 0) -> bool:
        """Takes in a log's end (high watermark). Returns whether the log was truncated since the last time.

        `reached`: an end that the log had before, by syncs that were taken in before this end was read.
        """
        truncated = end < max(reached, self.highest.get(where, 0))
        self.highest[where] = end
        if truncated:
            before = self.truncations.get(where)
            # The place of the truncation before is uncertain, so only an offset below both counts as true.
            at = end if before is None or before.is_located else min(end, before.at)
            self.truncations[where] = self._next(where, at, is_located=False)
        return truncated

    def note_shrunk(self, where: TopicPartition, end: int) -> bool:
        """Takes in that another observer saw the log become shorter. Returns whether that is news here."""
        if where in self.highest and self.highest[where] <= end:
            return False
        return self.note_end(where, end, end + 1)

    def note_truncation(self, where: TopicPartition, at: int) -> None:
        """The log was truncated at this offset or before it. Offsets that were committed behind it count as untrue."""
        before = self.truncations.get(where)
        if before is None or before.is_located:
            self.truncations[where] = self._next(where, at, is_located=True)
            return
        # The log may have grown again before its end was read. This offset is that of the first record written then.
        before.is_located, before.at = True, min(at, before.at)
        self.unsaved.add(where)

    def _next(self, where: TopicPartition, at: int, *, is_located: bool) -> Truncation:
        before = self.truncations.get(where)
        self._generations[where] = self._generations.get(where, 0) + 1
        self.unsaved.add(where)
        # Offsets that an earlier truncation made untrue stay untrue.
        return Truncation(at, is_located, still=before.untrue() if before else {})

    def locate(self, where: TopicPartition, at: int) -> None:
        """A log that was seen to be shorter was truncated at this offset or before it."""
        before = self.truncations.get(where)
        if before is not None and not before.is_located:
            self.note_truncation(where, at)

    def generation(self, where: TopicPartition) -> int:
        """How often the log was truncated or recreated. What was found in another generation is untrue."""
        return self._generations.get(where, 0) + self._topic_generations.get(where.topic, 0)

    def is_untrue(self, group: str, where: TopicPartition, committed: int | None) -> bool:
        """Whether a group's own offset is from before the truncation, and behind it.

        An offset that the group committed since differs from the first one that was seen after the truncation.
        """
        truncation = self.truncations.get(where)
        if truncation is None or committed is None:
            return False
        if group not in truncation.first:
            truncation.first[group] = committed
            self.unsaved.add(where)
        at_first = committed > truncation.at and truncation.first[group] == committed
        return at_first or truncation.still.get(group) == committed

    def note_beyond(self, group: str, where: TopicPartition, committed: int) -> None:
        """A group's offset lies beyond the log's end, which was read after it: the log lost what the group had read.

        So the offset stays untrue once the log is as long again. It says nothing about other groups: an operator may
        have set it by hand.
        """
        truncation = self.truncations.setdefault(where, Truncation(NO_OFFSET_BEHIND))
        if truncation.still.get(group) != committed:
            truncation.still[group] = committed
            self.unsaved.add(where)

    def forget(self, topic: str) -> None:
        """A topic that was recreated, or is gone."""
        self._topic_generations[topic] = self._topic_generations.get(topic, 0) + 1
        self.unsaved |= {where for where in self.truncations if where.topic == topic}
        self.highest = {where: end for where, end in self.highest.items() if where.topic != topic}
        self.truncations = {where: one for where, one in self.truncations.items() if where.topic != topic}

    def groups(self) -> set[str]:
        """Groups with an offset in a truncation."""
        kept = self.truncations.values()
        return set[str]().union(*(one.first for one in kept), *(one.still for one in kept))

    def forget_first(self, groups: Collection[str]) -> None:
        """Groups that a listing lacks. One that comes back may be a new one, whose first offset proves nothing."""
        for where, truncation in self.truncations.items():
            truncation.first = self._without(where, truncation.first, groups)

    def forget_groups(self, groups: Collection[str]) -> None:
        """Groups that have no offset on this cluster, as it says itself: what they commit next is new."""
        self.forget_first(groups)
        for where, truncation in self.truncations.items():
            truncation.still = self._without(where, truncation.still, groups)

    def _without(self, where: TopicPartition, offsets: dict[str, int], groups: Collection[str]) -> dict[str, int]:
        if offsets.keys().isdisjoint(groups):
            return offsets
        self.unsaved.add(where)
        return {group: at for group, at in offsets.items() if group not in groups}


def _offsets(parts: Sequence[Any]) -> dict[str, int]:
    return {str(group): _offset(offset) for found in parts for group, offset in found.items()}


def _offset(found: Any) -> int:
    if type(found) is not int:
        raise TypeError("an offset is not a number")
    return found


# How many records a copy may lack because a log lost its tail: an upper bound, told by MM2's next offset-sync.
#
# MM2 goes on at its own position and does not look at the target. It writes a sync at once where the downstream offset
# goes back. If the copy lost its tail, the records that it had up to MM2's position are missing behind the cut. If the
# source lost its tail, the records that took the places of the old ones are missing up to where MM2 had read.
#
# A cut behind MM2's last sync is told only if a poll of the groups saw the copy end earlier. MM2 writes syncs
# `offset.lag.max` (100) records apart, and none where a single record was cut.


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
