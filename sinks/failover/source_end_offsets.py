"""Keeps the source's end offsets in the ledger, as last seen, for a failover while the source is down."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial

from sinks.background import Beside, begun
from sinks.every_kind.absence import Absence
from sinks.every_kind.controller import PassContext
from sinks.failover.lost_before_copying import (
    ANY_OFFSET,
    Lost,
    added,
    begun_anew,
    entries_of,
    find_lost,
    kept_lost,
    lost_line,
    may_lose,
    merged,
)
from sinks.failover.record_matching import ReadLimits, read_records
from sinks.failover.uncopied_records import pairs_of
from sinks.faults import Observed
from sinks.kafka.ports.groups import LogRange, ends_of
from sinks.kafka.ports.record_reader import RecordReader, Why
from sinks.kinds.offsets.log_tails import NOTHING_MISSED, Missed
from sinks.kinds.offsets.same_offsets import CopiedEnds
from sinks.kinds.offsets.stored_memory import recalled_end_offsets
from sinks.ledger.kept_end_offsets import (
    FAR,
    UNSEEN_END,
    CopiedTo,
    KeptEndOffsets,
    KnownPosition,
    LatestSync,
    by_partition,
    by_topic,
    chunks,
    furthest,
    renewed_all,
    to_text,
)
from sinks.ledger.ledger import TOPIC_GONE, Ledger
from sinks.ledger.ledger_entries import Entry, EntryKey
from sinks.model.changes import Key
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition

log = logging.getLogger(__name__)

STARTS_EVERY = 60.0
"""Seconds between two requests for the log starts of partitions with uncopied records. For a partition whose copy made
progress, Lockstep asks at once. Only then does the log start tell whether retention was faster than MM2."""

OVERTAKEN_AT_ONCE = 20
"""Most partitions per reading of the ends whose copies are read for losses. Others wait for the next reading."""

FIRST_ENTRY: Key = ("0",)

AT_LEAST_EVERY = 60.0
"""Seconds after which an entry is written again with a new time, although no end moved."""

EndOffsets = Mapping[str, Sequence[int]]
"""End offsets of each topic's partitions, in order. UNSEEN_END stands for an end that was not seen."""


@dataclass(frozen=True, slots=True)
class Read:
    """The result of one reading of the source's ends."""

    ends: dict[str, tuple[int, ...]]
    gone: set[str]
    """Topics that every broker reports as unknown."""
    positions: dict[str, CopiedTo]
    """How far each topic's partitions were copied."""
    lost: Mapping[TopicPartition, Lost] = field(default_factory=dict)
    """Records that retention deleted before MM2 copied them."""
    others: frozenset[TopicPartition] = frozenset()
    """Partitions whose logs are new ones, recreated or truncated."""
    shrunk: Mapping[TopicPartition, int] = field(default_factory=dict)
    """New ends of logs that became shorter."""
    cut: Mapping[TopicPartition, Lost] = field(default_factory=dict)
    """Records that the copies lack because a log lost its tail."""
    absent: frozenset[str] = frozenset()
    """Topics that the source does not have, but the target has copies of."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """A reading of the source's ends that runs beside the passes."""

    at_ms: int
    """When it began, in ms since the epoch."""
    cut: Mapping[TopicPartition, Missed]
    """Losses of logs that lost their tails, as far as offset-syncs showed them by then."""
    listed: int
    """How many topics the source had then."""
    recreated: Collection[str]
    """Topics that were recreated since the previous reading."""
    read: Future[Read]


LatestSyncs = Callable[[], Mapping[TopicPartition, LatestSync] | None]
"""Returns MM2's last offset-sync of each partition; None until all of them were read."""

NoteShrunk = Callable[[Ledger, Mapping[str, int], Mapping[TopicPartition, int]], None]
"""Called before the ledger forgets the old ends of logs that became shorter. Arguments: the ledger, partition counts of
the source's topics, and the new ends of these logs. Called again if it raised, or if the ledger's write failed."""


