"""Records that retention took from the source before MM2 copied them: on no cluster, and compared by nobody.

How far a partition was copied is known (`known_positions`). Where the source's log start lies behind that, the first
record that the source still has is looked for on the target. What the target got before it, since the position, came
from the offsets that are gone. The rest of these offsets was lost. Markers of transactions count as records there.
A broker does not tell retention from `kafka-delete-records.sh`: both are reported.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any, NamedTuple

import orjson

from sinks.failover.new_copies import NEW_COPIES_LIMITS, content_of, new_copies
from sinks.failover.read_records import read_records
from sinks.faults import LedgerUntrusted
from sinks.kafka.ports.groups import LogRange
from sinks.kafka.ports.record_reader import Record, RecordReader, Stamp, Why
from sinks.ledger.kept_end_offsets import by_partition, kept_end_offsets
from sinks.ledger.known_positions import KnownPosition
from sinks.ledger.ledger import Ledger
from sinks.ledger.ledger_entries import Entry, EntryKey
from sinks.model.times import utc_text
from streaming.mm2.records import TopicPartition
from streaming.number_of import number_of

FIRST_OFFSETS = 1000
"""Offsets of the source in which its first record is looked for."""

CUT_SHORT = (Why.TIME, Why.FAULT)
"""Endings of a reading that may come farther when it is repeated."""


@dataclass(frozen=True, slots=True)
class Lost:
    """Of one partition. `records`: at most so many were lost; None: whether any were is not known; 0: what was lost is
    acknowledged. `through`: the source's log start then. `at_ms`: when that was found first, in ms since the epoch."""

    records: int | None
    through: int
    at_ms: int


LostRecords = Mapping[TopicPartition, Lost]


class Found(NamedTuple):
    """What was lost, where that is anything or not known; how far partitions are copied now; and partitions whose copy
    became shorter. A partition of which a cluster did not answer is in none of them."""

    lost: dict[TopicPartition, Lost]
    positions: dict[TopicPartition, KnownPosition]
    shortened: set[TopicPartition]


@dataclass
class _Copied:
    """Of one copy: records since the position, and where the source's first record was seen among them. `most`: all
    records before its last place."""

    first: tuple[int, ...] = ()
    records: int = 0
    most: int = 0
    first_place: int | None = None
    place: int | None = None

    def take(self, record: Record) -> None:
        content = content_of(record, timed=record.stamp is not Stamp.APPEND)
        if content in self.first:
            self.first_place = record.offset if self.first_place is None else self.first_place
            self.most, self.place = self.records, record.offset
        self.records += 1

    @property
    def most_copied(self) -> int:
        """Records that came from before the source's first one, at most."""
        return self.records if self.place is None else self.most


def is_overtaken(position: KnownPosition, log: LogRange) -> bool:
    """Whether the log of the source starts behind what is known to be copied of it."""
    return log.start > position.source


def find_lost(
    source: RecordReader,
    target: RecordReader,
    overtaken: Mapping[TopicPartition, KnownPosition],
    copies: Mapping[TopicPartition, TopicPartition],
    now_ms: int,
    again: Collection[TopicPartition] = (),
) -> Found:
    """Of partitions of the source whose log starts behind their position. `copies`: on the target, whose committed
    records `target` reads. Reading that is cut short is no answer, but of those asked `again`: nothing is known then.

    A copy that became shorter is another log: nothing is known of it. Raises ClusterUnreachable, RightsMissing.
    """
    here, there = source.ends(list(overtaken)).items, target.ends([copies[where] for where in overtaken]).items
    told = {where: position for where, position in overtaken.items() if where in here and copies[where] in there}
    same = {where: position for where, position in told.items() if there[copies[where]].end >= position.target}
    first, cut_short = _first_records(source, {where: here[where] for where in same})
    seen = {copies[where]: _Copied(_contents(first.get(where))) for where in same}
    spans = {copies[where]: (position.target, there[copies[where]].end) for where, position in same.items()}
    endings = read_records(target, spans, NEW_COPIES_LIMITS, lambda where: seen[where].take)
    fewest = _fewest_copied(target, spans, seen, there)
    compacted = source.compacted({where.topic for where in same}) if same else set()
    lost, positions = dict[TopicPartition, Lost](), dict[TopicPartition, KnownPosition]()
    for where, position in same.items():
        start = first[where].offset if where in first else here[where].start
        why, came = endings[copies[where]].why, seen[copies[where]]
        shows_start = where in first or here[where].start >= here[where].end
        offsets = start - position.source + position.missing
        records = _records_lost(offsets, fewest[copies[where]], came.most_copied) if shows_start else None
        if records != 0:
            if where not in again and (where in cut_short or why in CUT_SHORT):
                continue
            known = why in (Why.STOP, Why.END) and where.topic not in compacted
            lost[where] = Lost(records if known else None, start, now_ms)
        place = came.place if came.place is not None else spans[copies[where]][1]
        positions[where] = KnownPosition(start, place)
    return Found(lost, positions, told.keys() - same.keys())


