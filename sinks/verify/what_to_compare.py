"""What there is to compare: topics, logs, syncs of both clusters. Reads metadata and MM2's topics, and no record."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sinks.every_kind.listing import Listed
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.cluster import Reader
from sinks.kafka.ports.groups import LogRange
from sinks.kafka.ports.record_reader import PartitionTime, RecordReader
from sinks.kinds.offsets.exact_runs import unverified_from
from sinks.kinds.offsets.memory import OffsetMemory
from sinks.kinds.offsets.same_offsets import same_pairs
from sinks.kinds.offsets.sync_history import History, Pair, Restart
from sinks.kinds.offsets.translation import without_truncated
from sinks.verify.partition_check import PartitionPlan
from sinks.verify.partition_verdicts import Difference, PartitionReport, PartitionVerdict, VerifyLevel
from sinks.verify.windows import cut
from streaming.message_words import number_of
from streaming.mm2.records import TopicPartition

# Both clusters of a comparison, and what changed there between the survey and the end of the reading.


@dataclass(frozen=True)
class SurveyedSide:
    """One cluster, with a reader that gets what MM2 gets there, or what consumers of its copies get."""

    reader: Reader
    records: RecordReader


class IdsOnBoth(NamedTuple):
    """Ids of topics (KIP-516) on each cluster, by their names there; "" if the cluster has no ids."""

    source: Mapping[str, str]
    target: Mapping[str, str]


NO_IDS = IdsOnBoth({}, {})
"""No ids, if none were asked for."""


def ids_on_both(source: Reader, target: Reader, remote: Mapping[str, str]) -> IdsOnBoth:
    """Returns the ids of topics and their copies, as far as they exist. Raises ClusterUnreachable, RightsMissing."""
    return IdsOnBoth(source.topic_ids(remote), target.topic_ids(remote.values()))


def changed_meanwhile(
    plans: Iterable[PartitionPlan], source: SurveyedSide, target: SurveyedSide, ids: IdsOnBoth
) -> set[TopicPartition]:
    """Returns partitions that lost records of the plan while they were read: by retention, by DeleteRecords, or with
    the topic.

    `ids`: as surveyed. Raises ClusterUnreachable, RightsMissing.
    """
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


LAST = 100_000
"""Offsets at the end of each partition that are compared by default."""


@dataclass(frozen=True, slots=True)
class ComparisonScope:
    """What is compared, and how closely. `topics`: names on the source; empty: all that are replicated.

    Everything is compared, unless one of these says otherwise. `since_ms`: from a time on. `last`: so many offsets at
    the end of each partition. `unverified`: what was not verified yet, and the `last` offsets; `whole`: from the log's
    start, because the job compares all of it.
    """

    topics: tuple[str, ...] = ()
    since_ms: int | None = None
    last: int | None = None
    level: VerifyLevel = VerifyLevel.RECORDS
    unverified: bool = False
    whole: bool = False


@dataclass
class LogSurvey:
    """`plans`: partitions to compare. `reports`: partitions that cannot be compared.

    `ids`: of topics, before anything is read.
    """

    plans: list[PartitionPlan] = field(default_factory=list)
    reports: list[PartitionReport] = field(default_factory=list)
    ids: IdsOnBoth = NO_IDS


def survey_logs(
    settings: FlowSettings,
    source: SurveyedSide,
    target: SurveyedSide,
    listed: Listed,
    memory: OffsetMemory,
    scope: ComparisonScope,
) -> LogSurvey:
    """Surveys what must be known before records are read. Raises ClusterUnreachable, RightsMissing."""
    found = LogSurvey()
    remote = _chosen(settings, listed, scope.topics, found.reports)
    there = _partitions(listed, remote, found.reports)
    # Partitions that only the copies have: their records do not come from the source.
    for where, log in surplus_partitions(target.records, listed, remote).items():
        reason = f"the source has no such partition; the target has offsets {log.start} to {log.end - 1} there"
        extra = {Difference.EXTRA: log.end - log.start}
        found.reports.append(
            PartitionReport(where, remote[where.topic], PartitionVerdict.DIFFERENT, reason, differences=extra)
        )
    found.ids = ids_on_both(source.reader, target.reader, remote)
    # The target's ends first: what it has by then, the source has as well when its ends are read.
    theirs = target.records.readable([TopicPartition(remote[where.topic], where.partition) for where in there])
    ours = source.records.readable(there)
    remembered = {topic: name for topic, name in remote.items() if topic in memory.topics()}
    recreated = memory.recognize(remembered, found.ids.source, found.ids.target)
    compacted = compacted_topics(source, target, remote)
    since = _since(source.records, {where: ours.items[where] for where in there if where in ours.items}, memory, scope)
    for where in there:
        across = TopicPartition(remote[where.topic], where.partition)
        fault = ours.errors.get(where) or theirs.errors.get(across)
        if fault is not None:
            found.reports.append(
                PartitionReport(where, across.topic, PartitionVerdict.UNVERIFIABLE, f"its log cannot be read: {fault}")
            )
            continue
        log, copy = ours.items[where], theirs.items[across]
        history, notes = memory.histories.of(where), list[str]()
        if history is not None and without_truncated(history, copy) is None:
            notes.append("the target's log is shorter than MM2's newest offset-sync says: it has lost its tail")
            history = None
        if where.topic in recreated:
            notes.append("the topic was recreated on one side after the offset-syncs that Lockstep remembers")
        pairs, restarts = known_pairs(settings, history, log, copy)
        windows = cut(pairs, restarts, log, copy, since[where])
        resending = history is not None and history.resending_since(copy.end) is not None
        keyed = where.topic in compacted
        found.plans.append(
            PartitionPlan(where, across, log, copy, windows, since[where], resending, keyed, tuple(notes))
        )
    return found


def known_pairs(
    settings: FlowSettings, history: History | None, log: LogRange, copy: LogRange
) -> tuple[Sequence[Pair], Sequence[Restart]]:
    """Returns pairs of offsets that one record has on source and target, and the restarts between them."""
    if settings.keeps_offsets:
        return same_pairs(log, copy), ()
    return (tuple(history.pairs()), history.restarts()) if history else ((), ())


def _chosen(
    settings: FlowSettings, listed: Listed, topics: Sequence[str], reports: list[PartitionReport]
) -> dict[str, str]:
    """Returns the topics to compare that are on both sides: remote names by names on the source."""
    shared = listed.desired.shared
    wanted = topics or sorted({*listed.desired.remote, *shared})
    chosen: dict[str, str] = {}
    for topic in wanted:
        remote = listed.desired.remote.get(topic)
        if remote is not None and remote in listed.target:
            chosen[topic] = remote
        elif topic in shared:
            others = " and ".join(sorted(one for one, name in shared.items() if name == shared[topic] and one != topic))
            reason = (
                f"{others} would be {shared[topic]} on the target as well, so their records cannot be told apart there"
            )
            where = TopicPartition(topic, 0)
            reports.append(PartitionReport(where, shared[topic], PartitionVerdict.UNVERIFIABLE, reason))
        else:
            reason = _why_not(settings, listed, topic, remote)
            reports.append(
                PartitionReport(TopicPartition(topic, 0), remote or "", PartitionVerdict.NOT_MIRRORED, reason)
            )
    return chosen


def _why_not(settings: FlowSettings, listed: Listed, topic: str, remote: str | None) -> str:
    flow = settings.flow
    if topic not in listed.source:
        return f"the cluster {flow.source} has no topic of this name: name it as it is called there"
    if remote is None:
        return f"{flow.name} does not replicate it: its topic filter or the replication policy leaves it out"
    return f"the cluster {flow.target} has no topic {remote}: MM2 has not made it yet, or another client deleted it"


def _partitions(listed: Listed, remote: Mapping[str, str], reports: list[PartitionReport]) -> list[TopicPartition]:
    found = []
    for topic, name in sorted(remote.items()):
        here, there = listed.source[topic], listed.target[name]
        if not here or not there:
            where = TopicPartition(topic, 0)
            reports.append(
                PartitionReport(
                    where, name, PartitionVerdict.UNVERIFIABLE, "the broker returned an error for its metadata"
                )
            )
            continue
        for partition in range(here):
            where = TopicPartition(topic, partition)
            if partition < there:
                found.append(where)
            else:
                reason = f"{name} has only {number_of(there, 'partition')}"
                reports.append(PartitionReport(where, name, PartitionVerdict.NOT_MIRRORED, reason))
    return found


def surplus_partitions(
    records: RecordReader, listed: Listed, remote: Mapping[str, str]
) -> dict[TopicPartition, LogRange]:
    """Returns the partitions that only copies have and that are not empty, by name on the source, with their logs."""
    only = {
        TopicPartition(name, number): TopicPartition(topic, number)
        for topic, name in sorted(remote.items())
        if listed.source[topic]
        for number in range(listed.source[topic], listed.target[name])
    }
    if not only:
        return {}
    return {only[across]: log for across, log in records.readable(list(only)).items.items() if log.end > log.start}


def compacted_topics(source: SurveyedSide, target: SurveyedSide, remote: Mapping[str, str]) -> set[str]:
    """Returns the topics with compaction on either side, by their names on the source."""
    there = target.records.compacted(remote.values())
    return source.records.compacted(remote) | {topic for topic, name in remote.items() if name in there}


def _since(
    records: RecordReader, logs: Mapping[TopicPartition, LogRange], memory: OffsetMemory, scope: ComparisonScope
) -> dict[TopicPartition, int]:
    """Returns the source offset from which each partition is compared."""
    if scope.unverified:
        exact, last = memory.histories.exact, scope.last or LAST
        return {
            where: unverified_from(log, found.verified if (found := exact.of(where)) else (), last, whole=scope.whole)
            for where, log in logs.items()
        }
    if scope.since_ms is not None:
        times = [PartitionTime(where, scope.since_ms) for where in logs]
        # None: no record is as young. If that is unknown, everything is compared.
        seen = {
            time.where: logs[time.where].end if offset is None else offset
            for time, offset in records.offsets_for_times(times).items.items()
        }
        return {where: seen.get(where, log.start) for where, log in logs.items()}
    if scope.last is not None:
        return {where: max(log.start, log.end - scope.last) for where, log in logs.items()}
    return {where: log.start for where, log in logs.items()}