class SourceEndOffsetStore:
    """Reads the end offsets of one flow's source and keeps them in the ledger. A running job calls it after each pass.

    Thousands of partitions take a while, so a thread reads the ends beside the passes. The store writes them after the
    next pass, because only a pass may write the ledger.
    """

    def __init__(
        self,
        source: RecordReader,
        interval: float,
        now_ms: Callable[[], float] = lambda: time.time() * 1000,
        beside: Beside = begun,
        syncs: LatestSyncs = lambda: None,
        target: RecordReader | None = None,
        note_shrunk: NoteShrunk = lambda ledger, listed, ends: None,
        cut: Callable[[], Mapping[TopicPartition, Missed]] = dict,
        copied_ends: CopiedEnds | None = None,
        copied_topics: Callable[[Mapping[str, int]], Collection[str]] = lambda target: (),
        absent: Callable[[Collection[str]], Collection[str]] = lambda topics: (),
    ) -> None:
        """`source` reads with MM2's isolation level, `target` committed records only. Without `target`, the store looks
        for no losses before copying. `interval`: seconds between readings. `beside`: starts a reading in a thread.

        `cut`: returns the records that copies lack because logs lost their tails. `copied_ends`: ends of the copies of
        a copier that preserves offsets, used in place of `syncs`. `copied_topics`: takes partition counts of the
        target's topics and returns the source topics that these are copies of. `absent`: returns which of the given
        topics the source certainly lacks.
        """
        self._cut, self._cuts = cut, dict[TopicPartition, Missed]()
        self._note_shrunk, self._copied_ends = note_shrunk, copied_ends
        self._copied_topics, self._confirmed = copied_topics, absent
        self._absent: Collection[str] = ()
        self._source, self._interval, self._now_ms, self._syncs = source, interval, now_ms, syncs
        self._target, self._starts_at = target, float("-inf")
        self._remote: Mapping[str, str] = {}
        self._beside = beside
        self._read_at: float | None = None
        self._reading: _Reading | None = None
        self._written: dict[Key, tuple[float, object]] = {}
        self._told: tuple[object, ...] = ()
        self._last: Read | None = None
        self._newest: tuple[dict[str, tuple[int, ...]], dict[str, CopiedTo], frozenset[str]] | None = None
        self._same_at_ms: int | None = None
        self._known: dict[str, KeptEndOffsets] | None = None
        self._copied = PositionMemory({}, {})
        self._unanswered = set[TopicPartition]()
        self._lock = threading.Lock()
        self._counted: dict[TopicPartition, KnownPosition] = {}
        self._met, self._unborn = set[str](), set[str]()
        self._ids, self._recreated = dict[str, str](), set[str]()
        # Results that the ledger lacks. Oldest first, each with the topics that were gone by then.
        self._unwritten: list[tuple[Read, Collection[str]]] = []
        self._there: Collection[str] | None = None
        self._absence = Absence[str]()

    def note_counted(self, positions: Positions) -> None:
        """Notes copy positions that a preflight counted with both clusters. Thread-safe."""
        with self._lock:
            self._counted |= positions

    @property
    def caught_up_ms(self) -> int | None:
        """`CopiedEnds.caught_up_ms`; None for MM2, which emits heartbeats."""
        return self._copied_ends.caught_up_ms if self._copied_ends else None

    def keep(self, context: PassContext) -> None:
        """Starts a reading of the source's end offsets if one is due, and writes changed ends to the ledger. Errors are
        only logged, because no pass depends on this."""
        try:
            self._meet(context)
            self._write_what_was_read(context)
            if self._reading is None and (self._read_at is None or context.now - self._read_at >= self._interval):
                self._read_at = context.now
                counts = self._counts(context)
                # Before the ends: a known record must lie before the end of its log.
                with self._lock:
                    counted, self._counted = self._counted, {}
                recreated, self._recreated = self._recreated, set()
                now_ms, cut = int(self._now_ms()), self._cuts_so_far()
                evidence = CopyEvidence(self._syncs(), counted, recreated=recreated)
                self._remote = context.listed.desired.remote
                others = self._without_topic(context, counts)
                read = self._beside(
                    partial(self._read_all, counts, evidence, frozenset(self._unborn), others), "lockstep-source-ends"
                )
                self._reading = _Reading(now_ms, cut, len(context.listed.source), recreated, read)
                self._write_what_was_read(context)
        except LockstepError as error:
            log.warning("the source's end offsets are not written to the ledger for now: %s", error)

    def _meet(self, context: PassContext) -> None:
        """Notes new topics without a copy, now or in the previous pass, and recreated topics."""
        if self._known is None:
            self._known = recalled_end_offsets(context.ledger)
            self._copied, self._met = PositionMemory(*by_partition(self._known)), set(self._known)
        remote, there = context.listed.desired.remote, context.listed.target
        before = there if self._there is None else self._there
        new = remote.keys() - self._met
        self._met |= new
        self._unborn |= {topic for topic in new if remote[topic] not in there or remote[topic] not in before}
        self._there = there
        ids = {topic: known for topic, known in context.listed.ids.items() if known}
        self._recreated |= {topic for topic, known in ids.items() if self._ids.get(topic, known) != known}
        self._ids |= ids

    def _counts(self, context: PassContext) -> dict[str, int]:
        """Returns the source topics to read ends of, with their partition counts. A topic that is absent from one
        listing may still exist, so it stays."""
        known = self._known or {}
        source, desired = context.listed.source, context.listed.desired
        # MM2 also copies topics that share a name on the target.
        remote = desired.remote.keys() | desired.shared.keys()
        counts = {topic: len(one.ends) for topic, one in known.items() if topic in remote or topic not in source}
        return dict(sorted((counts | {topic: source[topic] or counts.get(topic, 0) for topic in remote}).items()))

    def _without_topic(self, context: PassContext, counts: Mapping[str, int]) -> frozenset[str]:
        """Returns source topics that have copies on the target, but are not in `counts`."""
        listed = context.listed
        names = {name: count for name, count in listed.target.items() if name not in listed.desired.upstream}
        return frozenset(self._copied_topics(names)) - counts.keys()

    def _read_all(
        self,
        counts: Mapping[str, int],
        evidence: CopyEvidence,
        unborn: Collection[str],
        others: frozenset[str],
    ) -> Read:
        absent = others.intersection(self._absent)
        if new := others - absent:
            try:
                absent |= frozenset(self._confirmed(new))
            except LockstepError as error:
                log.debug("it is unknown which topics are gone: %s", error)
        self._absent = absent
        return replace(self._read(counts, evidence, unborn), absent=absent)

    def _read(self, counts: Mapping[str, int], evidence: CopyEvidence, unborn: Collection[str]) -> Read:
        copied, now_ms = self._copied_ends, 0
        if copied is not None:
            evidence = replace(evidence, syncs=self._positions(copied, counts))
            now_ms = round(self._now_ms())
        seen, starts = self._ends(counts, unborn)
        if copied is not None and all(fault.code in TOPIC_GONE for fault in seen.errors.values()):
            copied.note_source(seen.items, now_ms)
        evidence = replace(evidence, unborn=starts)
        told = seen, counts, evidence.syncs, starts
        again = told == self._told and not (evidence.counted or evidence.recreated or self._copied.to_count)
        if again and self._last is not None and not self._asks_starts():
            return replace(self._last, ends=dict(self._last.ends))
        self._told, self._last = told, None
        absent = {one for one, fault in seen.errors.items() if fault.code in TOPIC_GONE}
        gone = {topic for topic, count in counts.items() if {TopicPartition(topic, n) for n in range(count)} <= absent}
        before = dict(self._copied.positions)
        positions = self._copied.renew(seen.items, evidence)
        lost = self._found_lost(before, seen.items)
        try:
            self._copied.positions.update(counted_ahead(self._source, self._copied.to_count, seen.items))
        except LockstepError as error:
            # Then offsets are counted.
            log.debug("records that wait to be copied are not counted: %s", error)
        ends = by_topic(seen.items, counts, UNSEEN_END)
        others, shrunk = frozenset(self._copied.others), dict(self._copied.shrunk)
        read = Read(ends, gone, by_topic(positions, counts, None), lost, others, shrunk)
        # What waits in a log with gaps is counted at the second reading with the same result.
        is_last = again and not self._copied.to_count
        self._last = replace(read, ends=dict(read.ends), lost={}, others=frozenset(), shrunk={}) if is_last else None
        return read

    def _positions(self, copied: CopiedEnds, counts: Mapping[str, int]) -> Mapping[TopicPartition, LatestSync] | None:
        try:
            return copied.positions(pairs_of(self._remote, counts, counts.keys() & self._remote.keys()))
        except LockstepError as error:
            log.warning("it is unknown for now how far records were copied: %s", error)
            return None

    def _ends(
        self, counts: Mapping[str, int], unborn: Collection[str]
    ) -> tuple[Observed[TopicPartition, int], dict[TopicPartition, int]]:
        """Returns the ends of all partitions, and the log starts for partitions of `unborn` topics."""
        where = [TopicPartition(topic, number) for topic, count in counts.items() for number in range(count)]
        new = [one for one in where if one.topic in unborn]
        logs: Observed[TopicPartition, LogRange] = self._source.ends(new) if new else Observed({})
        old = self._source.latest([one for one in where if one.topic not in unborn])
        ends = ends_of(logs)
        seen = Observed({**old.items, **ends.items}, {**old.errors, **ends.errors})
        return seen, {where: log.start for where, log in logs.items.items()}

    def _asks_starts(self) -> bool:
        return self._target is not None and self._now_ms() >= self._starts_at + STARTS_EVERY * 1000

    def _found_lost(self, before: Positions, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, Lost]:
        """Returns the records behind the positions `before` that retention deleted before MM2 copied them. A position
        that could not be checked stays as it was, and the next reading checks it again."""
        wanted, all_due = self._copied.moved(before), self._asks_starts()
        if all_due:
            wanted |= {where: one for where, one in before.items() if where in ends and one.source < ends[where]}
            wanted = {where: one for where, one in wanted.items() if where not in self._copied.others}
        wanted = {
            where: one
            for where, one in wanted.items()
            if where in ends and where.topic in self._remote and may_lose(where.topic)
        }
        if self._target is None or not wanted:
            return {}
        try:
            logs = self._source.ends(list(wanted)).items
            overtaken = {
                where: one for where, one in wanted.items() if where in logs and logs[where].start > one.source
            }
            self._copied.positions.update(
                overtaken | {where: one for where, one in wanted.items() if where not in logs}
            )
            # Partitions that a cluster did not answer for last time come last.
            in_turn = sorted(overtaken, key=lambda where: (where in self._unanswered, where))
            chosen = {where: overtaken[where] for where in in_turn[:OVERTAKEN_AT_ONCE]}
            copies = {where: TopicPartition(self._remote[where.topic], where.partition) for where in chosen}
            now_ms = round(self._now_ms())
            found = find_lost(self._source, self._target, chosen, copies, now_ms, self._unanswered)
        except LockstepError as error:
            self._copied.positions.update(wanted)
            log.warning("it is unknown for now whether records were lost before they were copied: %s", error)
            return {}
        self._copied.positions.update(found.positions)
        unanswered = chosen.keys() - found.positions.keys()
        self._unanswered = (self._unanswered & overtaken.keys()) - chosen.keys() | unanswered
        if all_due and overtaken.keys() <= chosen.keys() | self._unanswered:
            self._starts_at = self._now_ms()
        return found.lost

    def _write_what_was_read(self, context: PassContext) -> None:
        reading = self._reading
        if reading is None or not reading.read.done():
            return
        self._reading = None
        if (error := reading.read.exception()) is not None:
            self._recreated |= set(reading.recreated)
            raise error
        read = reading.read.result()
        self._cuts = {where: one for where, one in reading.cut.items() if _end_of(where, read) == UNSEEN_END}
        read = replace(read, cut=_lost_by_cuts(reading, read))
        self._absence.observe(read.gone - context.listed.source.keys(), reading.listed, context.now)
        lasting = self._absence.lasting()
        for topic in lasting:
            del read.ends[topic]
        gone = {*lasting, *((self._known or {}).keys() - read.ends.keys())}
        self._copied.forget(gone)
        self._ids = {topic: known for topic, known in self._ids.items() if topic not in gone}
        seen = {topic for topic, ends in read.ends.items() if UNSEEN_END not in ends}
        self._met, self._unborn = self._met - gone, self._unborn - gone - seen
        newest = read.ends, read.positions, read.absent
        for where, one in sorted([*read.lost.items(), *read.cut.items()]):
            log.error("%s", lost_line(where, one))
        if read.lost or read.cut or read.others or gone:
            self._unwritten.append((read, gone))
        if newest == self._newest and not self._unwritten and not self._is_due(context.now):
            self._same_at_ms = reading.at_ms
            return
        if self._newest is not None and self._same_at_ms is not None:
            self._known = renewed_all(self._known or {}, self._newest[0], self._same_at_ms, self._newest[1])
        self._same_at_ms = None
        self._known = renewed_all(self._known or {}, read.ends, reading.at_ms, read.positions)
        kept: dict[Key, Mapping[str, KeptEndOffsets]] = {
            (str(number),): chunk for number, chunk in enumerate(chunks(self._known))
        }
        for unwritten, _ in self._unwritten:
            if unwritten.shrunk:
                self._note_shrunk(context.ledger, context.listed.source, unwritten.shrunk)
        self._write(context, kept, read.absent, self._lost_entries(context.ledger))
        self._newest = newest
        self._unwritten.clear()

    def _cuts_so_far(self) -> Mapping[TopicPartition, Missed]:
        """Returns the losses of logs that lost their tails, as far as no reading has used them yet."""
        for where, one in self._cut().items():
            self._cuts[where] = self._cuts.get(where, NOTHING_MISSED).with_more(one)
        return self._cuts

    def _lost_entries(self, ledger: Ledger) -> dict[EntryKey, str | None]:
        """Returns the changes to the ledger's entries for lost records. None deletes an entry."""
        if not self._unwritten:
            return {}
        # An operator may have acknowledged losses meanwhile.
        ledger.catch_up()
        lost = before = kept_lost(ledger)
        for read, gone in self._unwritten:
            others = read.others | {where for where in lost if where.topic in gone}
            lost = added(merged(begun_anew(lost, others), read.lost), read.cut)
            # Nor together more than the log, however often syncs are forged.
            for where in read.cut:
                lost[where] = replace(lost[where], records=min(lost[where].records, _end_of(where, read) or 0))
        old: dict[EntryKey, str | None] = {(Entry.LOST, (where.topic,)): None for where in before}
        return old | entries_of(lost)

    def _is_due(self, now: float) -> bool:
        return any(now - written_at >= AT_LEAST_EVERY for written_at, _ in self._written.values())

    def _write(
        self,
        context: PassContext,
        kept: Mapping[Key, Mapping[str, KeptEndOffsets]],
        absent: Collection[str],
        lost: Mapping[EntryKey, str | None],
    ) -> None:
        entries = dict(lost)
        writes: dict[Key, tuple[float, object]] = {}
        for key, chunk in kept.items():
            # One entry has all of them.
            others = absent if key == FIRST_ENTRY else ()
            known = {topic: (one.ends, one.positions) for topic, one in chunk.items()}, others
            written_at, written = self._written.get(key, (0.0, None))
            if known != written or context.now - written_at >= AT_LEAST_EVERY:
                entries[Entry.SOURCE_ENDS, key] = to_text(chunk, others)
                writes[key] = (context.now, known)
        old = context.ledger.values(Entry.SOURCE_ENDS).keys() - kept.keys()
        context.ledger.put(entries | {(Entry.SOURCE_ENDS, key): None for key in old})
        self._written = {key: known for key, known in (self._written | writes).items() if key in kept}

    def close(self) -> None:
        """Closes the readers without waiting for a reading in progress."""
        self._source.close()
        if self._target is not None:
            self._target.close()


