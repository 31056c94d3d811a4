"""Remembers which partitions had arrived, so that only partitions that moved are read again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sinks.failover.arrival import Arrival, arrivals
from sinks.failover.cut_reader import AsItWas
from sinks.failover.resent import Pairs
from sinks.failover.tails import Behind
from sinks.kafka.ports.groups import LogRange
from sinks.kafka.ports.record_reader import RecordReader
from sinks.ledger.known_positions import KnownPosition
from streaming.mm2.records import TopicPartition

ALL_THERE = Behind(0, None, True)


@dataclass(frozen=True)
class ArrivalsSeen:
    """`source` and `target` hold the logs as they were before any record was read. `source` and `arrivals` are by
    partition of the source, `target` by partition of the target. `read`: partitions whose records were read.
    `positions`: how far they were copied, where the count is exact."""

    arrivals: Mapping[TopicPartition, Arrival]
    source: Mapping[TopicPartition, LogRange]
    target: Mapping[TopicPartition, LogRange]
    read: int
    positions: Mapping[TopicPartition, KnownPosition]


class ArrivalMemory:
    """Arrivals of one flow. A partition that had arrived, and whose logs did not change, counts as arrived."""

    def __init__(self) -> None:
        self._arrived: dict[TopicPartition, tuple[object, ...]] = {}

    def observe(
        self, source: RecordReader, target: RecordReader, pairs: Pairs, ids: Mapping[str, tuple[str, str]]
    ) -> ArrivalsSeen:
        """Returns the same as `arrivals`. `ids`: both sides' topic ids, by topic of the source. A new id means a new
        log.

        Raises ClusterUnreachable, RightsMissing.
        """
        there, here = target.ends(list(pairs.values())).items, source.ends(list(pairs)).items
        # Before open transactions: their records may still commit or abort.
        readable = source.readable(list(pairs)).items
        logs = {
            where: (copy, here[where], there[copy], ids.get(where.topic))
            for where, copy in pairs.items()
            if where in here and copy in there
        }
        moved = {
            where: copy for where, copy in pairs.items() if where not in logs or self._arrived.get(where) != logs[where]
        }
        cuts = [{where: log.end for where, log in logs.items()} for logs in (readable, there)]
        read = arrivals(AsItWas(source, cuts[0]), AsItWas(target, cuts[1]), moved) if moved else {}
        found = {where: Arrival(where, ALL_THERE) for where in pairs} | read
        self._arrived = {where: logs[where] for where, one in found.items() if one.arrived and where in logs}
        waiting = {where.topic for where, one in found.items() if one.behind is not None and one.behind.records}
        # MM2 may have read records that compaction removed since. It may still copy them.
        compacted = source.compacted(waiting) if waiting else set()
        positions = {
            where: KnownPosition(readable[where].end, there[copy].end, behind.records)
            for where, copy in pairs.items()
            if where in readable and copy in there and (behind := found[where].behind) is not None
            # Other counts may be too small: retention may have deleted the last copied record on the source.
            if behind.exact and (not behind.records or where.topic not in compacted)
        }
        return ArrivalsSeen(found, here, there, len(moved), positions)
