"""What clients that have moved already wrote on copies since those were drained. Reads both clusters, writes nothing.

A copy that has grown tells nothing by itself: MM2 sends records again after a restart, and copies on once a fence is
lifted. Theirs is what no record of the source equals.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from dataclasses import dataclass

from sinks.failover.divergence import Divergence
from sinks.failover.read_records import ReadLimits, read_records
from sinks.failover.resent import read_prints
from sinks.failover.scene import Scene
from sinks.failover.tails import Print
from sinks.kafka.ports.record_reader import PartitionTime, Record, RecordReader
from streaming.mm2.records import TopicPartition

LIMITS = ReadLimits(most=100_000, seconds=30.0)
"""Who takes a fence back waits for this."""


@dataclass(frozen=True)
class WrittenSince:
    """Partitions of copies: `foreign`, which somebody but MM2 wrote since; `unknown`, of which nobody can tell."""

    foreign: Collection[TopicPartition] = ()
    unknown: Collection[TopicPartition] = ()


def written_since(scene: Scene, known: Mapping[str, Divergence], limits: ReadLimits = LIMITS) -> WrittenSince:
    """Of the copies of these topics, by where they ended when they were drained. Raises ClusterUnreachable,
    RightsMissing."""
    ends = {
        TopicPartition(topic, number): (TopicPartition(one.remote, number), end)
        for topic, one in known.items()
        for number, end in enumerate(one.ends)
        if end >= 0
    }
    with (
        closing(scene.target.records("read_uncommitted")) as target,
        closing(scene.source.records("read_uncommitted")) as source,
    ):
        copies = dict(ends.values())
        seen = target.ends(list(copies))
        grown = {copy for copy, log in seen.items.items() if log.end > copies[copy]}
        pairs = {where: copy for where, (copy, _) in ends.items() if copy in grown}
        theirs, cut = read_prints(target, {copy: copies[copy] for copy in grown}, limits)
        # Read last, so that what was copied meanwhile is found.
        return _compared(source, pairs, theirs, cut | seen.errors.keys(), limits)


def _compared(
    source: RecordReader,
    pairs: Mapping[TopicPartition, TopicPartition],
    theirs: Mapping[TopicPartition, list[Print]],
    cut: Collection[TopicPartition],
    limits: ReadLimits,
) -> WrittenSince:
    oldest = {where: min(one.timestamp for one in theirs[copy]) for where, copy in pairs.items() if theirs[copy]}
    seen = source.offsets_for_times([PartitionTime(where, at) for where, at in oldest.items()])
    begins = {context.where: offset for context, offset in seen.items.items() if offset is not None}
    ours, unread = read_prints(source, begins, limits)
    unread |= {context.where for context in seen.errors}
    unmatched, unknown = dict[TopicPartition, int](), set(cut)
    for where, copy in ((where, copy) for where, copy in pairs.items() if copy not in cut):
        if where in unread or any(one.appended for one in theirs[copy]):
            # With the target's own timestamps nobody knows how far back to read.
            unknown.add(copy)
        elif left := set(map(_mark, theirs[copy])).difference(map(_mark, ours.get(where, ()))):
            unmatched[where] = min(timestamp for timestamp, _ in left)
    untold = _before_the_first(source, unmatched, limits)
    foreign = {pairs[where] for where in unmatched.keys() - untold}
    return WrittenSince(foreign, unknown | {pairs[where] for where in untold})


def _before_the_first(
    source: RecordReader, times: Mapping[TopicPartition, int], limits: ReadLimits
) -> set[TopicPartition]:
    """The partitions whose source had records earlier that its retention took, and may have had one of that time (ms):
    MM2 may have sent it again. Also those that it does not show."""
    logs = source.ends(list(times)).items
    cut = {where: log for where, log in logs.items() if log.start}
    first: dict[TopicPartition, int] = {}

    def taker(where: TopicPartition) -> Callable[[Record], object]:
        return lambda record: first.setdefault(where, record.timestamp)

    read_records(source, {where: (log.start, log.end) for where, log in cut.items()}, limits._replace(most=1), taker)
    return {where for where in cut if where not in first or times[where] < first[where]} | (times.keys() - logs.keys())


def _mark(one: Print) -> tuple[int, bytes]:
    return one.timestamp, one.digest
