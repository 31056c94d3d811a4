"""Tells applications where a consumer group continues on the other cluster, as Java's `RemoteClusterUtils` does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from app.overrides.with_overrides import load_with_overrides
from app.settings import Settings
from app.single_pass import group_offsets_now
from app.wiring import FlowClusters, both_clusters, guard, ledger
from sinks.faults import ClusterUnreachable
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.groups import GroupPartition, Groups
from sinks.kinds.offsets.direction import GroupOffset
from sinks.kinds.offsets.memory import OffsetMemory
from sinks.kinds.offsets.mirror_reading import read_memory
from sinks.kinds.offsets.mirror_records import mirror_topics
from sinks.kinds.offsets.record_finder import open_matches
from sinks.kinds.offsets.record_search import Question, SearchResult
from sinks.kinds.offsets.same_offsets import Position, same_records, translate_same
from sinks.kinds.offsets.survey import ends_forward
from sinks.kinds.offsets.translation import Answer, Evidence, LogEnds, Unanswered, search_window, translate
from sinks.kinds.offsets.verdicts import Verdict
from sinks.kinds.shared_listings import list_both
from streaming.errors import LockstepError, MalformedRecord, WrongUsage
from streaming.mm2.codec import decode_checkpoint
from streaming.mm2.records import TopicPartition

CONFIG = Path("conf/mirror.properties")


def translate_offsets(flow: str, group: str, config: Path | str = CONFIG) -> dict[TopicPartition, int]:
    """Returns the offsets at which a group continues on the flow's target, by partition of the target.

    `flow`: e.g. `a->b`. Commits nothing: hand the offsets to a consumer. A partition that cannot be translated is left
    out. While the source answers, its committed offsets are translated. Otherwise the group's newest checkpoints count.

    Raises ConfigurationError for the file, ClusterUnreachable if neither cluster answers, RightsMissing. Source:
    `org.apache.kafka.connect.mirror.RemoteClusterUtils.translateOffsets` (KIP-382).
    """
    with closing(load_with_overrides(Path(config), (flow,))) as settings:
        one = settings.flows[0]
        try:
            return offsets_to_use(group_offsets_now(settings, one, [group]))
        except ClusterUnreachable:
            with both_clusters(settings, one) as clusters:
                return _from_checkpoints(one, clusters, group)


def offsets_to_use(rows: Iterable[GroupOffset]) -> dict[TopicPartition, int]:
    """Returns the offsets at which a group continues, without partitions in ERROR."""
    trusted = (row for row in rows if row.judgement.verdict is not Verdict.ERROR)
    return {row.where: offset for row in trusted if (offset := row.goes_on_at) is not None}


def _from_checkpoints(flow: FlowSettings, clusters: FlowClusters, group: str) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for key, value in clusters.target.read_log(flow.internal.checkpoints):
        try:
            checkpoint = decode_checkpoint(key, value)
        except MalformedRecord:
            continue
        if checkpoint.group == group:
            found[checkpoint.topic_partition] = checkpoint.downstream_offset
    return found


# Offsets that are kept outside Kafka, by Flink, Iceberg and other connectors: where they are on the target.


@dataclass(frozen=True)
class Translated:
    """Answers by source offset. `remote`: the partition on the target."""

    remote: TopicPartition
    answers: Mapping[int, Answer | Unanswered]


def translate_each(settings: Settings, flow: FlowSettings, where: TopicPartition, offsets: Sequence[int]) -> Translated:
    """Translates source offsets of the partition `where` to the target, without a consumer group. Writes nothing.

    Raises WrongUsage if a side lacks the partition, ClusterUnreachable, RightsMissing, WrongCluster.
    """
    with both_clusters(settings, flow) as clusters:
        opened = guard(flow, clusters.source, clusters.target).open(
            partial(ledger, flow, clusters.target, to_write=False)
        )
        memory = read_memory(opened, mirror_topics(flow, clusters.source, clusters.target))
        remote = _remote(flow, clusters, where)
        memory.recognize(
            {where.topic: remote.topic},
            clusters.source.topic_ids([where.topic]),
            clusters.target.topic_ids([remote.topic]),
        )
        ends = ends_of(flow, (clusters.source.groups, clusters.target.groups), memory, where, remote)
        if flow.keeps_offsets:
            with closing(same_records(*clusters.ports)) as same:
                proven = same.proven({Position(where, at) for at in offsets}, {where: remote}, {where: ends})
            found = {at: translate_same(at, ends, proven.get(Position(where, at))) for at in offsets}
            return Translated(remote, found)
        matches = dict(_matches(flow, clusters, memory, ends, (where, remote), offsets))
        return Translated(remote, {at: _translated(memory, ends, where, at, matches.get(at)) for at in offsets})


def _remote(flow: FlowSettings, clusters: FlowClusters, where: TopicPartition) -> TopicPartition:
    listed = list_both(flow, clusters.source, clusters.target)
    name = listed.desired.remote.get(where.topic)
    if name is None:
        raise WrongUsage(f"{flow.flow.name} replicates no topic {where.topic} of {flow.flow.source}")
    if where.partition >= min(listed.source[where.topic], listed.target.get(name, 0)):
        lacking = where.topic if where.partition >= listed.source[where.topic] else name
        raise WrongUsage(f"{lacking} has no partition {where.partition}")
    return TopicPartition(name, where.partition)


def ends_of(
    flow: FlowSettings,
    groups: tuple[Groups, Groups],
    memory: OffsetMemory,
    where: TopicPartition,
    remote: TopicPartition,
) -> LogEnds:
    """Reads where a partition and its copy `remote` start and end, and notes the end offsets in `memory`.

    `groups`: the clients of source and target. Raises LockstepError if the target does not tell its end.
    """
    # The target first: a reader at the source's end has then read all that lies below the target's.
    source, target = groups
    there, here = target.ends([remote]), source.ends([where]).items.get(where)
    if (fault := there.errors.get(remote)) is not None:
        raise LockstepError(f"{remote} on {flow.flow.target}: {fault}")
    if here is not None:
        memory.note_source_end(where, here.end)
    memory.note_target_end(where, remote, there.items[remote].end)
    return ends_forward(flow, memory, where, here, there.items[remote])


def _matches(
    flow: FlowSettings,
    clusters: FlowClusters,
    memory: OffsetMemory,
    ends: LogEnds,
    partitions: tuple[TopicPartition, TopicPartition],
    offsets: Sequence[int],
) -> Iterator[tuple[int, SearchResult]]:
    """Yields offsets with the matching record on the target. Searches only where no exact offset is known and the file
    allows a search."""
    where, remote = partitions
    questions: dict[GroupPartition, Question] = {}
    for at in offsets:
        window = search_window(at, ends, memory.histories.of(where))
        if flow.matching and window is not None and memory.histories.exact_offset(where, at) is None:
            generation = memory.generation(where)
            questions[str(at), where] = Question(
                where, at, remote, *window, False, generation, not ends.replication_alone
            )
    if questions:
        with closing(open_matches(flow, *clusters.ports, at_leisure=True)) as find:
            for (name, _), found in find(questions).items():
                yield int(name), found


def _translated(
    memory: OffsetMemory, ends: LogEnds, where: TopicPartition, offset: int, found: SearchResult | None
) -> Answer | Unanswered:
    if ends.source is not None and offset > ends.source.end:
        # The source lost its tail, or was recreated: nothing tells what the reader has read.
        return Unanswered.BEYOND_END
    evidence = Evidence(
        memory.histories.of(where),
        matched=found.offset if found else None,
        exact=found.exact if found else True,
        truncated=memory.histories.is_truncated(where),
        verified=memory.histories.exact_offset(where, offset),
    )
    return translate(offset, ends, evidence)
