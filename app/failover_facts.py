"""Observes both clusters of a flow for the checks of `preflight`. Writes nothing."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial

from app.rights.flow_rights import failover_rights
from app.rights.rights_check import RightFinding, RightVerdict, check_rights
from app.settings import Settings
from app.single_pass import newest_heartbeat, single_pass
from app.wiring import FlowClusters
from sinks.background import Beside, at_once, awaited, begun
from sinks.engine.flow_status import age_of
from sinks.engine.report import Report
from sinks.every_kind.comparison import GroupSummary
from sinks.every_kind.listing import Listed
from sinks.failover.fenced_topics import doubtful_heartbeats, fenced_topics, is_copy
from sinks.failover.lost_before_copying import LostRecords, lost_by_now, unacknowledged
from sinks.failover.open_transactions import Undecided, undecided
from sinks.failover.preflight import counted_loss
from sinks.failover.readiness_facts import GroupsUnseen, InStep, ReadinessFacts, losses_of, not_begun, untold
from sinks.failover.scene import both_readers
from sinks.failover.source_end_offsets import Positions
from sinks.failover.uncopied_records import (
    Arrival,
    ArrivalMemory,
    ArrivalsSeen,
    arrivals_at_takeover,
    as_at_takeover,
    pairs_of,
    sharing,
    unlisted,
    with_ages,
    with_seen_ends,
)
from sinks.faults import ItemFault, NoAnswer, NotSupported, RightsMissing
from sinks.flow_settings import FlowSettings
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.kafka.ports.acl_binding import AclBinding
from sinks.kafka.ports.cluster import Replicas, TopicConfigs
from sinks.kafka.ports.cluster_ports import ClusterPorts
from sinks.kafka.ports.groups import GroupReader, LogRange
from sinks.kinds.acls.survey import left_out, source_topics
from sinks.kinds.file_warnings import forgotten_copies, without_copy
from sinks.kinds.offsets.direction import Direction, summary_of
from sinks.kinds.offsets.polled_groups import chosen_groups
from sinks.kinds.offsets.survey import without_offset_there
from sinks.ledger.kept_divergences import divergences, takeover_ends
from sinks.ledger.kept_end_offsets import by_partition, kept_end_offsets
from sinks.ledger.ledger import Ledger
from sinks.model.changes import Kind
from sinks.model.times import utc_now
from streaming.message_words import first_names
from streaming.mm2.records import TopicPartition

SELDOM = 600.0
"""Seconds for which rights and topic configs stay valid. They seldom change, and thousands of topics take a while."""


def observe_readiness(settings: Settings, flow: FlowSettings) -> ReadinessFacts:
    """Returns what both clusters show now. Raises LockstepError for a flow that cannot be observed."""
    with single_pass(settings, flow, obeys_failover=False) as one:
        compared = one.compare()
        kinds = [kind for kind in Kind if flow.enabled.get(kind, False)]
        in_step = in_step_of_pass(one.reconcile.report_only(compared), kinds, summary_of(one.group_offsets))
        heartbeat = begun(lambda: newest_heartbeat(flow, one.clusters), "heartbeat")
        ledger = compared.context.ledger
        facts = ReadinessSurvey(flow, one.clusters).observe(compared.context.listed, in_step, ledger)
        newest = awaited(heartbeat)
    copied = newest is None or newest.copied
    return replace(
        facts,
        record=ledger.failover(),
        heartbeat_age=age_of(newest),
        heartbeat_copied=copied,
        loss=counted_loss(facts),
        seen_at=utc_now(),
    )


@dataclass(frozen=True)
class _Seldom:
    """Facts that seldom change, seen at `at` (monotonic seconds) for these topics."""

    at: float
    topics: Collection[str]
    facts: ReadinessFacts


class ReadinessSurvey:
    """Observes what the checks of one flow need. May be asked again and again; keeps facts that seldom change."""

    def __init__(
        self,
        flow: FlowSettings,
        clusters: FlowClusters,
        *,
        by_job: bool = False,
    ) -> None:
        """`by_job`: the job asks with its own rights. Otherwise the operator who fails over asks."""
        self._by_job = by_job
        self._flow, self._clusters = flow, clusters
        self._memory = ArrivalMemory()
        self._seldom: _Seldom | None = None
        self.positions: Positions = {}
        """How far MM2 had copied each partition at the last count. Partitions with an open transaction on the target
        are left out: its records count as missing until they are committed."""

    def observe(
        self,
        listed: Listed,
        in_step: InStep,
        ledger: Ledger | None = None,
        replicas: Replicas | None = None,
        lost: LostRecords | None = None,
    ) -> ReadinessFacts:
        """Returns all facts but the heartbeat, which the caller knows. Raises LockstepError if a cluster does not show
        them.

        `listed`, `replicas`: topics of both clusters and the target's replicas, as they are now. `ledger`: of a flow
        whose clients may have moved already; the copies then count as they were at the takeover. `lost`: the records
        lost before MM2 copied them, as the job knows them. None: computed from the ledger and both clusters.
        """
        topics = fenced_topics(self._flow, listed.desired.remote)
        remote = [listed.desired.remote[topic] for topic in topics]
        pairs = pairs_of(listed.desired.remote, listed.source, topics)
        # In a job passes would wait for the interpreter behind each of these threads.
        beside: Beside = at_once if self._by_job else begun
        asked = ledger if lost is None else None
        asked_seldom = beside(lambda: self._seen_seldom(listed, topics, remote), "rights and configs")
        asked_lost = beside(
            lambda: self._lost(asked, listed) if asked is not None else lost or {}, "lost before copying"
        )
        asked_replicas = beside(lambda: replicas or self._clusters.target.replicas(), "replicas")
        seen, now_ms = self._arrivals(pairs, ledger, self._uncounted(listed, topics)), time.time() * 1000
        opened = self._open_transactions(seen, pairs, beside)
        seldom = self._seldom = awaited(asked_seldom)
        return replace(
            seldom.facts,
            losses=losses_of(seen.arrivals.values(), now_ms),
            losses_at_ms=now_ms,
            untold=untold(seen.arrivals.values()),
            not_begun=not_begun(seen, pairs),
            in_step=in_step,
            partitions=_differing(listed, topics),
            remote=remote,
            replicas=awaited(asked_replicas),
            undecided=opened,
            forgotten=forgotten_copies(self._flow, listed),
            without_copy=without_copy(self._flow, listed),
            doubtful=doubtful_heartbeats(self._flow, listed.desired.remote),
            idle=not topics,
            lost=awaited(asked_lost),
            # Partitions whose copy position no job kept.
            unwatched=len(pairs.keys() - by_partition(kept_end_offsets(asked))[0].keys()) if asked is not None else 0,
        )

    def _uncounted(self, listed: Listed, topics: list[str]) -> dict[TopicPartition, Arrival]:
        """Returns partitions that cannot be counted: they have no metadata, or several topics share their copy."""
        shared = {topic: name for topic, name in listed.desired.shared.items() if not is_copy(self._flow, topic)}
        return {**unlisted(listed.source, topics), **sharing(shared, listed.source)}

    def _open_transactions(
        self, seen: ArrivalsSeen, pairs: Mapping[TopicPartition, TopicPartition], beside: Beside
    ) -> dict[str, Undecided]:
        """Returns the open transactions by cluster alias. Keeps the positions of partitions without one on the
        target."""
        here, there = self._clusters.ports
        of_target = beside(lambda: _undecided(there, seen.target), f"open transactions of {there.alias}")
        opened = {here.alias: _undecided(here, seen.source), there.alias: awaited(of_target)}
        self.positions = {where: at for where, at in seen.positions.items() if pairs[where] not in opened[there.alias]}
        return opened

    def _lost(self, ledger: Ledger, listed: Listed) -> LostRecords:
        with both_readers(self._flow, *self._clusters.ports) as (source, target):
            return unacknowledged(lost_by_now(ledger, source, target, listed.desired.remote, round(time.time() * 1000)))

    def _arrivals(
        self,
        pairs: Mapping[TopicPartition, TopicPartition],
        ledger: Ledger | None,
        uncounted: Mapping[TopicPartition, Arrival],
    ) -> ArrivalsSeen:
        """Counts as the failover's commands do. `ledger`: None while no topic moves."""
        # Read before the ends: a job may see later ones meanwhile.
        kept = {} if ledger is None else by_partition(kept_end_offsets(ledger))[1]
        with both_readers(self._flow, *self._clusters.ports) as (source, target):
            then = target if ledger is None else as_at_takeover(ledger, target)
            seen = self._memory.observe(source, then, pairs, self._ids(pairs))
            drained = {} if ledger is None else takeover_ends(divergences(ledger))
            left = {
                where: copy for where, copy in pairs.items() if copy in drained and not seen.arrivals[where].arrived
            }
            again = arrivals_at_takeover(ledger, source, target, left) if ledger is not None and left else {}
        ends = {where: log.end for where, log in seen.source.items()}
        found = with_seen_ends({**seen.arrivals, **again}, ends, kept)
        aged = with_ages(found, partial(self._clusters.ports[0].records, "read_uncommitted"))
        return replace(seen, arrivals={**aged, **uncounted})

    def _ids(self, pairs: Mapping[TopicPartition, TopicPartition]) -> dict[str, tuple[str, str]]:
        names = {where.topic: copy.topic for where, copy in pairs.items()}
        source, target = (ports.groups for ports in self._clusters.ports)
        here, there = source.topic_ids(names), target.topic_ids(names.values())
        return {topic: (here.get(topic, ""), there.get(name, "")) for topic, name in names.items()}

    def _seen_seldom(self, listed: Listed, topics: list[str], remote: list[str]) -> _Seldom:
        known, now, source = self._seldom, time.monotonic(), self._clusters.source
        if known is not None and known.topics == topics and now - known.at < SELDOM:
            unseen = known.facts.unsynced
            if isinstance(unseen, GroupsUnseen) and not unseen.denied:
                # A broker may be back by now.
                return replace(known, facts=replace(known.facts, unsynced=self._unsynced(listed)))
            return known
        wanted = failover_rights(self._flow)
        rights = begun(lambda: missing_of(check_rights(self._flow, self._clusters, wanted, listed)), "rights")
        authorizer, acls = _acls_of(source)
        lacking = ""
        if self._flow.enabled.get(Kind.ACL):
            lacking = left_out(acls, self._flow.acls, source_topics(self._flow, listed))
        wanted_in_sync = _wanted_in_sync(self._clusters.target, remote)
        missing_rights, missing_reads = awaited(rights)
        flags = [
            *([lacking] if lacking else []),
            *red_flags(topics, source.describe_topic_configs(topics).items),
        ]
        facts = ReadinessFacts(
            rules=self._flow.failover,
            copier=self._flow.copier,
            source=self._flow.flow.source,
            target=self._flow.flow.target,
            heartbeat_timeout=self._flow.pace.heartbeat_timeout,
            by_job=self._by_job,
            wanted_in_sync=wanted_in_sync,
            missing_rights=missing_rights,
            missing_reads=missing_reads,
            authorizer=authorizer,
            flags=flags,
            unsynced=self._unsynced(listed),
        )
        return _Seldom(now, topics, facts)

    def _unsynced(self, listed: Listed) -> int | GroupsUnseen:
        here, there = self._clusters.ports
        return unsynced(self._flow, here.groups, there.groups, listed)


