"""Translates group offsets for a copier that preserves offsets: a record has one offset on both sides, and so has a
group.

Cluster mirroring (KIP-1279), linking and shadowing copy so; MM2 does not. No topic tells how far such a copier came;
the ends of both logs do. A file may name the wrong copier, and then a group would skip records. So Lockstep writes an
offset only after it read the records around it on both sides and found the same ones at the same offsets.

Each cluster compacts by itself, so a record may be on one side alone. Records of one side prove nothing. The copier
does not preserve offsets if records differ at one offset. The same holds if a record is before the group on the target
and after it on the source.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.cluster_ports import ClusterPorts
from sinks.kafka.ports.groups import LogRange
from sinks.kafka.ports.record_reader import Record, RecordReader, Span, Why
from sinks.kinds.offsets.record_search import kept_in
from sinks.kinds.offsets.sync_history import Pair
from sinks.kinds.offsets.translation import Answer, LogEnds, Method, Unanswered, first_unread
from sinks.ledger.kept_end_offsets import LatestSync
from streaming.errors import WrongUsage
from streaming.mm2.records import TopicPartition

WIDTHS = (20, 2_000, 1_000_000)
"""Distances in offsets around a group within which a common record is searched, one after the other. The second is for
stretches of transaction markers, the third for logs that lost most records to compaction."""

READS_FOR_S = 10.0
"""Most seconds for reading all records of one width."""

MOST_RECORDS = 10_000
"""Most records of a partition that are read around one offset. They are held in memory."""

MOST_PROVEN = 100_000
"""Most positions that are remembered."""


def check_leads_back(settings: FlowSettings) -> None:
    """Raises WrongUsage for a flow whose copier preserves offsets: such a copier fails back itself."""
    if settings.keeps_offsets:
        raise WrongUsage(
            f"lockstep.copier says that the copier of {settings.flow.name} preserves offsets. Such a copier fails back "
            "itself. Lockstep fails back only beside MM2"
        )


class Position(NamedTuple):
    """A source partition and the offset at which a group continues there.

    `generation`: of both logs, see `sinks.kinds.offsets.log_tails`.
    """

    where: TopicPartition
    offset: int
    generation: int = 0


def shared_range(source: LogRange, target: LogRange) -> LogRange:
    """Returns the offsets that both logs have; an empty range if they have none in common."""
    start = max(source.start, target.start)
    return LogRange(start, max(start, min(source.end, target.end)))


def same_pairs(source: LogRange, target: LogRange) -> list[Pair]:
    """Returns the first and the last offset that both logs have, as pairs. Between them each record has the same
    offset."""
    both = shared_range(source, target)
    return [Pair(at, at) for at in dict.fromkeys((both.start, both.end))]


def translate_same(upstream: int, ends: LogEnds, there: int | None) -> Answer | Unanswered:
    """Returns the answer for a group at `upstream`: the same offset, or an earlier one if the copy does not reach it
    yet.

    `there`: where the group continues, by `SameRecords.proven`; None: that is not proven.
    """
    source, target = ends.source, ends.target
    # The target's end was read first. A copy that keeps offsets is never longer than its source.
    longer = source is not None and ends.tip > source.end
    if target.start == target.end:
        # No record is left that a group could skip, whatever the copier does.
        there = target.start
    if longer or there is None:
        return Unanswered.OTHER_OFFSETS
    at = first_unread(upstream, source)
    skipped = 0 if at is None else max(0, there - at)
    return Answer(upstream, there, Method.SAME, max(0, upstream - there), skipped)


class SameRecords:
    """Finds out whether groups would continue at the same records. Assumes that a copier keeps the order, and does not
    trust the file about the copier."""

    def __init__(self, source: RecordReader, target: RecordReader) -> None:
        """`source`, `target`: read uncommitted records too, because these keep their offsets as well."""
        self._source, self._target = source, target
        # Where a group goes on, as long as both logs have this range.
        self._proven: dict[Position, tuple[LogRange, int]] = {}

    def proven(
        self,
        positions: Iterable[Position],
        copies: Mapping[TopicPartition, TopicPartition],
        ends: Mapping[TopicPartition, LogEnds],
        moving: Collection[Position] = (),
    ) -> dict[Position, int]:
        """Returns by position the target offset at which a group skips nothing; leaves out unproven positions.
        `copies`, `ends`: by partition of the source.

        `moving`: positions to which a group would be moved. Their records are always read anew, because a log that lost
        its tail and grew again looks unchanged. Raises ClusterUnreachable, RightsMissing.
        """
        logs = {where: (one.source, one.target) for where, one in ends.items() if one.source is not None}
        both = {where: shared_range(*sides) for where, sides in logs.items()}
        wanted = {at for at in positions if at.where in both and both[at.where].end > both[at.where].start}
        if len(self._proven) > MOST_PROVEN:
            self._proven.clear()
        left = {at for at in wanted if at in moving or not self._is_known(at, both[at.where])}
        for at in left:
            self._proven.pop(at, None)
        for width in WIDTHS:
            # Each log may have more around the group than both have.
            spans = {
                at: [_around(within(at.offset, both[at.where]), log, width) for log in logs[at.where]] for at in left
            }
            here = _records(self._source, [(at.where, span) for at, (span, _) in spans.items()])
            there = _records(self._target, [(copies[at.where], span) for at, (_, span) in spans.items()])
            for at, read in spans.items():
                ours, theirs = here.get(at.where), there.get(copies[at.where])
                if ours is not None and theirs is not None:
                    sides = [_Side(*side) for side in zip(logs[at.where], read, (ours, theirs), strict=True)]
                    found, more_may_tell = _goes_on(at.offset, *sides)
                    if more_may_tell:
                        continue
                    if found is not None:
                        self._proven[at] = both[at.where], found
                left.discard(at)
        return {at: self._proven[at][1] for at in wanted if self._is_known(at, both[at.where])}

    def _is_known(self, at: Position, log: LogRange) -> bool:
        return at in self._proven and self._proven[at][0] == log

    def close(self) -> None:
        self._source.close()
        self._target.close()


def same_records(source: ClusterPorts, target: ClusterPorts) -> SameRecords:
    return SameRecords(source.records("read_uncommitted"), target.records("read_uncommitted"))


def _around(at: int, log: LogRange, width: int) -> LogRange:
    """Returns the part of a log to read around an offset."""
    return LogRange(max(log.start, at - width), min(log.end, at + width))


def within(offset: int, log: LogRange) -> int:
    """Returns the offset of this log, its end included, that is nearest to `offset`."""
    return min(max(offset, log.start), log.end)


class _Side:
    """A log, and its records by offset in the range that was read around a group."""

    def __init__(self, log: LogRange, read: LogRange, records: Iterable[Record]) -> None:
        self.log, self.read = log, read
        # Of the partition, the surroundings of other groups may have been read too.
        self.contents = {
            record.offset: (record.timestamp, record.key, record.value)
            for record in records
            if read.start <= record.offset < read.end
        }


def _goes_on(offset: int, here: _Side, there: _Side) -> tuple[int | None, bool]:
    """Returns the target offset at which a group skips nothing, or None if these records do not tell it; and whether
    more records might tell it.

    A copier keeps the order. So records after a common one come after it on both sides, unless the copier sends again.
    """
    at = within(offset, shared_range(here.log, there.log))
    shared = sorted(here.contents.keys() & there.contents.keys())
    last = max((one for one in shared if one < at), default=-1)
    # Before the group, and behind the last record that both have, the target alone has these.
    alone = sorted(one for one in there.contents if last < one < at)
    unread = {content for one, content in here.contents.items() if one >= at}
    if any(here.contents[one] != there.contents[one] for one in shared) or any(
        there.contents[one] in unread for one in alone
    ):
        # An offset has two records, or the group would skip a record that the target has elsewhere.
        return None, False
    unproven = None, (here.read, there.read) != (here.log, there.log)
    from_start = here.read.start == here.log.start and there.read.start == there.log.start
    # A copier that shifts offsets may have put an unread record further to the left.
    if not shared or (shared[0] >= at and not from_start):
        return unproven
    if shared[-1] >= at or not alone or here.read.end == here.log.end:
        return within(offset, there.log), False
    # Records of the source that were not read may be those that the target alone has.
    return (alone[0], False) if there.read.end == there.log.end else unproven


def _records(
    reader: RecordReader, stretches: Collection[tuple[TopicPartition, LogRange]]
) -> dict[TopicPartition, list[Record]]:
    """Returns the records of these stretches by partition. Leaves out partitions that were not read to the end."""
    found: dict[TopicPartition, list[Record]] = {where: [] for where, _ in stretches}
    wanted = [
        Span(where, one.start, one.end, min(one.end - one.start + 1, MOST_RECORDS), kept_in(found[where]))
        for where, one in dict.fromkeys(stretches)
        if one.start < one.end
    ]
    endings = reader.scan(wanted, READS_FOR_S) if wanted else {}
    for span, ending in endings.items():
        if ending.why in (Why.TIME, Why.FAULT, Why.MOST):
            found.pop(span.where, None)
    return found


class CopiedEnds:
    """Tells how far an offset-preserving copier came, by the ends of the copies. Not thread-safe."""

    def __init__(self, target: RecordReader) -> None:
        self._target = target
        self._copied: dict[TopicPartition, int] = {}
        self._mark: tuple[int, Mapping[TopicPartition, int]] | None = None
        self.caught_up_ms: int | None = None
        """The newest time (ms since the epoch) up to which all records of the source are on the target."""

    def positions(self, copies: Mapping[TopicPartition, TopicPartition]) -> dict[TopicPartition, LatestSync]:
        """Returns the last record of each copy, by partition of the source. Leaves out missing copies.

        `copies`: by partition of the source. Raises ClusterUnreachable, RightsMissing.
        """
        ends = self._target.latest(list(copies.values())).items
        self._copied = {where: ends[copy] for where, copy in copies.items() if copy in ends}
        if self._mark is not None:
            at_ms, wanted = self._mark
            self.note_source({where: end for where, end in wanted.items() if where in copies}, at_ms)
        return {where: LatestSync(end - 1, end - 1) for where, end in self._copied.items()}

    def note_source(self, ends: Mapping[TopicPartition, int], at_ms: int) -> None:
        """Notes the source's ends at `at_ms` (ms since the epoch). Ends that the copies have not reached yet are
        kept."""
        if all(self._copied.get(where, 0) >= end for where, end in ends.items()):
            self.caught_up_ms, self._mark = at_ms, None
        elif self._mark is None:
            self._mark = at_ms, dict(ends)
