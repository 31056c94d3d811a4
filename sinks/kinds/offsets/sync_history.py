"""The offset-syncs of every partition, kept longer than in MM2's own memory, and across its restarts.

A history of a partition has

- *live* pairs, thinned as MM2 thins its own (`offset_slots`).
- *older* pairs. A sync whose upstream offset goes back tells of a restart: MM2 sends later records once more. Before
  that offset the older pairs still hold, because a log only grows. After it the live pairs are better. MM2 forgets the
  older ones.
- *restarts*, each with the most records that were sent again, for the error bound, and how far MM2 was before.

A downstream offset that goes back means that the target's partition was truncated or recreated: no known pair holds. A
caller that notices a truncation in another way empties the history. It stays, so that older syncs are not taken again.
A history does not see that its topic was recreated between two syncs: `OffsetMemory` compares ids.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from sinks.kinds.offsets.exact_runs import ExactOffsets, neighbours
from sinks.ledger.avro import SingleObject
from sinks.ledger.kept_end_offsets import LatestSync
from streaming.errors import LockstepError
from streaming.mm2.records import MAX_INT64, TopicPartition

MAX_RESTARTS = 8
"""Most restarts that are kept separately; older ones count as one."""
NOWHERE = -1
"""The position of a history without a sync from the current offset-syncs topic."""
HISTORY_SCHEMA = SingleObject("offset-history")


class Discontinuity(Enum):
    """What a sync shows besides its two offsets."""

    RESTART = "MM2 was restarted and sends records again"
    TRUNCATION = "the target's log was truncated at or before the sync's downstream offset"


class History:
    """The history of one partition. `position`: offset of its last sync in the offset-syncs topic."""

    __slots__ = ("_live", "_older", "_restarts", "position")

    def __init__(self, upstream: int, downstream: int, position: int) -> None:
        self.position = position
        self._begin(upstream, downstream)

    def _begin(self, upstream: int, downstream: int) -> None:
        self._live = first(upstream, downstream)
        self._older = self._restarts = NOTHING

    def take(
        self, upstream: int, downstream: int, position: int, after_hole: bool = False, end: int = 0
    ) -> Discontinuity | None:
        """Takes in a sync. A sync that was taken before changes nothing.

        `after_hole`: syncs of this partition may be missing between the last one and this one. `end`: the highest end
        of the target's log so far.
        """
        if position <= self.position:
            return None
        self.position = position
        live = self._live
        if not live:
            self._begin_truncated(upstream, downstream)
            return Discontinuity.TRUNCATION
        ahead, written = upstream - live[0], downstream - live[1]
        if written <= 0:
            if not ahead and not written:
                return None
            self.empty(end)
            self._begin_truncated(upstream, downstream)
            return Discontinuity.TRUNCATION
        restarted = after_hole or written > ahead
        if restarted:
            resent = written - (min(ahead, 0) if after_hole else ahead)
            self._note_restart(downstream, resent, live[0] + written)
        if ahead < 0:
            self._older = thinned_pairs([pair for pair in self.pairs() if pair.upstream < upstream], upstream)
            self._live = first(upstream, downstream)
        else:
            admit(live, upstream, downstream)
        return Discontinuity.RESTART if restarted else None

    def _begin_truncated(self, upstream: int, downstream: int) -> None:
        sent_to = max(self._restarts, default=0)
        self._begin(upstream, downstream)
        if upstream < sent_to:
            # MM2 was restarted as well: what is left before the truncation may be ahead of what it sends now.
            self._note_restart(downstream, sent_to - upstream, sent_to)

    def _note_restart(self, downstream: int, resent: int, was_at: int) -> None:
        """Adds a restart. `was_at`: the upstream offset that MM2 would send next if each record since the last sync
        were new.

        MM2 was never farther, unless the source has gaps whose syncs are missing as well (after a hole).
        """
        # The target has more records than the source has offsets, so some are there twice.
        known = self._restarts
        if len(known) == RESTART_FIELDS * MAX_RESTARTS:
            known = array("q", (known[3], min(known[1] + known[4], MAX_INT64), max(known[2], known[5]))) + known[6:]
        # A forged sync may have any offsets.
        self._restarts = known + array("q", (downstream, min(resent, MAX_INT64), min(was_at, MAX_INT64)))

    def cap_restarts(self, source_end: int) -> bool:
        """Lowers the `was_at` of restarts to a later end of the source, because MM2 was never beyond it. Returns
        whether any changed."""
        capped = array("q", self._restarts)
        for at in range(RESTART_FIELDS - 1, len(capped), RESTART_FIELDS):
            capped[at] = min(capped[at], source_end)
        changed = capped != self._restarts
        self._restarts = capped if capped else NOTHING
        return changed

    def drop_beyond(self, source_end: int) -> int:
        """Forgets syncs of records that the source does not have. Returns their number. `source_end`: end of its log
        now."""
        known = list(self.pairs())
        kept = [pair for pair in known if pair.upstream < source_end]
        if not kept:
            self._live = self._older = self._restarts = NOTHING
        elif len(kept) < len(known):
            while self._live and self._live[0] >= source_end:
                del self._live[:WIDTH]
            if not self._live:
                self._live, self._older = first(*kept[0]), NOTHING
                for pair in kept[1:]:
                    admit(self._live, *pair)
        return len(known) - len(kept)

    def reaches(self, pair: Pair) -> bool:
        """Whether the record at the pair's upstream offset can have the pair's downstream offset, by the syncs before
        it."""
        below, _ = self.around(pair.upstream)
        if below is None:
            return True
        # From the last sync on the target has at most one record for each source offset, and those sent again.
        most = below.downstream + pair.upstream - below.upstream + self.resent_after(below.downstream)
        return pair.downstream <= most

    def empty(self, end: int = 0) -> None:
        """Forgets all pairs: the target's log was truncated, and it is unknown which records it still has.

        It keeps one number: the highest source offset that MM2 may have read. `end`: the highest end of the target's
        log so far.
        """
        if self._live:
            upstream, downstream = self.latest
            sent_to = min(MAX_INT64, upstream + max(1, end - downstream))
            was_at = (at for _, _, at in self._restarted())
            self._restarts = array("q", (0, 0, max(sent_to, *was_at) if self._restarts else sent_to))
        self._live = self._older = NOTHING

    @property
    def is_empty(self) -> bool:
        """Whether no sync was taken since a truncation. Then only `position`, `take` and `to_bytes` may be used."""
        return not self._live

    def contradicts(self, pair: Pair) -> int | None:
        """Returns the downstream offset of a record that lies after the pair upstream, and before it downstream. None:
        no record contradicts the pair.

        A group that has not read that record yet would skip it: the pair is from before a truncation.
        """
        _, following = self.around(pair.upstream)
        first_behind = following or self.latest
        untrue = first_behind.upstream >= pair.upstream and first_behind.downstream < pair.downstream
        return first_behind.downstream if untrue else None

    def _restarted(self) -> Iterator[tuple[int, int, int]]:
        known = iter(self._restarts)
        return zip(known, known, known, strict=True)

    def restarts(self) -> list[Restart]:
        """The known restarts, oldest first."""
        found = [Restart(downstream, was_at) for downstream, _, was_at in self._restarted()]
        # The oldest ones were joined when there were more than can be told apart.
        return [found[0]._replace(several=True), *found[1:]] if len(found) == MAX_RESTARTS else found

    def pairs(self) -> Iterator[Pair]:
        """Yields all known pairs, oldest first. Downstream offsets rise, upstream offsets never fall."""
        older, live = self._older, self._live
        for at in range(0, len(older), 2):
            yield Pair(older[at], older[at + 1])
        for at in range(len(live) - WIDTH, -1, -WIDTH):
            yield Pair(live[at], live[at + 1])

    @property
    def latest(self) -> Pair:
        """The sync that was taken last."""
        return Pair(self._live[0], self._live[1])

    @property
    def shows_gap(self) -> bool:
        """Whether the source has more offsets between the last two syncs than the target has."""
        live = self._live
        return len(live) > WIDTH and live[0] - live[WIDTH] > live[1] - live[WIDTH + 1]

    @property
    def reached(self) -> int:
        """An end that the target's log had when MM2 wrote the latest sync. A lower end now means a truncation."""
        return self._live[1] + 1

    def around(self, upstream: int, before: int = MAX_INT64) -> tuple[Pair | None, Pair | None]:
        """Returns the last pair at or before an upstream offset, and the next pair.

        `before`: only pairs below this downstream offset count.
        """
        return neighbours([pair for pair in self.pairs() if pair.downstream < before], upstream, "upstream")

    def resending_since(self, end: int) -> int | None:
        """Returns the target offset at which MM2 began to send again, until it is as far as before its restart. None:
        it has caught up.

        Until then, the target may lack after that offset records that it has before it. `end`: end of the target's log.
        """
        if not self._restarts:
            return None
        # Fewer records come again if the source has gaps, and each gap makes a sync.
        arrived = self.latest.upstream + max(0, end - self.latest.downstream)
        return next((since for since, _, was_at in self._restarted() if arrived < was_at), None)

    def around_downstream(self, downstream: int) -> tuple[Pair | None, Pair | None]:
        """Returns the last pair at or before a downstream offset, and the next pair."""
        return neighbours(list(self.pairs()), downstream, "downstream")

    def resent_after(self, downstream: int) -> int:
        """Returns the most records that restarts after a downstream offset sent again."""
        return sum(resent for at, resent, _ in self._restarted() if at > downstream)

    def resent_before(self, downstream: int) -> int:
        """Returns the most records below a downstream offset that the target has twice, or too early.

        Records before the earliest pair are unknown, and count.
        """
        earliest = next(self.pairs()).downstream
        known = enumerate(self._restarted())
        return earliest + sum(resent for number, (at, resent, _) in known if number == 0 or at <= downstream)

    def to_bytes(self) -> bytes:
        """Returns the whole history as bytes for the ledger."""
        arrays = {"live": self._live, "older": self._older, "restarts": self._restarts}
        lists = {name: numbers.tolist() for name, numbers in arrays.items()}
        return HISTORY_SCHEMA.encode({"position": self.position} | lists)

    @classmethod
    def from_bytes(cls, data: bytes) -> History:
        """Returns the history in bytes of `to_bytes`. Raises LockstepError for other bytes."""
        fields = HISTORY_SCHEMA.decode(data)
        live, older, restarts = fields["live"], fields["older"], fields["restarts"]
        if not well_formed(live, older, restarts):
            raise LockstepError("an offset history is damaged: its offsets are out of order")
        history = cls(0, 0, fields["position"])
        history._live, history._older, history._restarts = (
            array("q", numbers) if numbers else NOTHING for numbers in (live, older, restarts)
        )
        return history