def _fewest_copied(
    target: RecordReader,
    spans: Mapping[TopicPartition, tuple[int, int]],
    seen: Mapping[TopicPartition, _Copied],
    logs: Mapping[TopicPartition, LogRange],
) -> dict[TopicPartition, int]:
    """By copy: different records before the first place of the source's first record, without those that MM2 had copied
    before the position as well."""
    ends = {where: end if (place := seen[where].first_place) is None else place for where, (_, end) in spans.items()}
    since = {where: start for where, (start, _) in spans.items() if seen[where].most_copied}
    new = new_copies(
        target, since, {where: LogRange(logs[where].start, ends[where]) for where in since}, NEW_COPIES_LIMITS
    )
    return {where: new.get(where, 0) for where in spans}


def _records_lost(offsets: int, fewest: int, most: int) -> int | None:
    """The most of so many offsets that were not copied. None: records that are equal, or that MM2 sent again, may be
    all of the difference."""
    if offsets <= fewest:
        return 0
    return offsets - fewest if offsets > most else None


def _contents(record: Record | None) -> tuple[int, ...]:
    """With the timestamp, and without: the target may give its own."""
    return () if record is None else (content_of(record, timed=True), content_of(record, timed=False))


def _first_records(
    source: RecordReader, logs: Mapping[TopicPartition, LogRange]
) -> tuple[dict[TopicPartition, Record], set[TopicPartition]]:
    """The first record that each log still has; and the partitions that were not read as far as it."""
    found: dict[TopicPartition, Record] = {}

    def taker(where: TopicPartition) -> Callable[[Record], object]:
        return lambda record: found.setdefault(where, record)

    spans = {
        where: (log.start, min(log.end, log.start + FIRST_OFFSETS))
        for where, log in logs.items()
        if log.start < log.end
    }
    endings = read_records(source, spans, NEW_COPIES_LIMITS, taker)
    return found, {where for where, ending in endings.items() if where not in found and ending.why in CUT_SHORT}


def kept_lost(ledger: Ledger) -> dict[TopicPartition, Lost]:
    """What the ledger has, with what was acknowledged. Raises LedgerUntrusted for what cannot be read."""
    try:
        return {
            TopicPartition(topic, int(number)): _lost(*fields)
            for (topic,), text in ledger.values(Entry.LOST).items()
            for number, fields in orjson.loads(text).items()
        }
    except (ValueError, TypeError, AttributeError) as error:
        raise LedgerUntrusted(f"what was lost before copying cannot be read in {ledger.topic}: {error}") from error


def _lost(records: Any, through: Any, at_ms: Any) -> Lost:
    if any(type(one) is not int or one < 0 for one in (records or 0, through, at_ms)):
        raise TypeError("no number")
    return Lost(records, through, at_ms)


def lost_by_now(
    ledger: Ledger, source: RecordReader, target: RecordReader, remote: Mapping[str, str], now_ms: int
) -> dict[TopicPartition, Lost]:
    """What the ledger has, and what shows only now, as where no job runs. Writes nothing. `remote`: names on the
    target of topics of the source. Raises ClusterUnreachable, RightsMissing, LockstepError."""
    positions, _ = by_partition(kept_end_offsets(ledger))
    wanted = {where: one for where, one in positions.items() if where.topic in remote and may_lose(where.topic)}
    logs = source.ends(list(wanted)).items if wanted else {}
    overtaken = {where: wanted[where] for where, log in logs.items() if is_overtaken(wanted[where], log)}
    copies = {where: TopicPartition(remote[where.topic], where.partition) for where in overtaken}
    found = find_lost(source, target, overtaken, copies, now_ms)
    unanswered = overtaken.keys() - found.positions.keys() - found.shortened
    unknown = {where: Lost(None, logs[where].start, now_ms) for where in unanswered}
    return merged(kept_lost(ledger), found.lost | unknown)


