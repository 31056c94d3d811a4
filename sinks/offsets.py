"""What would happen to each consumer group at a failover, for each of its partitions. Reads both clusters, writes
nothing, keeps nothing.

The offset-syncs and checkpoints are read from MM2's own topics, as far as compaction has left them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sinks.cluster.base import Reader, Record
from sinks.cluster.groups import GroupReader, Offsets
from sinks.errors import ItemFault
from sinks.model import Observed
from sinks.settings import FlowSettings
from sinks.survey import Listed
from streaming.codec import decode_checkpoint, decode_offset_sync
from streaming.errors import MalformedRecord
from streaming.offsets import Histories, Pair
from streaming.records import TopicPartition
from streaming.translation import Answer, Ends, Evidence, LogRange, Unanswered, translate
from streaming.verdicts import Facts, Judgement, Verdict, judge


@dataclass(frozen=True)
class End:
    """One side of a flow, as the survey needs it."""

    reader: Reader
    groups: GroupReader


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """A group's partition: `where` it is on the target, the offsets on both sides, and the verdict.

    `answer`: the translation of `upstream`, or why there is none.
    """

    group: str
    where: TopicPartition
    upstream: int
    answer: Answer | Unanswered
    judgement: Judgement

    def as_json(self) -> dict[str, Any]:
        """One row of `lockstep offsets`."""
        found = self.answer if isinstance(self.answer, Answer) else None
        return {
            "group": self.group,
            "topic": self.where.topic,
            "partition": self.where.partition,
            "upstream_offset": self.upstream,
            "downstream_offset": found.downstream if found else None,
            "method": found.method.value if found else None,
            "error_bound": found.error_bound if found else None,
            "verdict": self.judgement.verdict.value,
            "reason": self.judgement.reason,
        }


@dataclass(frozen=True)
class _Seen:
    """All that was read, partitions by their names on their own cluster."""

    there: Observed[str, Offsets]
    members: Observed[str, int]
    target: Observed[TopicPartition, LogRange]
    source: Observed[TopicPartition, LogRange]
    histories: Histories
    checkpoints: Mapping[tuple[str, TopicPartition], Pair]


def replicated_groups(settings: FlowSettings, source: GroupReader, listed: Listed) -> dict[str, Offsets]:
    """Groups that the filter lets through, with their committed offsets on replicated topics; none without any."""
    chosen = [group for group in source.names() if settings.group_filter.should_replicate_group(group)]
    remote = listed.desired.remote
    found = {
        group: {where: offset for where, offset in offsets.items() if where.topic in remote}
        for group, offsets in source.committed(chosen).items.items()
    }
    return {group: offsets for group, offsets in sorted(found.items()) if offsets}


def survey_offsets(
    settings: FlowSettings, source: End, target: End, listed: Listed, groups: Collection[str] | None = None
) -> list[GroupOffset]:
    """A row for each group (of `groups`, if given) and partition, sorted. Raises ClusterUnreachable, RightsMissing."""
    committed = replicated_groups(settings, source.groups, listed)
    if groups is not None:
        committed = {group: offsets for group, offsets in committed.items() if group in groups}
    seen = _look(settings, source, target, listed, committed)
    return [
        _row(settings, seen, group, where, upstream, listed.desired.remote[where.topic])
        for group, offsets in committed.items()
        for where, upstream in sorted(offsets.items())
    ]


def _look(settings: FlowSettings, source: End, target: End, listed: Listed, committed: Mapping[str, Offsets]) -> _Seen:
    upstream = {where for offsets in committed.values() for where in offsets}
    downstream = {TopicPartition(listed.desired.remote[where.topic], where.partition) for where in upstream}
    internal = settings.internal
    syncs = (source if internal.offset_syncs_cluster == settings.flow.source else target).reader
    # The target's ends before the source's: a group at the source's end has then read all that lies below the target's.
    return _Seen(
        there=target.groups.committed(committed),
        members=target.groups.members(committed),
        histories=_histories(syncs.read_log(internal.offset_syncs)),
        checkpoints=_checkpoints(target.reader.read_log(internal.checkpoints)),
        target=target.groups.ends(downstream),
        source=source.groups.ends(upstream),
    )


def _histories(records: Collection[Record]) -> Histories:
    histories = Histories()
    for position, (key, value) in enumerate(records):
        try:
            sync = decode_offset_sync(key, value)
        except MalformedRecord:
            continue
        where = sync.topic_partition
        # What compaction took from between two records of a partition may have told of a restart.
        histories.note_hole(position)
        histories.take(where.topic, where.partition, sync.upstream_offset, sync.downstream_offset, position)
    return histories


def _checkpoints(records: Collection[Record]) -> dict[tuple[str, TopicPartition], Pair]:
    return {(group, where): pair for group, where, pair in _each_checkpoint(records)}


def _each_checkpoint(records: Collection[Record]) -> Iterator[tuple[str, TopicPartition, Pair]]:
    for key, value in records:
        try:
            found = decode_checkpoint(key, value)
        except MalformedRecord:
            continue
        yield found.group, found.topic_partition, Pair(found.upstream_offset, found.downstream_offset)


def _row(
    settings: FlowSettings, seen: _Seen, group: str, where: TopicPartition, upstream: int, remote: str
) -> GroupOffset:
    there = TopicPartition(remote, where.partition)
    log, origin = seen.target.items.get(there), seen.source.items.get(where)
    answer: Answer | Unanswered = Unanswered.NO_OFFSET_SYNC
    if log is not None:
        # A name that tells where the topic is from is MM2's alone to write; others may be written by anybody.
        alone = settings.policy.topic_source(remote) == settings.flow.source
        evidence = Evidence(seen.histories.of(where), checkpoint=seen.checkpoints.get((group, there)))
        answer = translate(upstream, Ends(origin, log, replication_alone=alone), evidence)
    facts = Facts(
        onto=settings.flow.target,
        answer=answer.downstream if isinstance(answer, Answer) else answer,
        log=log,
        committed=seen.there.items.get(group, {}).get(there),
        members=seen.members.items.get(group, 0),
        enabled=False,
        source_empty=origin is not None and origin.start == origin.end,
        error=_unseen(seen, group, there),
    )
    return GroupOffset(group, there, upstream, answer, judge(facts))


def _unseen(seen: _Seen, group: str, there: TopicPartition) -> str | None:
    """Why the group or its log on the target could not be read; a log that does not exist is no such fault."""
    faults: list[ItemFault | None] = [
        seen.there.errors.get(group),
        seen.members.errors.get(group),
        seen.target.errors.get(there),
    ]
    return next((str(fault) for fault in faults if fault and fault.code != "UNKNOWN_TOPIC_OR_PART"), None)


def count_verdicts(rows: Collection[GroupOffset]) -> dict[Verdict, int]:
    """How many rows have each verdict."""
    counts = dict.fromkeys(Verdict, 0)
    for row in rows:
        counts[row.judgement.verdict] += 1
    return counts
