"""Tracks the ends of logs, and the group offsets that a truncation made untrue.

A log loses its tail when a replica that lacks it becomes leader (an unclean election). Producers, or MM2, then write
other records at the same offsets. A group that committed such an offset before has not read the record there now. The
ledger keeps the truncations for commands and for the job's next process.
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
"""`at` of a truncation that makes only the offsets in `still` untrue."""

BYTES_IN_A_PART = 200_000
"""Most bytes of names and offsets in one ledger entry: brokers take records of a megabyte by default."""

DIGITS = 22
"""Bytes of an offset with its punctuation in JSON."""


@dataclass
class Truncation:
    """A truncation of a log, and the group offsets that it made untrue."""

    at: int
    """The log was truncated at this offset or before it."""
    is_located: bool = True
    """Later syncs cannot tell more about `at`."""
    first: dict[str, int] = field(default_factory=dict)
    """First offset of each group that was seen after the truncation."""
    still: dict[str, int] = field(default_factory=dict)
    """Offset of each group that an earlier truncation made untrue."""

    def untrue(self) -> dict[str, int]:
        """Returns the untrue offset of each group. It stays untrue until the group commits another one."""
        return self.still | {group: offset for group, offset in self.first.items() if offset > self.at}

    def as_texts(self) -> list[str]:
        """Returns the texts for the ledger, in parts, because any client of the source can make many groups with long
        names."""
        return [
            orjson.dumps({"at": self.at, "is_located": self.is_located, "first": first, "still": still}).decode()
            for first, still in _in_parts(self.first, self.still)
        ]

    @classmethod
    def parse(cls, texts: Sequence[str]) -> Truncation:
        """Returns the truncation in texts of `as_texts`. Raises ValueError, LookupError, TypeError, AttributeError."""
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
    """Ends and truncations of the logs of a flow's topics on one of its clusters. Keys are partitions of the source."""

    def __init__(self) -> None:
        self.highest: dict[TopicPartition, int] = {}
        """The highest end of each log since its last truncation."""
        self.truncations: dict[TopicPartition, Truncation] = {}
        """The last observed truncation of each log."""
        self._generations: dict[TopicPartition, int] = {}
        self._topic_generations: dict[str, int] = {}
        self.unsaved = set[TopicPartition]()
        """Partitions whose truncation the ledger lacks or has in an older form."""

    def restore(self, truncations: Mapping[TopicPartition, Truncation], ends: Mapping[TopicPartition, int]) -> None:
        """Takes over truncations and ends of logs that earlier processes saw."""
        self.truncations, self.highest = dict(truncations), dict(ends)

    def note_end(self, where: TopicPartition, end: int, reached: int = 0) -> bool:
        """Notes a log's end (high watermark). Returns whether the log was truncated since the last call.

        `reached`: an end that the log had before, by syncs from before this end was read.
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
        """Notes that another observer saw the log become shorter. Returns whether this process did not know that."""
        if where in self.highest and self.highest[where] <= end:
            return False
        return self.note_end(where, end, end + 1)

    def note_truncation(self, where: TopicPartition, at: int) -> None:
        """Notes that the log was truncated at `at` or before it. Committed offsets after `at` become untrue."""
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
        """Notes that a log that became shorter was truncated at `at` or before it."""
        before = self.truncations.get(where)
        if before is not None and not before.is_located:
            self.note_truncation(where, at)

    def generation(self, where: TopicPartition) -> int:
        """Returns how often the log was truncated or recreated. Results from another generation are untrue."""
        return self._generations.get(where, 0) + self._topic_generations.get(where.topic, 0)

    def is_untrue(self, group: str, where: TopicPartition, committed: int | None) -> bool:
        """Whether a group committed this offset before the truncation, and the offset lies after it.

        An offset that the group committed later differs from the first one that was seen after the truncation.
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
        """Notes a group's offset beyond the log's end, which was read after it: the log lost records that the group had
        read.

        So the offset stays untrue once the log is as long again. It tells nothing about other groups, because an
        operator may have set it by hand.
        """
        truncation = self.truncations.setdefault(where, Truncation(NO_OFFSET_BEHIND))
        if truncation.still.get(group) != committed:
            truncation.still[group] = committed
            self.unsaved.add(where)

    def forget(self, topic: str) -> None:
        """Forgets a topic that was recreated or deleted."""
        self._topic_generations[topic] = self._topic_generations.get(topic, 0) + 1
        self.unsaved |= {where for where in self.truncations if where.topic == topic}
        self.highest = {where: end for where, end in self.highest.items() if where.topic != topic}
        self.truncations = {where: one for where, one in self.truncations.items() if where.topic != topic}

    def groups(self) -> set[str]:
        """Returns the groups with an offset in a truncation."""
        kept = self.truncations.values()
        return set[str]().union(*(one.first for one in kept), *(one.still for one in kept))

    def forget_first(self, groups: Collection[str]) -> None:
        """Forgets the first offsets of groups that a listing lacks. A group that returns may be a new one, whose first
        offset proves nothing."""
        for where, truncation in self.truncations.items():
            truncation.first = self._without(where, truncation.first, groups)

    def forget_groups(self, groups: Collection[str]) -> None:
        """Forgets groups that have no offset on this cluster, by its own answer. Their next commit counts."""
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
    """Upper bound of the records that a copy lacks. `unknown`: it may lack more."""

    records: int
    unknown: bool = False

    def with_more(self, other: Missed) -> Missed:
        return Missed(self.records + other.records, self.unknown or other.unknown)


NOTHING_MISSED = Missed(0)


def _copied_to(pairs: Sequence[Pair], upstream: int) -> int:
    """Returns the highest end that the copy can have had when MM2 had read the source up to `upstream`."""
    below = [one for one in pairs if one.upstream <= upstream]
    if not below:
        return min(upstream, pairs[0].downstream)
    return below[-1].downstream + upstream - below[-1].upstream


@dataclass
class CutLogs:
    """Truncations of one flow's logs that no sync has explained yet, and the records that the copies may lack.

    `_copies`: the syncs of a copy from before it lost its tail.
    """

    _copies: dict[TopicPartition, tuple[Pair, ...]] = field(default_factory=dict)
    _sources: dict[TopicPartition, tuple[int, int]] = field(default_factory=dict)
    _missed: dict[TopicPartition, Missed] = field(default_factory=dict)
    _unexplained: set[TopicPartition] = field(default_factory=set)

    def note_unexplained(self, partitions: Iterable[TopicPartition]) -> None:
        """Notes logs that lost their tails in an earlier process, before any sync since. That process's knowledge of
        them is gone, so the loss is unknown."""
        self._unexplained.update(partitions)

    def note_copy_cut(self, where: TopicPartition, history: History | None) -> None:
        """Notes that the copy of a partition lost its tail. `history`: as it was before."""
        if history is not None:
            self._copies[where] = tuple(history.pairs())

    def note_source_cut(self, where: TopicPartition, history: History | None, end: int) -> None:
        """Notes that the log on the source was cut to `end`. `history`: as it was before."""
        if history is not None:
            lowest, reached = self._sources.get(where, (end, 0))
            self._sources[where] = min(lowest, end), max(reached, history.latest.upstream + 1)

    def note_sync(self, sync: SyncSeen, history: History | None) -> None:
        """Notes a sync of MM2, and computes the loss that it shows. `history`: as it was before the sync; None if there
        is none."""
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
        """Returns the losses that were found since the last call."""
        found, self._missed = self._missed, {}
        return found