def unsynced(flow: FlowSettings, here: GroupReader, there: GroupReader, listed: Listed) -> int | GroupsUnseen:
    """Returns how many partitions of groups have no offset on the target, where the flow writes none; or why that is
    unknown."""
    if flow.enabled.get(Kind.GROUP_OFFSET):
        return 0
    try:
        groups = chosen_groups(flow, here.names())
        found = without_offset_there(Direction(flow, here, there, listed), groups)
    except RightsMissing as error:
        return GroupsUnseen(str(error), denied=True)
    except NoAnswer as error:
        return GroupsUnseen(str(error))
    return GroupsUnseen(str(found), found.is_denied) if isinstance(found, ItemFault) else found


def missing_of(findings: Iterable[RightFinding]) -> tuple[list[str], list[str]]:
    """Returns the missing rights as texts: those for later steps, then those to read records, which a count needs."""
    missing = [one.right for one in findings if one.verdict is RightVerdict.MISSING and not one.right.optional]
    words = {
        right: f"{right.operation} on {right.resource_type} {right.resource_name} of {right.cluster}"
        for right in missing
    }
    reads = [said for right, said in words.items() if (right.resource_type, right.operation) == ("TOPIC", "READ")]
    return [said for said in words.values() if said not in reads], reads


def _undecided(ports: ClusterPorts, ends: Mapping[TopicPartition, LogRange]) -> Undecided:
    """Returns the cluster's open transactions. `ends`: end offsets read before, because later records also move the
    last stable offset."""
    with closing(ports.records("read_committed")) as committed:
        return undecided(committed, {where: log.end for where, log in ends.items()})


