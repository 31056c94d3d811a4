"""A copier that preserves offsets: a record has one offset on both sides, so a group's offset is its own translation.

Cluster mirroring (KIP-1279), linking and shadowing copy so; MM2 does not. No topic tells how far such a copier came:
the ends of both logs do. A file may name the copier wrongly, and then a group would skip records. So no offset is
written before the records next to it were read on both sides, and were the same ones at the same offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.cluster_ports import ClusterPorts
from sinks.kafka.ports.groups import LogRange
from sinks.kafka.ports.record_reader import Record, RecordReader, Span, Why
from sinks.kinds.offsets.history import Pair
from sinks.kinds.offsets.translation import Answer, LogEnds, Method, Unanswered
from sinks.ledger.known_positions import LatestSync
from streaming.errors import WrongUsage
from streaming.mm2.records import TopicPartition

WIDTHS = (20, 2_000)
"""Offsets in which a record is looked for. The second width is for stretches of transaction markers, and for logs that
lost most records to compaction."""

READS_FOR_S = 10.0
"""How long all records of one width may take."""

MOST_PROVEN = 100_000
"""Positions that are remembered."""


def check_leads_back(settings: FlowSettings) -> None:
    """Raises WrongUsage for a flow whose copier brings records and groups back itself."""
    if settings.keeps_offsets:
        raise WrongUsage(
            f"the copier of {settings.flow.name} preserves offsets (lockstep.copier), and leads back by its own means: "
            "Lockstep leads back beside MM2 alone"
        )


class Position(NamedTuple):
    """An offset of the source at which a group continues, and the partition there.

    `generation`: of both logs, see `sinks.kinds.offsets.log_tails`.
    """

    where: TopicPartition
    offset: int
    generation: int = 0


def shared_range(source: LogRange, target: LogRange) -> LogRange:
    """The offsets that both logs have; empty where they have none."""
    start = max(source.start, target.start)
    return LogRange(start, max(start, min(source.end, target.end)))


def same_pairs(source: LogRange, target: LogRange) -> list[Pair]:
    """The first and the last offset that both logs have, as pairs between which the records are the same ones."""
    both = shared_range(source, target)
    return [Pair(at, at) for at in dict.fromkeys((both.start, both.end))]


def translate_same(upstream: int, ends: LogEnds, *, proven: bool) -> Answer | Unanswered:
    """The answer for a group at `upstream`: the same offset, or the copy's end where the copy is not there yet.

    `proven`: as `SameRecords.proven` says of this position.
    """
    source, target = ends.source, ends.target
    # The target's end was read first. A copy that keeps offsets is never longer than its source.
    longer = source is not None and target.end > source.end
    if longer or not (proven or target.end == 0):
        return Unanswered.OTHER_OFFSETS
    there = within(upstream, target)
    return Answer(upstream, there, Method.SAME, max(0, upstream - there))


class SameRecords:
    """Finds out whether groups would continue at the same records. It trusts order alone, and not what the file says
    of the copier."""

    def __init__(self, source: RecordReader, target: RecordReader) -> None:
        """Both read uncommitted records too, since these keep their offsets as well."""
        self._source, self._target = source, target
        self._proven: dict[Position, LogRange] = {}

    def proven(
        self,
        positions: Iterable[Position],
        copies: Mapping[TopicPartition, TopicPartition],
        ends: Mapping[TopicPartition, LogEnds],
        moving: Collection[Position] = (),
    ) -> set[Position]:
        """The positions at which a group skips nothing. `copies`, `ends`: by partition of the source.

        `moving`: positions to which a group would be moved. Their records are read now, whatever was known of them: a
        log that lost its end and grew past it shows no other range. Raises ClusterUnreachable, RightsMissing.
        """
        both = {where: shared_range(one.source, one.target) for where, one in ends.items() if one.source is not None}
        wanted = {at for at in positions if at.where in both and both[at.where].end > both[at.where].start}
        if len(self._proven) > MOST_PROVEN:
            self._proven.clear()
        left = {at for at in wanted if at in moving or self._proven.get(at) != both[at.where]}
        for at in left:
            self._proven.pop(at, None)
        for width in WIDTHS:
            spans = {at: _span(at.offset, both[at.where], width) for at in left}
            here = _records(self._source, [(at.where, span) for at, span in spans.items()])
            there = _records(self._target, [(copies[at.where], span) for at, span in spans.items()])
            for at in list(left):
                log, ours, theirs = both[at.where], here.get(at.where), there.get(copies[at.where])
                same = _continues_alike(at.offset, log, spans[at], ours, theirs)
                if same is not None:
                    left.discard(at)
                    self._proven |= {at: log} if same else {}
        return {at for at in wanted if self._proven.get(at) == both[at.where]}

    def close(self) -> None:
        """Closes both readers."""
        self._source.close()
        self._target.close()


def same_records(source: ClusterPorts, target: ClusterPorts) -> SameRecords:
    """Between two clusters."""
    return SameRecords(source.records("read_uncommitted"), target.records("read_uncommitted"))


Records = Mapping[int, Record]
"""By offset."""

Stretch = tuple[int, int]


def _span(offset: int, log: LogRange, width: int) -> Stretch:
    """What to read around a group's offset, as far as both logs have it."""
    at = within(offset, log)
    return max(log.start, at - width), min(log.end, at + width)