def _end_of(where: TopicPartition, read: Read) -> int | None:
    """Returns the partition's end on the source: UNSEEN_END if it was not seen, None if the flow has no such
    partition."""
    ends = read.ends.get(where.topic, ())
    return ends[where.partition] if where.partition < len(ends) else None


def _lost_by_cuts(reading: _Reading, read: Read) -> dict[TopicPartition, Lost]:
    """Returns the losses that offset-syncs showed. Each is capped at the source's end offset, read after the sync,
    because a sync may be forged."""
    ends = {where: _end_of(where, read) or 0 for where in reading.cut}
    return {
        where: Lost(min(one.records, ends[where]), ANY_OFFSET, reading.at_ms, one.unknown)
        for where, one in reading.cut.items()
        if ends[where] > 0
    }


# Counts waiting records of the source one by one, where offsets overstate them. Bounded.
#
# Transaction markers and aborted records have offsets, too. Where a partition has such gaps, and MM2's offset-syncs
# bring nothing newer, the waiting records are read. Each is read once. Records that compaction or retention removed may
# be on the target, and count.


AHEAD_LIMITS = ReadLimits(most=5000, seconds=2.0)
"""Limits of one reading, for all partitions together: by default a thousand offsets a second."""


def counted_ahead(
    source: RecordReader,
    positions: Mapping[TopicPartition, KnownPosition],
    ends: Mapping[TopicPartition, int],
    limits: ReadLimits = AHEAD_LIMITS,
) -> dict[TopicPartition, KnownPosition]:
    """Reads the waiting records behind these positions and returns the positions moved to where it read, with counts.

    `source` reads with MM2's isolation level. `ends`: end offsets on the source. The shortest stretches come first. The
    result leaves out stretches beyond the limits, and stretches that may have lost records.
    Raises ClusterUnreachable, RightsMissing.
    """
    compacted = source.compacted({where.topic for where in positions})
    whole = {where: one for where, one in positions.items() if where in ends and where.topic not in compacted}
    spans = _chosen(whole, ends, limits.most)
    counts = Counter[TopicPartition]()
    endings = read_records(source, spans, limits, lambda where, record: counts.update([where]))
    # Read afterwards, because what retention deleted meanwhile was not read either.
    logs = source.ends(list(endings)).items if endings else {}
    found = {}
    for where, ending in endings.items():
        before = whole[where]
        if ending.why is not Why.FAULT and where in logs and logs[where].start <= before.source:
            # Before an open transaction: its records may still commit.
            reached = max(before.source, min(ending.position, ends[where]))
            found[where] = KnownPosition(reached, before.target, before.missing + counts[where])
    return found


