"""Both clusters of a comparison, and whether what was read of them is what was surveyed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sinks.kafka.ports.cluster import Reader
from sinks.kafka.ports.groups import LogRange
from sinks.kafka.ports.record_reader import RecordReader
from sinks.verify.partition_check import PartitionPlan
from streaming.mm2.records import TopicPartition


@dataclass(frozen=True)
class SurveyedSide:
    """One cluster, with a reader that gets what MM2 gets there, or what consumers of its copies get."""

    reader: Reader
    records: RecordReader


class IdsOnBoth(NamedTuple):
    """Ids of topics (KIP-516) by their names there; "" of a cluster without ids."""

    source: Mapping[str, str]
    target: Mapping[str, str]


NO_IDS = IdsOnBoth({}, {})
"""Nothing was asked for."""


def ids_on_both(source: Reader, target: Reader, remote: Mapping[str, str]) -> IdsOnBoth:
    """Of topics and their copies, as far as they are there. Raises ClusterUnreachable, RightsMissing."""
    return IdsOnBoth(source.topic_ids(remote), target.topic_ids(remote.values()))


def changed_meanwhile(
    plans: Iterable[PartitionPlan], source: SurveyedSide, target: SurveyedSide, ids: IdsOnBoth
) -> set[TopicPartition]:
    """Partitions of which records that were to be read have been deleted meanwhile, by retention or by somebody, or
    with the whole topic. `ids`: from before. Raises ClusterUnreachable, RightsMissing."""
    chosen: Collection[PartitionPlan] = [plan for plan in plans if plan.windows]
    now = ids_on_both(source.reader, target.reader, {plan.where.topic: plan.remote.topic for plan in chosen})
    here, there = _ids_that_changed(ids.source, now.source), _ids_that_changed(ids.target, now.target)
    ours = source.records.readable([plan.where for plan in chosen]).items
    theirs = target.records.readable([plan.remote for plan in chosen]).items
    gone = LogRange(2**63 - 1, 2**63 - 1)
    return {
        plan.where
        for plan in chosen
        if plan.where.topic in here
        or plan.remote.topic in there
        or ours.get(plan.where, gone).start > plan.windows[0].upstream
        or theirs.get(plan.remote, gone).start > plan.windows[0].downstream
    }


def _ids_that_changed(before: Mapping[str, str], now: Mapping[str, str]) -> set[str]:
    return {topic for topic in now if before.get(topic) and now[topic] and before[topic] != now[topic]}
