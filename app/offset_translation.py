"""Offsets that are kept outside Kafka, by Flink, Iceberg and other connectors: where they are on the target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial

from app.settings import Settings
from app.wiring import FlowClusters, both_clusters, guard, ledger
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.groups import GroupPartition
from sinks.kinds.offsets.match_cache import open_matches
from sinks.kinds.offsets.memory import OffsetMemory
from sinks.kinds.offsets.mirror_reading import read_memory
from sinks.kinds.offsets.mirror_records import mirror_topics
from sinks.kinds.offsets.record_search import Question, SearchResult
from sinks.kinds.offsets.same_offsets import Position, same_records, translate_same
from sinks.kinds.offsets.translation import Answer, Evidence, LogEnds, Unanswered, search_window, translate
from sinks.kinds.shared_listings import list_both
from streaming.errors import LockstepError, WrongUsage
from streaming.mm2.records import TopicPartition
from streaming.mm2.replication_policy import is_written_by_mm2_alone


@dataclass(frozen=True)
class Translated:
    """Answers by the source's offset; `remote`: the partition on the target that they are offsets of."""

    remote: TopicPartition
    answers: Mapping[int, Answer | Unanswered]


def translate_each(settings: Settings, flow: FlowSettings, where: TopicPartition, offsets: Sequence[int]) -> Translated:
    """Where a reader at each of these offsets of a partition of the source continues on the target; writes nothing.

    Raises WrongUsage for a partition that is not on both sides, ClusterUnreachable, RightsMissing, WrongCluster.
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
        ends = _ends(flow, clusters, where, remote)
        memory.note_target_end(where, remote, ends.target.end)
        if flow.keeps_offsets:
            with closing(same_records(*clusters.ports)) as same:
                proven = same.proven({Position(where, at) for at in offsets}, {where: remote}, {where: ends})
            found = {at: translate_same(at, ends, proven=Position(where, at) in proven) for at in offsets}
            return Translated(remote, found)
        matches = dict(_matches(flow, clusters, memory, ends, (where, remote), offsets))
        return Translated(remote, {at: _translated(memory, ends, where, at, matches.get(at)) for at in offsets})


def _remote(flow: FlowSettings, clusters: FlowClusters, where: TopicPartition) -> TopicPartition:
    listed = list_both(flow, clusters.source, clusters.target)
    name = listed.desired.remote.get(where.topic)
    if name is None:
        raise WrongUsage(f"{flow.flow.name} replicates no topic {where.topic} of {flow.flow.source}")
    if where.partition >= min(listed.source[where.topic], listed.target.get(name, 0)):
        raise WrongUsage(f"{where.topic} and {name} do not both have a partition {where.partition}")
    return TopicPartition(name, where.partition)


def _ends(flow: FlowSettings, clusters: FlowClusters, where: TopicPartition, remote: TopicPartition) -> LogEnds:
    # The target first: a reader at the source's end has then read all that lies below the target's.
    there, here = clusters.target.groups.ends([remote]), clusters.source.groups.ends([where])
    if (fault := there.errors.get(remote)) is not None:
        raise LockstepError(f"{remote} on {flow.flow.target}: {fault}")
    alone = is_written_by_mm2_alone(flow.policy, flow.flow.source, where.topic)
    return LogEnds(here.items.get(where), there.items[remote], replication_alone=alone)


def _matches(
    flow: FlowSettings,
    clusters: FlowClusters,
    memory: OffsetMemory,
    ends: LogEnds,
    partitions: tuple[TopicPartition, TopicPartition],
    offsets: Sequence[int],
) -> Iterator[tuple[int, SearchResult]]:
    """Records that are looked for, where nothing better is known and the file does not forbid it."""
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
