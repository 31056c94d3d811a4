"""Finds records that MM2 resent after a restart: they look missing, but the target has them already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from sinks.failover.read_records import ReadLimits, read_records
from sinks.failover.tails import Behind, Fingerprint, fingerprint_of
from sinks.kafka.ports.record_reader import PartitionTime, Record, RecordReader, Why
from streaming.mm2.records import TopicPartition

Pairs = Mapping[TopicPartition, TopicPartition]
"""Partitions of the source with their copies."""


def without_resent(
    source: RecordReader, target: RecordReader, pairs: Pairs, found: Mapping[TopicPartition, Behind], limits: ReadLimits
) -> dict[TopicPartition, Behind]:
    """Counts again where the target has records as young as the first one that seems to be missing.

    The copies must have the source's timestamps. Raises ClusterUnreachable, RightsMissing.
    """
    behind = {where: one for where, one in found.items() if one.records and one.oldest is not None}
    there = _since(target, {pairs[where]: one.oldest or 0 for where, one in behind.items()})
    young = {where: one for where, one in behind.items() if pairs[where] in there}
    if not young:
        return dict(found)
    here = _since(source, {where: one.oldest or 0 for where, one in young.items()})
    theirs, cut_there = read_fingerprints(target, {pairs[where]: there[pairs[where]] for where in young}, limits)
    starts = {where: min(here.get(where, one.since or 0), one.since or 0) for where, one in young.items()}
    ours, cut_here = read_fingerprints(source, starts, limits)
    compacted = source.compacted({where.topic for where in young}) | target.compacted(
        {pairs[where].topic for where in young}
    )
    counted = {}
    for where, one in young.items():
        if where in cut_here or pairs[where] in cut_there:
            counted[where] = one._replace(exact=False)
            continue
        exact = one.exact and not compacted & {where.topic, pairs[where].topic}
        again = still_missing(ours[where], theirs[pairs[where]], one.since or 0, exact=exact)
        # If none of them is there, MM2 resent nothing.
        counted[where] = again if again.records < one.records else one
    return {**found, **counted}


def still_missing(source: Iterable[Fingerprint], target: Iterable[Fingerprint], since: int, *, exact: bool) -> Behind:
    """Returns the source's records from offset `since` on without a copy. Earlier records match first. Pure."""
    copies = Counter((one.timestamp, one.digest) for one in target)
    left = []
    for one in source:
        mark = (one.timestamp, one.digest)
        if copies[mark]:
            copies[mark] -= 1
        elif one.offset >= since:
            left.append(one)
    first = left[0] if left else None
    return Behind(len(left), first.timestamp if first else None, exact, first.offset if first else None)


def _since(reader: RecordReader, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Returns the first offset that is not older than the time. Partitions without one are left out."""
    seen = reader.offsets_for_times([PartitionTime(where, at) for where, at in times.items()]).items
    return {context.where: offset for context, offset in seen.items() if offset is not None}


def read_fingerprints(
    reader: RecordReader, starts: Mapping[TopicPartition, int], limits: ReadLimits
) -> tuple[dict[TopicPartition, list[Fingerprint]], set[TopicPartition]]:
    """Returns the records from there to the log's end, and partitions that were not read to their end.

    Raises ClusterUnreachable, RightsMissing.
    """
    found: dict[TopicPartition, list[Fingerprint]] = {where: [] for where in starts}
    ends = reader.ends(list(starts)).items

    def taker(where: TopicPartition) -> Callable[[Record], None]:
        return lambda record: found[where].append(fingerprint_of(record))

    spans = {where: (start, ends[where].end) for where, start in starts.items() if where in ends}
    endings = read_records(reader, spans, limits, taker)
    whole = {where for where, ending in endings.items() if ending.why in (Why.END, Why.STOP)}
    return found, set(starts) - whole