def within(offset: int, log: LogRange) -> int:
    """The offset of this log that is nearest to `offset`; its end counts as one."""
    return min(max(offset, log.start), log.end)


def _continues_alike(
    offset: int, log: LogRange, span: Stretch, here: Records | None, there: Records | None
) -> bool | None:
    """Whether a group at `offset` would go on with the same record; None where the span was too short to say so.

    `here`, `there`: the records of the span; None where not all of them could be read. A copier keeps the order. So
    what lies behind two neighbours that are equal on both sides comes behind them, unless the copier sends again.
    """
    if here is None or there is None:
        return False
    at, (start, stop) = within(offset, log), span
    last = max((one for one in there if start <= one < at), default=None)
    first = min((one for one in here if at <= one < stop), default=None)
    if (last is None and start > log.start) or (first is None and stop < log.end):
        return None
    if first is None and any(at <= one < stop for one in there):
        return False
    compared = [one for one in (last, first) if one is not None]
    return bool(compared) and all(_alike(here.get(one), there.get(one)) for one in compared)


def _alike(one: Record | None, other: Record | None) -> bool:
    if one is None or other is None:
        return False
    return (one.timestamp, one.key, one.value) == (other.timestamp, other.key, other.value)


def _records(
    reader: RecordReader, stretches: Collection[tuple[TopicPartition, Stretch]]
) -> dict[TopicPartition, dict[int, Record]]:
    """The records of these stretches, by partition; no entry for a partition that was not read to the end."""
    found: dict[TopicPartition, dict[int, Record]] = {where: {} for where, _ in stretches}

    def taker(where: TopicPartition) -> Callable[[Record], bool]:
        def take(record: Record) -> bool:
            found[where][record.offset] = record
            return False

        return take

    wanted = [
        Span(where, start, stop, stop - start, taker(where))
        for where, (start, stop) in dict.fromkeys(stretches)
        if start < stop
    ]
    endings = reader.scan(wanted, READS_FOR_S) if wanted else {}
    for span, ending in endings.items():
        if ending.why in (Why.TIME, Why.FAULT):
            found.pop(span.where, None)
    return found


class CopiedEnds:
    """How far an offset-preserving copier came, by the ends of the copies. Not thread-safe."""

    def __init__(self, target: RecordReader) -> None:
        self._target = target
        self._copied: dict[TopicPartition, int] = {}
        self._mark: tuple[int, Mapping[TopicPartition, int]] | None = None
        self.caught_up_ms: int | None = None
        """The newest time (ms since the epoch) up to which all records of the source are on the target."""

    def positions(self, copies: Mapping[TopicPartition, TopicPartition]) -> dict[TopicPartition, LatestSync]:
        """The last record of each copy, by partition of the source. Copies that are not there are left out.

        `copies`: by partition of the source. Raises ClusterUnreachable, RightsMissing.
        """
        ends = self._target.latest(list(copies.values())).items
        self._copied = {where: ends[copy] for where, copy in copies.items() if copy in ends}
        if self._mark is not None:
            at_ms, wanted = self._mark
            self.note_source({where: end for where, end in wanted.items() if where in copies}, at_ms)
        return {where: LatestSync(end - 1, end - 1) for where, end in self._copied.items()}

    def note_source(self, ends: Mapping[TopicPartition, int], at_ms: int) -> None:
        """Takes in the source's ends as they were at `at_ms`. Ends that the copies have yet to reach are kept."""
        if all(self._copied.get(where, 0) >= end for where, end in ends.items()):
            self.caught_up_ms, self._mark = at_ms, None
        elif self._mark is None:
            self._mark = at_ms, dict(ends)
