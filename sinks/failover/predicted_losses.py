"""Predicts what a failover loses without asking the source, from the job's ledger entries and the copies themselves.

How far a partition was copied at some moment is known (`known_positions`). Since then the job saw its source log grow
by some offsets. Its copy grew by some new records. The difference is the most that can be missing. Transaction markers,
compacted records, and records that are unreadable on the target count as missing. Records that came after the source
was last seen are unknown.
"""

from __future__ import annotations

from collections.abc import Mapping

from sinks.failover.arrival import Arrival
from sinks.failover.new_copies import new_copies
from sinks.failover.tails import Behind
from sinks.kafka.ports.groups import LogRange
from sinks.kafka.ports.record_reader import RecordReader
from sinks.kinds.offsets.history import History
from sinks.ledger.kept_end_offsets import UNSEEN, KeptEndOffsets
from sinks.ledger.known_positions import KnownPosition, LatestSync, most_missing
from streaming.mm2.records import TopicPartition

NEVER_SEEN = "where its log on the source ends was never seen"

Histories = Mapping[TopicPartition, History]


def predicted(
    kept: Mapping[str, KeptEndOffsets], histories: Histories, target: RecordReader, remote: Mapping[str, str]
) -> dict[TopicPartition, Arrival]:
    """Returns predictions by partition of the source. `remote`: names on the target.

    `target` reads committed records. A partition without any knowledge may lose all its records. A partition whose end
    was never seen has an unknown loss.
    Raises ClusterUnreachable, RightsMissing.
    """
    ends = {
        TopicPartition(topic, number): end for topic, one in kept.items() for number, end in enumerate(one.ends) if end
    }
    copies = {where: TopicPartition(remote[where.topic], where.partition) for where in ends}
    logs = target.ends(list(copies.values())).items
    positions = {
        where: position
        for where in ends
        if (position := _position(where, kept[where.topic], histories, logs.get(copies[where]))) is not None
    }
    since = {
        copies[where]: position.target
        for where, position in positions.items()
        if copies[where] in logs and most_missing(position, ends[where], 0) > 0
    }
    came = new_copies(target, since, logs)
    found = {
        where: Arrival(where, problem=NEVER_SEEN)
        if end == UNSEEN
        else Arrival(
            where,
            Behind(most_missing(positions.get(where), end, came.get(copies[where], 0)), None, False),
            positioned=where in positions,
        )
        for where, end in ends.items()
    }
    empty = Behind(0, None, True)
    every = [TopicPartition(topic, number) for topic, one in kept.items() for number in range(len(one.ends))]
    return {where: found.get(where) or Arrival(where, empty) for where in every}


def _position(
    where: TopicPartition, kept: KeptEndOffsets, histories: Histories, log: LogRange | None
) -> KnownPosition | None:
    """Returns how far the partition was copied. None where the copy ends before that now: it lost its tail."""
    if kept.positions is not None:
        position = kept.positions[where.partition] if where.partition < len(kept.positions) else None
    else:
        history = histories.get(where)
        position = None if history is None or history.is_empty else LatestSync(*history.latest).position
    end = 0 if log is None else log.end
    return position if position is not None and position.target <= end else None