def _differing(listed: Listed, topics: list[str]) -> dict[str, tuple[int, int]]:
    """Returns remote topics whose partition count differs, each with the counts of source and target. Leaves out copies
    that only MM2 creates: `without_copy` reports those."""
    awaiting = listed.awaits_mm2()
    names = {listed.desired.remote[topic]: topic for topic in topics if topic not in awaiting}
    counts = {name: (listed.source[topic], listed.target.get(name, 0)) for name, topic in names.items()}
    return {name: both for name, both in counts.items() if both[0] != both[1]}


def _wanted_in_sync(target: KafkaCluster, remote: list[str]) -> dict[str, int]:
    seen = target.describe_topic_configs(remote).items
    entries = {topic: configs.get("min.insync.replicas") for topic, configs in seen.items()}
    return {topic: int(entry.value) for topic, entry in entries.items() if entry is not None and entry.value}


def _acls_of(source: KafkaCluster) -> tuple[bool, Collection[AclBinding]]:
    """Returns whether the source has an authorizer, and its ACLs. Returns no ACLs if the right to read them is
    missing."""
    try:
        return True, source.acls.describe()
    except NotSupported:
        return False, ()
    except RightsMissing:
        return True, ()


def in_step_of_pass(report: Report, kinds: Collection[Kind], groups: GroupSummary) -> InStep:
    """Returns what is in step after a pass that compared `kinds` and wrote nothing. A disabled kind counts too if a
    change of it is held or failed."""
    kinds = [*kinds, *(kind for kind in Kind if kind not in kinds and report.trouble.stops(kind))]
    changed = Counter(change.kind for change in report.plan.changes if not change.kind.row.content)
    refused = Counter(refusal.kind for refusal in report.plan.refused)
    paused = {kind: f"paused; `lockstep resume {kind}` starts it again" for kind in report.paused if kind in kinds}
    unseen = {error.kind: error.reason for error in reversed(report.plan.errors) if error.kind in kinds}
    drift = {kind: changed[kind] + refused[kind] for kind in kinds}
    if groups.unread is not None:
        unseen[Kind.GROUP_OFFSET] = groups.unread
    faulted = unseen | paused | report.trouble.held | report.trouble.faulted
    remedies = report.trouble.remedies
    return InStep(drift, refused, faulted, {}, remedies, groups.verdicts, max(groups.bounds.values(), default=0))


