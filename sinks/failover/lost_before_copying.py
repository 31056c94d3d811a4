"""Finds records that retention deleted from the source before MM2 copied them. No cluster has these any more.

The ledger says how far each partition was copied (its position). If the source's log starts behind the position,
Lockstep searches the first remaining source record on the target. Records that the target got between the position and
that record came from the deleted offsets. The other deleted offsets are lost; transaction markers count as records.
A broker does not distinguish retention from `kafka-delete-records.sh`, so both are reported.

Logs that lost their tails are found by `sinks.kinds.offsets.log_tails`. Their losses are kept and acknowledged alike.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import astuple, dataclass, replace
from datetime import datetime, timezone
from typing import Any, NamedTuple

import orjson

from sinks.failover.record_matching import NEW_COPIES_LIMITS, content_of, new_copies, read_records
from sinks.faults import LedgerUntrusted
from sinks.kafka.ports.groups import LogRange
from sinks.kafka.ports.record_reader import Record, RecordReader, Stamp, Why
from sinks.ledger.kept_end_offsets import KnownPosition, by_partition, kept_end_offsets
from sinks.ledger.ledger import Ledger
from sinks.ledger.ledger_entries import Entry, EntryKey
from sinks.model.times import utc_text
from streaming.message_words import number_of
from streaming.mm2.records import TopicPartition

FIRST_OFFSETS = 1000
"""How many offsets from the source's log start on are read to find its first record."""

CUT_SHORT = (Why.TIME, Why.FAULT)
"""Reasons why a reading stopped early. A second try may succeed."""


ANY_OFFSET = 0
"""Value of `Lost.through` for a log that lost its tail, because retention did not delete these records."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The lost records of one partition."""

    records: int
    """Upper bound of the lost records that could be counted."""
    through: int
    """The source's log start when retention deleted the last of them, or ANY_OFFSET."""
    at_ms: int
    """When the loss was found, in ms since the epoch."""
    unknown: bool = False
    """Whether more records may be lost that could not be counted."""
    compacted: bool = False
    """The same for a compacted topic, where the missing records may only have been compacted away."""

    @property
    def is_acknowledged(self) -> bool:
        return not (self.records or self.unknown or self.compacted)

    def with_more(self, later: Lost) -> Lost:
        since = later.at_ms if self.is_acknowledged else self.at_ms
        unknown, compacted = self.unknown or later.unknown, self.compacted or later.compacted
        return Lost(self.records + later.records, max(self.through, later.through), since, unknown, compacted)


LostRecords = Mapping[TopicPartition, Lost]


class Found(NamedTuple):
    """`lost`: certain and possible losses. `positions`: how far partitions are copied now. Both leave out partitions
    that a cluster did not answer for."""

    lost: dict[TopicPartition, Lost]
    positions: dict[TopicPartition, KnownPosition]


@dataclass
class _Copied:
    """Counts the records of one copy behind its position, and finds the source's first remaining record among them."""

    first: tuple[int, ...] = ()
    """Hashes of that source record (`_contents`)."""
    records: int = 0
    """All records that were read."""
    most: int = 0
    """Records before the last place of that source record."""
    first_place: int | None = None
    """Offset of its first place in the copy. It may be there twice, because MM2 resends."""
    place: int | None = None
    """Offset of its last place in the copy."""

    def take(self, record: Record) -> None:
        content = content_of(record, timed=record.stamp is not Stamp.APPEND)
        if content in self.first:
            self.first_place = record.offset if self.first_place is None else self.first_place
            self.most, self.place = self.records, record.offset
        self.records += 1

    @property
    def most_copied(self) -> int:
        """Upper bound of the copied records that come from before the source's first remaining record."""
        return self.records if self.place is None else self.most


def find_lost(
    source: RecordReader,
    target: RecordReader,
    overtaken: Mapping[TopicPartition, KnownPosition],
    copies: Mapping[TopicPartition, TopicPartition],
    now_ms: int,
    again: Collection[TopicPartition] = (),
) -> Found:
    """Returns the losses of partitions whose source log starts behind their position, `overtaken`.

    `copies`: their copies on the target. `target` reads committed records only. A partition whose reading was
    interrupted is left out, or for the partitions `again` has an unknown loss. If a copy became shorter, it is a new
    log, and its loss is unknown.
    Raises ClusterUnreachable, RightsMissing.
    """
    here, there = source.ends(list(overtaken)).items, target.ends([copies[where] for where in overtaken]).items
    told = {where: position for where, position in overtaken.items() if where in here and copies[where] in there}
    same = {where: position for where, position in told.items() if there[copies[where]].end >= position.target}
    first, cut_short = _first_records(source, {where: here[where] for where in same})
    seen = {copies[where]: _Copied(_contents(first.get(where))) for where in same}
    spans = {copies[where]: (position.target, there[copies[where]].end) for where, position in same.items()}
    endings = read_records(target, spans, NEW_COPIES_LIMITS, lambda where, record: seen[where].take(record))
    fewest = _fewest_copied(target, spans, seen, there)
    compacted = source.compacted({where.topic for where in same}) if same else set()
    shortened = {where: here[where].start for where in told.keys() - same.keys()}
    lost = {where: Lost(0, start, now_ms, unknown=True) for where, start in shortened.items()}
    positions = {where: KnownPosition(start, there[copies[where]].end) for where, start in shortened.items()}
    for where, position in same.items():
        start = first[where].offset if where in first else here[where].start
        why, came = endings[copies[where]].why, seen[copies[where]]
        shows_start = where in first or here[where].start >= here[where].end
        offsets = start - position.source + position.missing
        records = _records_lost(offsets, fewest[copies[where]], came.most_copied) if shows_start else None
        if records != 0:
            if where not in again and (where in cut_short or why in CUT_SHORT):
                continue
            cleaned = where.topic in compacted
            counted = records if why in (Why.STOP, Why.END) and not cleaned else None
            unknown = Lost(0, start, now_ms, unknown=not cleaned, compacted=cleaned)
            lost[where] = unknown if counted is None else Lost(counted, start, now_ms)
        place = came.place if came.place is not None else spans[copies[where]][1]
        positions[where] = KnownPosition(start, place)
    return Found(lost, positions)