# How MM2 thins the syncs of a partition: dense near the end, exponentially sparser behind.
#
# MM2 keeps 64 slots, and most neighbours hold the same sync. Here a sync is kept once, with the slot that it ends
# before: three numbers (upstream offset, downstream offset, end) in one array, newest first, the last end being 64.
# What `admit` leaves behind is what Kafka's `OffsetSyncStore.updateSyncArray` leaves behind (Kafka 3.5, KAFKA-12468;
# tests/parity compares them). Its invariants, for slots i < j that hold different syncs:
#
# - A: slot 0 is the latest sync;
# - B: `upstream[i] <= upstream[j] + 2^j - 2^i`: nothing is too old for its slot;
# - C: `upstream[i] >= upstream[j] + 2^(i - 2)`: nothing is so near to its neighbour that it is of no use;
# - D: slot 63 is the earliest sync that can be translated with.


SLOTS = 64
"""Slots of a history, one for each bit of an offset (`OffsetSyncStore.SYNCS_PER_PARTITION`)."""
WIDTH = 3
"""Numbers that a sync takes in the array."""

_NEW = -1


def first(upstream: int, downstream: int) -> array[int]:
    """Returns the slots with one sync."""
    return array("q", (upstream, downstream, SLOTS))


def admit(slots: array[int], upstream: int, downstream: int) -> None:
    """Adds a sync to the slots. `upstream` must not lie before the latest sync's; such a sync begins a new history."""
    # Up to this slot nothing known is recent enough for B, and MM2's loop fills slot after slot with the new sync.
    current = max(upstream - slots[0] - 1, 0).bit_length() + 1
    kept: list[int] = []
    before, replacement, candidate, here = _NEW, _NEW, 0, 0
    before_upstream, before_downstream = upstream, downstream
    while current < SLOTS:
        while slots[here + 2] <= current:
            here += WIDTH
        candidate, replacement = _choose(slots, current, (before, before_upstream), candidate, replacement, here)
        if before == here or before_upstream - slots[here] <= 1 << (current - 1):
            break
        if replacement != before:
            kept += (before_upstream, before_downstream, current)
            before, before_upstream, before_downstream = replacement, slots[replacement], slots[replacement + 1]
        current += 1
    else:
        here = len(slots)
    if before != here:
        kept += (before_upstream, before_downstream, current)
    slots[:here] = array("q", kept)