FLAGGED_NAMES: tuple[tuple[Callable[[str], bool], str], ...] = (
    (
        lambda topic: topic.endswith(("-changelog", "-repartition")),
        "Kafka Streams: changelogs and repartition topics ({}) belong to this cluster's offsets, which differ on the "
        "target; let the applications restore from their input topics there",
    ),
    (
        lambda topic: topic.startswith("connect-") and topic.endswith(("configs", "offsets", "status", "statuses")),
        "Kafka Connect: its internal topics ({}) hold source offsets of this cluster; create the connectors again on "
        "the target",
    ),
    (
        lambda topic: topic == "_schemas",
        "a schema registry keeps its schemas in {}: only its own tool migrates them with the same ids",
    ),
)
"""Tests of a topic's name, each with the warning for the topics that match. `{}` stands for the topics."""

TIERED = "tiered storage: segments of {} that lie in the source's remote store are copied as records, or not at all"


def red_flags(topics: Collection[str], configs: Mapping[str, TopicConfigs]) -> Iterator[str]:
    """Returns warnings about the source's topics. Names do not show exactly-once across clusters, share groups and open
    producers."""
    for applies, text in FLAGGED_NAMES:
        if found := sorted(filter(applies, topics)):
            yield text.format(first_names(found, 3))
    tiered = {name: one.get("remote.storage.enable") for name, one in configs.items()}
    if remote := sorted(name for name, entry in tiered.items() if entry is not None and entry.value == "true"):
        yield TIERED.format(first_names(remote, 3))
