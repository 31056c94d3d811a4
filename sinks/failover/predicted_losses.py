"""What a failover loses, predicted without the source: from what the job kept in the ledger, and the copies themselves.

How far a partition was copied at some moment is known (`known_positions`). Since then its log on the source became
longer by so many offsets, as far as the job saw it, and its copy by so many records that it had not before. What
remains is the most that can be missing: markers of transactions, what compaction took, and records that could not be
read on the target count as missing. What came to the source after it was seen last, nobody knows.
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
    """By partition of the source. `remote`: names on the target, whose committed records `target` reads.

    A partition of which nothing is known may lose all that it has; of one whose end was never seen nobody can tell.
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
    """How far the partition was copied; None where the copy, as it is, ends before that: it lost its tail."""
    if kept.positions is not None:
        position = kept.positions[where.partition] if where.partition < len(kept.positions) else None
    else:
        history = histories.get(where)
        position = None if history is None or history.is_empty else LatestSync(*history.latest).position
    end = 0 if log is None else log.end
    return position if position is not None and position.target <= end else None