def _choose(
    slots: array[int], current: int, before: tuple[int, int], candidate: int, replacement: int, here: int
) -> tuple[int, int]:
    """Returns the next candidate, and the sync for the slot `current` in case its sync is too old for it.

    `before`: the sync in the slot before it, by its index in `slots`, and its upstream offset. `here`: the index of the
    sync that is in `current`. A candidate too near to the one before it is dropped for good.
    """
    slot, upstream = before
    reach, apart, apart_next = 1 << (current - 1), 1 << max(current - 3, 0), 1 << max(current - 2, 0)
    following = here if slots[here + 2] > current + 1 else here + WIDTH
    while True:
        distance = upstream - slots[candidate]
        separated = slot == candidate or distance >= apart
        promoted = (separated and (slot == candidate or distance <= reach)) and (
            following in (candidate, len(slots)) or slots[candidate] - slots[following] >= apart_next
        )
        if promoted:
            replacement = candidate
        end = slots[candidate + 2]
        if end > current or (separated and not promoted):
            return candidate, replacement
        candidate += WIDTH
        if separated or end == current:
            return candidate, replacement


RESTART_FIELDS = 3
"""Numbers of a restart. They are the downstream offset at which it began to write, the most records that were sent
again, and the upstream offset that was due before it."""

NOTHING: array[int] = array("q")