def _fewest_copied(
    target: RecordReader,
    spans: Mapping[TopicPartition, tuple[int, int]],
    seen: Mapping[TopicPartition, _Copied],
    logs: Mapping[TopicPartition, LogRange],
) -> dict[TopicPartition, int]:
    """Returns for each copy the least number of records that came from before the source's first remaining record.

    Equal records count once. Records that MM2 had copied before the position, and resent, do not count."""
    ends = {where: end if (place := seen[where].first_place) is None else place for where, (_, end) in spans.items()}
    since = {where: start for where, (start, _) in spans.items() if seen[where].most_copied}
    new = new_copies(
        target, since, {where: LogRange(logs[where].start, ends[where]) for where in since}, NEW_COPIES_LIMITS
    )
    return {where: new.get(where, 0) for where in spans}


def _records_lost(offsets: int, fewest: int, most: int) -> int | None:
    """Returns an upper bound of the records lost among `offsets` deleted offsets. None if it is unknown whether any is
    lost. `fewest`, `most`: bounds of the records that were copied from these offsets."""
    if offsets <= fewest:
        return 0
    return offsets - fewest if offsets > most else None


def _contents(record: Record | None) -> tuple[int, ...]:
    """Returns the record's hash with and without its timestamp, because the target may set its own."""
    return () if record is None else (content_of(record, timed=True), content_of(record, timed=False))


def _first_records(
    source: RecordReader, logs: Mapping[TopicPartition, LogRange]
) -> tuple[dict[TopicPartition, Record], set[TopicPartition]]:
    """Returns the first remaining record of each log, and the partitions where reading stopped before it."""
    found: dict[TopicPartition, Record] = {}
    spans = {
        where: (log.start, min(log.end, log.start + FIRST_OFFSETS))
        for where, log in logs.items()
        if log.start < log.end
    }
    endings = read_records(source, spans, NEW_COPIES_LIMITS, found.setdefault)
    return found, {where for where, ending in endings.items() if where not in found and ending.why in CUT_SHORT}


def kept_lost(ledger: Ledger) -> dict[TopicPartition, Lost]:
    """Returns the ledger's losses, acknowledged ones too. Raises LedgerUntrusted for an unreadable entry."""
    try:
        return {
            TopicPartition(topic, int(number)): _lost(*fields)
            for (topic,), text in ledger.values(Entry.LOST).items()
            for number, fields in orjson.loads(text).items()
        }
    except (ValueError, TypeError, AttributeError, OverflowError, OSError) as error:
        raise LedgerUntrusted(f"the records lost before copying cannot be read in {ledger.topic}: {error}") from error


def _lost(records: Any, through: Any, at_ms: Any, unknown: Any, compacted: Any) -> Lost:
    if any(type(one) is not int or one < 0 for one in (records, through, at_ms)):
        raise TypeError("no number")
    if type(unknown) is not bool or type(compacted) is not bool:
        raise TypeError("neither true nor false")
    datetime.fromtimestamp(at_ms / 1000, timezone.utc)
    return Lost(records, through, at_ms, unknown, compacted)


def lost_by_now(
    ledger: Ledger, source: RecordReader, target: RecordReader, remote: Mapping[str, str], now_ms: int
) -> dict[TopicPartition, Lost]:
    """Returns the losses in the ledger, and those that only show now because no job was running. Writes nothing.

    `remote`: target names by topic of the source. Raises ClusterUnreachable, RightsMissing, LockstepError."""
    positions, _ = by_partition(kept_end_offsets(ledger))
    wanted = {where: one for where, one in positions.items() if where.topic in remote and may_lose(where.topic)}
    logs = source.ends(list(wanted)).items if wanted else {}
    overtaken = {where: wanted[where] for where, log in logs.items() if log.start > wanted[where].source}
    copies = {where: TopicPartition(remote[where.topic], where.partition) for where in overtaken}
    found = find_lost(source, target, overtaken, copies, now_ms)
    unanswered = overtaken.keys() - found.positions.keys()
    unknown = {where: Lost(0, logs[where].start, now_ms, unknown=True) for where in unanswered}
    return merged(kept_lost(ledger), found.lost | unknown)


