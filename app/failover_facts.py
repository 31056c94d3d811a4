"""Looks at both clusters of a flow for `preflight`: everything that the checks need. Writes nothing."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import closing

from app.cli.rights_command import check_rights
from app.passes import SinglePass, newest_heartbeat, single_pass
from app.rights.failover_rights import failover_rights
from app.rights.judged import Verdict as RightVerdict
from app.settings import Settings
from app.wiring import FlowClusters
from sinks.engine.model import Kind
from sinks.failover.arrival import Arrival, arrivals, pairs_of, unlisted
from sinks.failover.checks import ReadinessFacts
from sinks.failover.fence_rules import fenced_topics
from sinks.failover.losses import losses_of, untold
from sinks.failover.record import FailoverRecord
from sinks.failover.red_flags import red_flags
from sinks.faults import NotSupported, RightsMissing
from sinks.flow_settings import FlowSettings
from sinks.kafka.librdkafka.kafka_cluster import KafkaCluster
from sinks.kinds.offsets.direction import count_verdicts, worst_bounds
from sinks.kinds.topics.listing import Listed
from streaming.mm2.records import TopicPartition


def look_for_readiness(settings: Settings, flow: FlowSettings) -> tuple[ReadinessFacts, FailoverRecord]:
    """What is seen now, and how far a failover is. Raises LockstepError for a flow that cannot be looked at."""
    with single_pass(settings, flow, obeys_failover=False) as one:
        compared = one.compare()
        record = compared.context.ledger.failover()
        report = one.reconcile.look_only(compared)
        listed = compared.context.listed
        topics = fenced_topics(flow, listed.desired.remote, tuple(settings.clusters))
        pairs = pairs_of(listed.desired.remote, listed.source, topics)
        seen = _arrivals(flow, one.clusters, pairs) | unlisted(listed.source, topics)
        newest = newest_heartbeat(flow, one.clusters)
        remote = [listed.desired.remote[topic] for topic in topics]
        kinds = [kind for kind in Kind if flow.enabled.get(kind, False)]
        changed = Counter(change.kind for change in report.plan.changes if not change.kind.row.content)
        refused = Counter(refusal.kind for refusal in report.plan.refused)
        facts = ReadinessFacts(
            rules=flow.failover,
            heartbeat_age=max(0.0, time.time() - newest.timestamp_ms / 1000) if newest else None,
            heartbeat_timeout=flow.pace.heartbeat_timeout,
            losses=losses_of(seen.values(), time.time() * 1000),
            untold=untold(seen.values()),
            drift={kind: changed[kind] + refused[kind] for kind in kinds},
            refused=refused,
            faulted=report.trouble.faulted,
            verdicts=count_verdicts(one.group_offsets),
            read_twice=max(worst_bounds(one.group_offsets).values(), default=0),
            partitions=_differing(listed, topics),
            remote=remote,
            replicas=one.clusters.target.brokers.replicas(),
            wanted_in_sync=_wanted_in_sync(one.clusters.target, remote),
            open_transactions=_open_transactions(one, pairs),
            missing_rights=_missing_rights(settings, flow, one.clusters),
            authorizer=_has_authorizer(one.clusters.source),
            flags=list(red_flags(topics, one.clusters.source.describe_topic_configs(topics).items)),
        )
    return facts, record


def _arrivals(
    flow: FlowSettings, clusters: FlowClusters, pairs: dict[TopicPartition, TopicPartition]
) -> dict[TopicPartition, Arrival]:
    with (
        closing(clusters.source.records(flow.isolation)) as source,
        closing(clusters.target.records("read_uncommitted")) as target,
    ):
        return arrivals(source, target, pairs)


def _differing(listed: Listed, topics: list[str]) -> dict[str, tuple[int, int]]:
    """Remote topics whose partition count is another one, on the source and on the target."""
    names = {listed.desired.remote[topic]: topic for topic in topics}
    counts = {name: (listed.source[topic], listed.target.get(name, 0)) for name, topic in names.items()}
    return {name: both for name, both in counts.items() if both[0] != both[1]}


def _wanted_in_sync(target: KafkaCluster, remote: list[str]) -> dict[str, int]:
    seen = target.describe_topic_configs(remote).items
    entries = {topic: configs.get("min.insync.replicas") for topic, configs in seen.items()}
    return {topic: int(entry.value) for topic, entry in entries.items() if entry is not None and entry.value}


def _open_transactions(one: SinglePass, pairs: dict[TopicPartition, TopicPartition]) -> dict[str, list[TopicPartition]]:
    found = {}
    for cluster, partitions in ((one.clusters.source, list(pairs)), (one.clusters.target, list(pairs.values()))):
        # The ends first: what is written meanwhile moves the last stable offset as well.
        ends = cluster.groups.ends(partitions).items
        stable = cluster.brokers.stable_ends(partitions).items
        found[cluster.alias] = [where for where, end in ends.items() if stable.get(where, end.end) < end.end]
    return found


def _missing_rights(settings: Settings, flow: FlowSettings, clusters: FlowClusters) -> list[str]:
    findings = check_rights(settings, flow, clusters, failover_rights(flow))
    return [
        f"{found.right.operation} on {found.right.resource_name} of {found.right.cluster}"
        for found in findings
        if found.verdict is RightVerdict.MISSING and not found.right.optional
    ]


def _has_authorizer(source: KafkaCluster) -> bool:
    try:
        source.acls.describe()
    except NotSupported:
        return False
    except RightsMissing:
        return True
    return True