class Pair(NamedTuple):
    """The upstream offset of a record and the downstream offset of its copy."""

    upstream: int
    downstream: int


class Restart(NamedTuple):
    """A restart: MM2 began to write again at `downstream`; before, it had sent no upstream offset at or after `was_at`.

    `several`: it also stands for earlier restarts at unknown places.
    """

    downstream: int
    was_at: int
    several: bool = False


def thinned_pairs(pairs: list[Pair], upstream: int) -> array[int]:
    """Returns one pair for each power of two of the distance to `upstream`, and the earliest: 64 at most."""
    thinned: list[Pair] = []
    for pair in reversed(pairs):
        nearer = (upstream - thinned[-1].upstream).bit_length() if thinned else 0
        if (upstream - pair.upstream).bit_length() > nearer:
            thinned.append(pair)
    if pairs and thinned[-1] != pairs[0]:
        thinned[-1] = pairs[0]
    return array("q", [number for pair in reversed(thinned) for number in pair]) if thinned else NOTHING


def well_formed(live: Sequence[int], older: Sequence[int], restarts: Sequence[int]) -> bool:
    if not live:
        # After a truncation only one number counts: how far MM2 had sent the source.
        return (
            not older and len(restarts) in (0, RESTART_FIELDS) and all(0 <= number <= MAX_INT64 for number in restarts)
        )
    if len(live) % WIDTH or len(older) % 2 or len(restarts) % RESTART_FIELDS or live[-1] != SLOTS:
        return False
    upstreams, downstreams = [*older[::2], *live[-3::-3]], [*older[1::2], *live[-2::-3]]
    return (
        all(0 <= number <= MAX_INT64 for number in (*live, *older, *restarts))
        and upstreams == sorted(upstreams)
        and downstreams == sorted(set(downstreams))
        and list(live[2::3]) == sorted(set(live[2::3]))
    )