def may_lose(topic: str) -> bool:
    """Whether records that the source deleted before MM2 copied them count as lost. In a repartition topic they do not:
    Kafka Streams deletes its records once it has read them."""
    return not topic.endswith("-repartition")


def merged(kept: LostRecords, found: LostRecords) -> dict[TopicPartition, Lost]:
    """Returns both together. Adds a loss that was found only if retention deleted more than the kept loss covers."""
    new = {where: one for where, one in found.items() if where not in kept or one.through > kept[where].through}
    return added(kept, new)


def added(kept: LostRecords, found: LostRecords) -> dict[TopicPartition, Lost]:
    """Returns both together. Adds each loss that was found, which must not be in `kept` already."""
    together = dict(kept)
    for where, one in found.items():
        together[where] = kept[where].with_more(one) if where in kept else one
    return together


def unacknowledged(lost: LostRecords) -> dict[TopicPartition, Lost]:
    return {where: one for where, one in lost.items() if not one.is_acknowledged}


def acknowledged(lost: LostRecords, topics: Collection[str]) -> dict[TopicPartition, Lost]:
    """Returns the losses, with those in these topics acknowledged. Later losses count again."""
    return {where: Lost(0, one.through, one.at_ms) if where.topic in topics else one for where, one in lost.items()}


def acknowledged_as_shown(
    shown: LostRecords, before: LostRecords, now: LostRecords, topics: Collection[str]
) -> dict[TopicPartition, Lost]:
    """Returns the losses of these topics for the ledger, after the operator acknowledged `shown`.

    `before`: the ledger's losses when `shown` was printed. `now`: its losses now. A loss that changed in between was
    not shown, so it stays.
    """
    same = {where: one for where, one in shown.items() if now.get(where) == before.get(where)}
    together = {**now, **acknowledged(same, topics)}
    return {where: one for where, one in together.items() if where.topic in topics}


def begun_anew(kept: LostRecords, others: Collection[TopicPartition]) -> dict[TopicPartition, Lost]:
    """Returns the losses once the partitions `others` have new logs: drops what was acknowledged of the old logs."""
    left = {where: one for where, one in kept.items() if where not in others or not one.is_acknowledged}
    return {where: replace(one, through=0) if where in others else one for where, one in left.items()}


def lost_line(where: TopicPartition, lost: Lost) -> str:
    if lost.through == ANY_OFFSET:
        why = "One of its two logs lost its tail"
    else:
        why = f"Retention deleted everything before offset {lost.through} on the source"
    if not lost.records:
        return f"{where}: {why}. It is unknown whether the target lacks its records"
    return f"LOST BEFORE COPYING: at most {number_of(lost.records, 'record')} of {where}. {why}"


def entries_of(lost: LostRecords) -> dict[EntryKey, str | None]:
    """Returns the ledger's entries for these losses, one for each topic."""
    topics: dict[str, dict[str, list[int]]] = {}
    for where, one in sorted(lost.items()):
        topics.setdefault(where.topic, {})[str(where.partition)] = [*astuple(one)]
    return {(Entry.LOST, (topic,)): orjson.dumps(found).decode() for topic, found in topics.items()}


@dataclass(frozen=True)
class LostTopic:
    """The lost records of one topic."""

    topic: str
    records: int
    """Upper bound of the lost records that could be counted."""
    unknown: int
    """Number of partitions that may have lost more."""
    since: datetime
    """When the first loss was found."""
    is_compacted: bool = False
    """Whether compaction alone may explain all losses."""


def lost_number(one: LostTopic) -> str:
    """Returns how many records a topic lost, in words."""
    unknown = f"an unknown number in {number_of(one.unknown, 'partition')}" if one.unknown else ""
    known = f"at most {one.records}" if one.records else ""
    return " and ".join(filter(None, (known, unknown)))


def by_topic(lost: LostRecords) -> list[LostTopic]:
    names = sorted({where.topic for where in lost})
    of = {name: [one for where, one in lost.items() if where.topic == name] for name in names}
    return [
        LostTopic(
            name,
            sum(one.records for one in found),
            sum(one.unknown or one.compacted for one in found),
            datetime.fromtimestamp(min(one.at_ms for one in found) / 1000, timezone.utc),
            not any(one.records or one.unknown for one in found),
        )
        for name, found in of.items()
    ]


def lost_as_json(lost: LostRecords) -> dict[str, Any]:
    """Returns the number of lost records, and the losses by topic."""
    topics = by_topic(lost)
    return {
        "records": sum(one.records for one in topics),
        "topics": [
            {
                "topic": one.topic,
                "records": one.records,
                "partitions_not_known": one.unknown,
                "since": utc_text(one.since),
            }
            for one in topics
        ],
    }
