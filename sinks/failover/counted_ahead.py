"""Counts waiting records of the source one by one, where offsets overstate them. Bounded.

Transaction markers and aborted records have offsets, too. Where a partition has such gaps, and MM2's offset-syncs bring
nothing newer, the waiting records are read. Each is read once. Records that compaction or retention removed may be on
the target, and count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sinks.failover.read_records import ReadLimits, read_records
from sinks.kafka.ports.record_reader import Record, RecordReader, Why
from sinks.ledger.known_positions import KnownPosition
from streaming.mm2.records import TopicPartition

AHEAD_LIMITS = ReadLimits(most=5000, seconds=2.0)
"""For all partitions together, at each reading of the source's ends: a thousand offsets a second by default."""


def counted_ahead(
    source: RecordReader,
    positions: Mapping[TopicPartition, KnownPosition],
    ends: Mapping[TopicPartition, int],
    limits: ReadLimits = AHEAD_LIMITS,
) -> dict[TopicPartition, KnownPosition]:
    """Returns positions moved up to the source's ends, or to where they could be read. `source` reads as MM2 does.

    The shortest stretches come first. Left out are stretches beyond the limits, and those that may have lost records.
    Raises ClusterUnreachable, RightsMissing.
    """
    compacted = source.compacted({where.topic for where in positions})
    whole = {where: one for where, one in positions.items() if where in ends and where.topic not in compacted}
    spans = _chosen(whole, ends, limits.most)
    counts = dict.fromkeys(spans, 0)

    def taker(where: TopicPartition) -> Callable[[Record], None]:
        def take(record: Record) -> None:
            counts[where] += 1

        return take

    endings = read_records(source, spans, limits, taker)
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
    """Returns the shortest stretches that together have at most so many offsets."""
    spans: dict[TopicPartition, tuple[int, int | None]] = {}
    for length, where in sorted((ends[where] - one.source, where) for where, one in positions.items()):
        if length > most:
            break
        most -= length
        spans[where] = (positions[where].source, ends[where])
    return spans