# The offset histories of all partitions of a flow, and how far MM2's offset-syncs topic was read for them.


class Histories:
    """The histories of a flow's partitions, by partition on the source."""

    def __init__(self, ids_of: Callable[[str], str | None] = lambda topic: "") -> None:
        """`ids_of`: returns the ids of a topic and of the offset-syncs topic, as text; None while they are unknown."""
        self.exact = ExactOffsets(ids_of)
        self._known: dict[TopicPartition, History] = {}
        self._hole = NOWHERE
        self.position = NOWHERE
        """The highest offset that was seen in the offset-syncs topic."""
        self.are_whole = False
        """Whether the last reading of the topic reached its end."""

    def take(
        self, where: TopicPartition, upstream: int, downstream: int, position: int, end: int = 0
    ) -> Discontinuity | None:
        """Takes in the sync at the offset `position` of the offset-syncs topic. Returns what else it shows.

        A sync that comes again, as after a restart of the job, changes nothing. `end`: the highest end of the target's
        log so far.
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

        If offsets before it are missing, compaction removed their records before they were read.
        """
        if position > self.position + 1:
            self._hole = position
        self.position = max(self.position, position)

    def forget_positions(self) -> None:
        """Counts offsets of the recreated offset-syncs topic from 0. Every sync that comes is new, and some may be
        missing."""
        for history in self._known.values():
            history.position = NOWHERE
        self.position, self._hole = NOWHERE, 0
        self.exact.forget_all()

    def restore(self, where: TopicPartition, history: History) -> None:
        """Takes over a history from the ledger."""
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
        """Returns partitions whose number is too high for their topic, because a sync can name any. `counts`:
        partitions by topic. Leaves out a topic with 0 partitions, because its number is unknown."""
        return [where for where in self._known if 0 < counts.get(where.topic, 0) <= where.partition]

    def emptied(self) -> list[TopicPartition]:
        """Returns partitions whose copy lost its tail and that had no sync since."""
        return [where for where, history in self._known.items() if history.is_empty]

    def of(self, where: TopicPartition) -> History | None:
        """Returns the history of one partition. None: no sync was seen, or none since a truncation."""
        history = self.with_empty(where)
        return None if history is None or history.is_empty else history

    def exact_offset(self, where: TopicPartition, upstream: int) -> int | None:
        """Returns the verified offset at which a group at this source offset continues; None if there is none that
        still holds.

        It must lie between two offset-syncs. After the newest sync only the ledger would vouch for it.
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
        """Returns the last sync of each partition; None while later ones may be unread."""
        if not self.are_whole:
            return None
        return {
            where: LatestSync(*pair, history.resending_since(pair.downstream) is not None, history.shows_gap)
            for where, history in self._known.items()
            if not history.is_empty
            for pair in [history.latest]
        }

    def with_empty(self, where: TopicPartition) -> History | None:
        """Returns the history of one partition, even if a truncation emptied it."""
        return self._known.get(where)

    def is_news(self, where: TopicPartition, position: int) -> bool:
        """Whether a sync at this offset of the offset-syncs topic is new."""
        history = self.with_empty(where)
        return history is None or position > history.position

    def is_truncated(self, where: TopicPartition) -> bool:
        """Whether a truncation emptied the history, and no sync came since."""
        history = self.with_empty(where)
        return history is not None and history.is_empty

    def reached(self, where: TopicPartition) -> int:
        """Returns an end that the log on the target once had, by the syncs; 0 if unknown."""
        history = self.of(where)
        return 0 if history is None else history.reached

    def topics(self) -> frozenset[str]:
        return frozenset(where.topic for where in self._known)

    def changed_since(self, position: int) -> list[TopicPartition]:
        """Returns the partitions with a sync after this offset of the offset-syncs topic.

        Call it with `Histories.position` at the time when the ledger was last written, or with -1 for all.
        """
        return [where for where, history in self._known.items() if history.position > position]