def _chosen(
    positions: Mapping[TopicPartition, KnownPosition], ends: Mapping[TopicPartition, int], most: int
) -> dict[TopicPartition, tuple[int, int | None]]:
    """Returns the shortest stretches, [position, end), that together have at most `most` offsets."""
    spans: dict[TopicPartition, tuple[int, int | None]] = {}
    for length, where in sorted((ends[where] - one.source, where) for where, one in positions.items()):
        if length > most:
            break
        most -= length
        spans[where] = (positions[where].source, ends[where])
    return spans


# Remembers, in a running job, how far each partition was copied, from one reading of the source's ends to the next.
#
# A position holds for the logs it was found in. A source log that became shorter was recreated or truncated. A target
# log whose offset-syncs began anew was, too. A topic with another id was recreated. In these cases Lockstep drops the
# position and the sync known then, until another sync comes.


Positions = Mapping[TopicPartition, KnownPosition]


@dataclass(frozen=True)
class CopyEvidence:
    """Evidence of how far partitions of the source were copied, collected before the source's ends were read."""

    syncs: Mapping[TopicPartition, LatestSync] | None = None
    """MM2's last offset-sync of each partition; None until all of them were read."""
    counted: Positions = field(default_factory=dict)
    """Positions that were counted with both clusters since the last reading."""
    unborn: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Log starts of new topics, which had no copy when Lockstep first saw them."""
    recreated: Collection[str] = ()
    """Topics that got another id on the source since the last reading."""


class PositionMemory:
    """Remembers how far each partition of one flow was copied, while the job runs. Not thread-safe."""

    def __init__(self, positions: Positions, ends: Mapping[TopicPartition, int]) -> None:
        """`positions`, `ends`: from the ledger. A position counts while MM2 has an offset-sync of its partition."""
        self.positions, self._ends = dict(positions), dict(ends)
        self._unconfirmed = set(positions)
        self._syncs: Mapping[TopicPartition, LatestSync] = {}
        self._gaps = set[TopicPartition]()
        self.to_count: Positions = {}
        """Positions whose waiting records are to be counted one by one: in logs with gaps, and of new topics."""
        self._doubted: dict[TopicPartition, KnownPosition] = {}
        self.others = set[TopicPartition]()
        """Partitions whose logs are new ones, according to the last `renew`."""
        self.shrunk = dict[TopicPartition, int]()
        """Partitions whose source log became shorter, with its end at the last `renew`."""

    def moved(self, before: Positions) -> dict[TopicPartition, KnownPosition]:
        """Returns the positions in `before` that the last `renew` replaced by later ones of the same logs."""
        return {
            where: position
            for where, position in before.items()
            if where not in self.others and self.positions.get(where) != position
        }

    def renew(self, ends: Mapping[TopicPartition, int], evidence: CopyEvidence) -> dict[TopicPartition, KnownPosition]:
        """Updates the positions from the evidence, and returns all of them. `ends`: the source's, read after the
        evidence. Partitions without an end keep their position."""
        to_count: dict[TopicPartition, KnownPosition] = {}
        self.others.clear()
        self.shrunk.clear()
        self._gaps |= {where for where, sync in (evidence.syncs or {}).items() if sync.gap}
        for where, end in ends.items():
            before, found = self.positions.get(where), self._found(where, end, evidence)
            self._ends[where] = end
            if found is None:
                self.positions.pop(where, None)
                continue
            self.positions[where] = found
            nothing_copied = found.target == found.missing == 0
            if found.source < end and (nothing_copied or (found == before and where in self._gaps)):
                to_count[where] = found
        self.to_count = to_count
        if evidence.syncs is not None:
            self._syncs = evidence.syncs
            self._unconfirmed.clear()
        return self.positions

    def forget(self, topics: Collection[str]) -> None:
        for known in (self.positions, self._ends, self._doubted):
            for where in [where for where in known if where.topic in topics]:
                del known[where]
        self._gaps = {where for where in self._gaps if where.topic not in topics}

    def _found(self, where: TopicPartition, end: int, evidence: CopyEvidence) -> KnownPosition | None:
        known, sync = self.positions.get(where), (evidence.syncs or {}).get(where)
        shrunk = end < self._ends.get(where, 0)
        if shrunk:
            self.shrunk[where] = end
        is_other = shrunk or where.topic in evidence.recreated
        if is_other and (stale := sync or self._syncs.get(where)) is not None:
            self._doubted[where] = stale.position
        if is_other or (evidence.syncs is not None and self._is_over(where, sync)):
            known = None
            self.others.add(where)
        found = list[KnownPosition]()
        if sync is not None and sync.position != self._doubted.get(where):
            self._doubted.pop(where, None)
            if known is None or not sync.resending or sync.position.target - known.target > FAR:
                found.append(sync.position)
        elif known is None and where in evidence.unborn:
            # MM2 never had to copy what retention deleted before the flow first saw the topic.
            known = KnownPosition(evidence.unborn[where], 0)
        if not is_other and where in evidence.counted:
            found.append(evidence.counted[where])
        # A record behind the source's end belongs to another log.
        return furthest(known, [one for one in found if one.source <= end])

    def _is_over(self, where: TopicPartition, sync: LatestSync | None) -> bool:
        """Whether the offset-syncs show that a log was recreated: a sync vanished, or its downstream offset fell."""
        before = self._syncs.get(where)
        if sync is None:
            return before is not None or where in self._unconfirmed
        return before is not None and sync.downstream < before.downstream
