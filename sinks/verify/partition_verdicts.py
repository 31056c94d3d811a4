"""Values that `lockstep verify` reports of a partition, a topic and a flow: verdicts, differences, figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from sinks.failover.lost_before_copying import LostRecords, lost_as_json
from sinks.kinds.offsets.exact_runs import Checked, Run, Stretch
from streaming.flow import Flow
from streaming.message_words import Word
from streaming.mm2.records import TopicPartition


class VerifyLevel(Word):
    """How closely records are compared: each level does what the one before does, and more."""

    COUNTS = "counts"
    DIGESTS = "digests"
    RECORDS = "records"


class PartitionVerdict(Word):
    """What the comparison of a partition found."""

    VERIFIED = "VERIFIED"
    """Every record of the source from one offset to another is on the target once, in order, unchanged."""
    CONSISTENT = "CONSISTENT"
    """At the level `counts` only: offsets contradict nothing; no record was read."""
    DIFFERENT = "DIFFERENT"
    """Records are missing, doubled, changed, out of order, or on the target alone."""
    UNVERIFIABLE = "UNVERIFIABLE"
    """Nothing could be compared; the reason says why."""
    NOT_MIRRORED = "NOT_MIRRORED"
    """The target has no such partition."""

    @property
    def is_good(self) -> bool:
        """Whether the comparison found nothing wrong."""
        return self in (PartitionVerdict.VERIFIED, PartitionVerdict.CONSISTENT)


class Difference(Word):
    """What is wrong with records, or why that is unknown."""

    MISSING = "MISSING"
    """The source has the record. The target lacks it, but has later ones."""
    DUPLICATE = "DUPLICATE"
    """The target has the record once more: MM2 sends again what it cannot be sure of after a crash."""
    CHANGED = "CHANGED"
    """The record is in its place on the target, but with another key, value, header or timestamp."""
    REORDERED = "REORDERED"
    """The record is on the target, but before or behind records that it followed or preceded on the source."""
    EXTRA = "EXTRA"
    """Only the target has the record: another client writes there, a transaction was aborted, or the source's topic
    recreated."""
    UNVERIFIABLE = "UNVERIFIABLE"
    """Only one side still has the record: the other one has deleted what is so old."""


@dataclass(frozen=True, slots=True)
class FoundDifference:
    """`count` records from these offsets on; an offset is None on the side that has none.

    `fields`: those that differ in a CHANGED record. `timestamp`: in ms, of the first record.
    """

    difference: Difference
    upstream: int | None
    downstream: int | None
    count: int = 1
    fields: tuple[str, ...] = ()
    timestamp: int | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "difference": self.difference.value,
            "upstream_offset": self.upstream,
            "downstream_offset": self.downstream,
            "count": self.count,
            "fields": list(self.fields),
            "timestamp_ms": self.timestamp,
        }


def joined_findings(findings: Iterable[FoundDifference]) -> list[FoundDifference]:
    """Sorts by place, and joins findings of one kind at successive offsets."""
    found: list[FoundDifference] = []
    for one in sorted(findings, key=_order):
        last = found[-1] if found else None
        if last and _goes_on(last, one):
            found[-1] = FoundDifference(
                last.difference, last.upstream, last.downstream, last.count + one.count, last.fields, last.timestamp
            )
        else:
            found.append(one)
    return found


def _order(one: FoundDifference) -> tuple[str, int, int]:
    return (
        one.difference.value,
        -1 if one.upstream is None else one.upstream,
        -1 if one.downstream is None else one.downstream,
    )


def _goes_on(last: FoundDifference, one: FoundDifference) -> bool:
    return (last.difference, last.fields) == (one.difference, one.fields) and all(
        (before is None and after is None) or (before is not None and after == before + last.count)
        for before, after in ((last.upstream, one.upstream), (last.downstream, one.downstream))
    )


HARMLESS_DIFFERENCES = frozenset({Difference.DUPLICATE, Difference.UNVERIFIABLE})
"""Differences that lose, change or move no record: MM2 copies at least once, and retention deletes what is old."""


@dataclass(frozen=True)
class PartitionReport:
    """The report of one partition. Offsets and counts are the source's unless a name says otherwise.

    `start`, `through`: the offsets [start, through) were compared, up to the timestamp `through_ms`. `pending`: records
    behind that; the oldest has `pending_ms`. `differences`: how many records of each kind. `findings`: the first of
    them by place. `times`: timestamps were compared. `runs`: where records are on the target, exactly. `notes`: what
    else a reader should know.
    """

    where: TopicPartition
    remote: str
    verdict: PartitionVerdict
    reason: str | None = None
    start: int | None = None
    through: int | None = None
    through_ms: int | None = None
    records: int = 0
    pending: int = 0
    pending_ms: int | None = None
    differences: Mapping[Difference, int] = field(default_factory=dict)
    findings: Sequence[FoundDifference] = ()
    times: bool = True
    runs: Sequence[Run] = ()
    notes: Sequence[str] = ()

    @property
    def is_whole(self) -> bool:
        """Whether every record that was compared is on the target, in order and unchanged, once or more often."""
        if self.verdict is not PartitionVerdict.DIFFERENT:
            return self.verdict.is_good
        found = {kind for kind, count in self.differences.items() if count}
        return self.reason is None and Difference.DUPLICATE in found and found <= HARMLESS_DIFFERENCES

    @property
    def checked(self) -> Checked | None:
        """What was compared of the source, and whether it is whole; None: no record was read."""
        read = self.verdict in (PartitionVerdict.VERIFIED, PartitionVerdict.DIFFERENT)
        if not read or self.start is None or self.through is None:
            return None
        return Checked(Stretch(self.start, max(self.start, self.through)), self.is_whole)

    def as_json(self) -> dict[str, Any]:
        return {
            "topic": self.where.topic,
            "partition": self.where.partition,
            "remote_topic": self.remote,
            "verdict": self.verdict.value,
            "reason": self.reason,
            "from_offset": self.start,
            "through_offset": self.through,
            "through_timestamp": as_time(self.through_ms),
            "records": self.records,
            "pending": self.pending,
            "pending_since": as_time(self.pending_ms),
            "differences": {kind.value: count for kind, count in self.differences.items() if count},
            "findings": [finding.as_json() for finding in self.findings],
            "timestamps_compared": self.times,
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class FlowReport:
    """The partitions of a flow that were compared, sorted. `level`: how closely. `seconds`: how long it took.

    `lost`: records that the source lost before MM2 copied them. A comparison cannot find them.
    """

    flow: Flow
    level: VerifyLevel
    partitions: Sequence[PartitionReport]
    seconds: float = 0.0
    lost: LostRecords = field(default_factory=dict)

    @property
    def is_good(self) -> bool:
        """Whether nothing differs, and nothing was found that could not be compared."""
        return not self.lost and all(one.verdict.is_good for one in self.partitions)

    @property
    def counts(self) -> dict[PartitionVerdict, int]:
        return {verdict: sum(one.verdict is verdict for one in self.partitions) for verdict in PartitionVerdict}

    @property
    def records(self) -> int:
        """Records of the source that were compared."""
        return sum(one.records for one in self.partitions)

    def as_json(self) -> dict[str, Any]:
        return {
            "source": self.flow.source,
            "target": self.flow.target,
            "level": self.level.value,
            "seconds": round(self.seconds, 3),
            "records": self.records,
            "verdicts": {verdict.value: count for verdict, count in self.counts.items()},
            "partitions": [one.as_json() for one in self.partitions],
            "lost_before_copying": lost_as_json(self.lost),
        }


def as_time(ms: int | None) -> str | None:
    """Returns a timestamp as text, in UTC; None if no calendar date has it."""
    if ms is None or ms < 0:
        return None
    try:
        found = datetime.fromtimestamp(ms / 1000, tz=timezone.utc)
    except (OverflowError, ValueError, OSError):
        return None
    return found.isoformat(timespec="milliseconds").replace("+00:00", "Z")
