"""Finds what moved clients wrote to copies since those were drained. Reads both clusters, writes nothing.

Growth of a copy is no evidence: MM2 resends records after a restart, and continues once a fence is lifted. A record of
a client equals no record of the source, and none that the copy had when it was drained.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple

from sinks.failover.cut_reader import AsItWas
from sinks.failover.scene import Scene
from sinks.failover.uncopied_records import Fingerprint, ReadLimits, read_fingerprints, read_records
from sinks.kafka.ports.record_reader import PartitionTime, Record, RecordReader
from sinks.ledger.kept_divergences import Divergence, takeover_ends
from streaming.mm2.records import TopicPartition

LIMITS = ReadLimits(most=100_000, seconds=30.0)
"""The operator who lifts a fence waits for this."""


@dataclass(frozen=True)
class WrittenSince:
    """Partitions of copies. `foreign`: a client other than MM2 wrote since. `unknown`: it could not be found out."""

    foreign: Collection[TopicPartition] = ()
    unknown: Collection[TopicPartition] = ()


def written_on_target(scene: Scene, known: Mapping[str, Divergence]) -> WrittenSince:
    """Searches the copies of these topics behind the ends that they had when drained. Raises ClusterUnreachable,
    RightsMissing."""
    drained = takeover_ends(known)
    pairs = {
        TopicPartition(topic, number): TopicPartition(one.remote, number)
        for topic, one in known.items()
        for number in range(len(one.ends))
    }
    with (
        closing(scene.target.records("read_uncommitted")) as target,
        closing(scene.source.records("read_uncommitted")) as source,
    ):
        seen = target.ends(list(drained))
        grown = {copy for copy, log in seen.items.items() if log.end > drained[copy]}
        found, cut = read_fingerprints(target, {copy: drained[copy] for copy in grown}, LIMITS)
        unknown = cut | seen.errors.keys()
        came = {where: found[copy] for where, copy in pairs.items() if copy in grown - unknown}
        # Read last, so that records copied meanwhile are found.
        new = _new_on(source, AsItWas(target, drained), pairs, came)
        unknown |= {pairs[where] for where in came.keys() - new.keys()}
        maybe_taken = {pairs[where] for where in _maybe_taken(source, new)}
    return WrittenSince(
        {pairs[where] for where, one in new.items() if one.newest is not None} - maybe_taken, unknown | maybe_taken
    )


class _New(NamedTuple):
    """New records of one partition on the source. `newest`: latest timestamp (ms) of the copy's new records that are on
    no other log. None without any. `read_to`: latest timestamp that the source has from that time on; None without
    any."""

    newest: int | None
    read_to: int | None


def _new_on(
    source: RecordReader,
    before: RecordReader,
    pairs: Mapping[TopicPartition, TopicPartition],
    came: Mapping[TopicPartition, list[Fingerprint]],
) -> dict[TopicPartition, _New]:
    """Returns the partitions that could be compared. `before`: the copies as they were when drained."""
    # If the target sets timestamps itself, it is unknown how far back to read.
    timed = {where: prints for where, prints in came.items() if not any(one.appended for one in prints)}
    ours, unread = _since(source, {where: prints for where, prints in timed.items() if prints})
    left = {where: _without(prints, ours.get(where, ())) for where, prints in timed.items() if where not in unread}
    # Records that the copy had already were resent, even if the source has lost them.
    copied, _ = _since(before, {pairs[where]: prints for where, prints in left.items() if prints})
    return {
        where: _New(_latest(_without(prints, copied.get(pairs[where], ()))), _latest(ours.get(where, ())))
        for where, prints in left.items()
    }


def _since(
    reader: RecordReader, prints: Mapping[TopicPartition, list[Fingerprint]]
) -> tuple[dict[TopicPartition, list[Fingerprint]], set[TopicPartition]]:
    """Returns the log since the oldest of these, and the partitions where that could not be read."""
    times = [PartitionTime(where, min(one.timestamp for one in found)) for where, found in prints.items()]
    seen = reader.offsets_for_times(times)
    begins = {context.where: offset for context, offset in seen.items.items() if offset is not None}
    found, cut = read_fingerprints(reader, begins, LIMITS)
    return found, cut | {context.where for context in seen.errors}


def _without(prints: Iterable[Fingerprint], others: Iterable[Fingerprint]) -> list[Fingerprint]:
    known = {(one.timestamp, one.digest) for one in others}
    return [one for one in prints if (one.timestamp, one.digest) not in known]


def _latest(prints: Iterable[Fingerprint]) -> int | None:
    return max((one.timestamp for one in prints), default=None)


def _maybe_taken(source: RecordReader, new: Mapping[TopicPartition, _New]) -> set[TopicPartition]:
    """Returns partitions whose new records may all have been on the source, until retention or compaction deleted them.

    MM2 may have resent these. Partitions that the source does not show are included."""
    newest = {where: one.newest for where, one in new.items() if one.newest is not None}
    logs = source.ends(list(newest)).items
    first: dict[TopicPartition, Record] = {}
    cut = {where: (log.start, log.end) for where, log in logs.items() if log.start}
    read_records(source, cut, LIMITS._replace(most=1), first.setdefault)
    compacted = source.compacted({where.topic for where in newest})
    # Compaction keeps the log's last record.
    replaced = {where for where in newest if where.topic in compacted and newest[where] <= (new[where].read_to or 0)}
    retired = {where for where in cut if where not in first or newest[where] < first[where].timestamp}
    return retired | replaced | (newest.keys() - logs.keys())