def may_lose(topic: str) -> bool:
    """Whether what is missing before the log's start says anything. Kafka Streams deletes from its repartition topics
    what it has read, whether MM2 has copied it or not."""
    return not topic.endswith("-repartition")


def merged(kept: LostRecords, found: LostRecords) -> dict[TopicPartition, Lost]:
    """Both together; of a partition that lost records again, those that were not counted before."""
    together = dict(kept)
    for where, one in found.items():
        before = kept.get(where)
        if before is None:
            together[where] = one
        elif one.through > before.through:
            records = None if before.records is None or one.records is None else before.records + one.records
            together[where] = Lost(records, one.through, before.at_ms if before.records != 0 else one.at_ms)
    return together


def unacknowledged(lost: LostRecords) -> dict[TopicPartition, Lost]:
    """Without what somebody has acknowledged."""
    return {where: one for where, one in lost.items() if one.records != 0}


def acknowledged(lost: LostRecords, topics: Collection[str]) -> dict[TopicPartition, Lost]:
    """What these topics lost counts no more; what they lose from now on does."""
    return {where: replace(one, records=0) if where.topic in topics else one for where, one in lost.items()}


def acknowledged_as_shown(
    shown: LostRecords, before: LostRecords, now: LostRecords, topics: Collection[str]
) -> dict[TopicPartition, Lost]:
    """What the ledger is to have of these topics. `before`, `now`: what it had when this was `shown`, and has since.

    What changed in between was not shown, and stays.
    """
    same = {where: one for where, one in shown.items() if now.get(where) == before.get(where)}
    together = {**now, **acknowledged(same, topics)}
    return {where: one for where, one in together.items() if where.topic in topics}


def begun_anew(kept: LostRecords, others: Collection[TopicPartition]) -> dict[TopicPartition, Lost]:
    """With `others`, whose logs are new ones: any later loss adds up. What is acknowledged of them is forgotten."""
    left = {where: one for where, one in kept.items() if where not in others or one.records != 0}
    return {where: replace(one, through=0) if where in others else one for where, one in left.items()}


def lost_line(where: TopicPartition, lost: Lost) -> str:
    """For the log."""
    if lost.records is None:
        return (
            f"{where}: retention reached offset {lost.through} before all that lies before it was seen on the target. "
            "Whether records were lost is not known"
        )
    return (
        f"LOST BEFORE COPYING: at most {number_of(lost.records, 'record')} of {where} before offset {lost.through}. "
        "Retention took them from the source before MM2 copied them"
    )


def entries_of(lost: LostRecords) -> dict[EntryKey, str | None]:
    """As the ledger keeps them, by topic."""
    topics: dict[str, dict[str, list[int | None]]] = {}
    for where, one in sorted(lost.items()):
        topics.setdefault(where.topic, {})[str(where.partition)] = [one.records, one.through, one.at_ms]
    return {(Entry.LOST, (topic,)): orjson.dumps(found).decode() for topic, found in topics.items()}


@dataclass(frozen=True)
class LostTopic:
    """`records`: at most so many were lost of its partitions; `unknown`: partitions of which it is not known whether
    any were. `since`: when the first of them was found."""

    topic: str
    records: int
    unknown: int
    since: datetime


def by_topic(lost: LostRecords) -> list[LostTopic]:
    """Sorted by name."""
    names = sorted({where.topic for where in lost})
    of = {name: [one for where, one in lost.items() if where.topic == name] for name in names}
    return [
        LostTopic(
            name,
            sum(one.records or 0 for one in found),
            sum(one.records is None for one in found),
            datetime.fromtimestamp(min(one.at_ms for one in found) / 1000, timezone.utc),
        )
        for name, found in of.items()
    ]


def lost_as_json(lost: LostRecords) -> dict[str, Any]:
    """`records` in all, and the topics."""
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
