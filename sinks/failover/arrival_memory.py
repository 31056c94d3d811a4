"""What is missing on the target, asked again and again: only partitions that moved are read."""

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
    """`arrivals` and `source` by partition of the source, `target` by that of the target: the logs as they were before
    any record was read. `read`: partitions whose records were. `positions`: what the count says of how far they were
    copied, where it is exact."""

    arrivals: Mapping[TopicPartition, Arrival]
    source: Mapping[TopicPartition, LogRange]
    target: Mapping[TopicPartition, LogRange]
    read: int
    positions: Mapping[TopicPartition, KnownPosition]


class ArrivalMemory:
    """Of one flow. A partition whose logs are as they were when all had arrived has all of it still."""

    def __init__(self) -> None:
        self._arrived: dict[TopicPartition, tuple[object, ...]] = {}

    def observe(
        self, source: RecordReader, target: RecordReader, pairs: Pairs, ids: Mapping[str, tuple[str, str]]
    ) -> ArrivalsSeen:
        """As `arrivals`. `ids`: by topic of the source, those on both sides: another one is another log, however long.

        Raises ClusterUnreachable, RightsMissing.
        """
        there, here = target.ends(list(pairs.values())).items, source.ends(list(pairs)).items
        # Before open transactions: their records may come yet, or never.
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
        # MM2 may have read what compaction has taken since, and copy it yet.
        compacted = source.compacted(waiting) if waiting else set()
        positions = {
            where: KnownPosition(readable[where].end, there[copy].end, behind.records)
            for where, copy in pairs.items()
            if where in readable and copy in there and (behind := found[where].behind) is not None
            # Another count may be too small, as where retention took the last copied record from the source.
            if behind.exact and (not behind.records or where.topic not in compacted)
        }
        return ArrivalsSeen(found, here, there, len(moved), positions)
