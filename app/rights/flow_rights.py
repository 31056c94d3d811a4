"""The rights that a flow needs as it is set: the table, in the names of its clusters and topics."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from app.rights.rights_table import RIGHT_RULES, FlowSide, On, RightRule
from sinks.failover.drill import DRILL_PREFIX
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.acl_binding import CLUSTER_NAME
from sinks.kinds.offsets.commit_ends import COMMITS_TOPIC

PROBED_NAME = "lockstep-rights-probe"
"""Stands for any topic and group; none of this name is ever made."""

EVERY = "*"


@dataclass(frozen=True, order=True, slots=True)
class Right:
    """One operation that the job needs on `cluster` (an alias). The words are Kafka's own, in upper case."""

    cluster: str
    resource_type: str
    resource_name: str
    pattern_type: str
    operation: str
    why: str
    optional: bool = False


def rights_of_flow(settings: FlowSettings, rules: Iterable[RightRule] = RIGHT_RULES) -> list[Right]:
    """What a flow needs of these rules as it is set, sorted. What has two reasons is there once, with the first."""
    found: dict[tuple[str, ...], Right] = {}
    for rule in (rule for rule in rules if rule.when(settings)):
        if rule.on is On.DRILL_COPY and not drill_copy_prefix(settings):
            # Every topic is far more than a drill may delete.
            continue
        for operation in rule.operations:
            key = (_alias(settings, rule.side), *resource(settings, rule.on), operation)
            known = found.get(key)
            if known is None or (known.optional and not rule.optional):
                found[key] = Right(*key, rule.why, rule.optional)
    return sorted(found.values())


def _alias(settings: FlowSettings, side: FlowSide) -> str:
    if side is FlowSide.OFFSET_SYNCS:
        return settings.internal.offset_syncs_cluster
    return settings.flow.source if side is FlowSide.SOURCE else settings.flow.target


def resource(settings: FlowSettings, on: On) -> tuple[str, str, str]:
    """Kafka's resource type, name and pattern type."""
    internal = settings.internal
    if on is On.CLUSTER:
        return "CLUSTER", CLUSTER_NAME, "LITERAL"
    if on is On.GROUPS:
        return "GROUP", EVERY, "LITERAL"
    if on is On.TRANSACTIONAL_IDS:
        return "TRANSACTIONAL_ID", EVERY, "LITERAL"
    if on is On.UPSTREAM:
        return "TOPIC", EVERY, "LITERAL"
    if on is On.DRILL_GROUPS:
        return "GROUP", DRILL_PREFIX, "PREFIXED"
    if on is On.DRILL_TOPIC:
        return "TOPIC", DRILL_PREFIX, "PREFIXED"
    if on is On.DRILL_COPY:
        return "TOPIC", drill_copy_prefix(settings), "PREFIXED"
    if on is On.REMOTE:
        prefix = remote_prefix(settings)
        return ("TOPIC", prefix, "PREFIXED") if prefix else ("TOPIC", EVERY, "LITERAL")
    names = {
        On.OFFSET_SYNCS: internal.offset_syncs,
        On.CHECKPOINTS: internal.checkpoints,
        On.HEARTBEATS: internal.heartbeats,
        On.REPLICATED_HEARTBEATS: settings.policy.format_remote_topic(settings.flow.source, internal.heartbeats),
        On.LEDGER: internal.ledger,
        On.AUDIT: internal.audit,
        On.TOPICS_LOG: internal.topics,
        On.GROUPS_LOG: internal.groups,
        On.COMMITS: COMMITS_TOPIC,
    }
    return "TOPIC", names[on], "LITERAL"


def remote_prefix(settings: FlowSettings, upstream: str = "") -> str:
    """What the remote names of topics that begin with `upstream` begin with; empty where the policy puts something
    behind a topic's name."""
    remote = settings.policy.format_remote_topic(settings.flow.source, upstream + PROBED_NAME)
    return remote.removesuffix(PROBED_NAME) if remote.endswith(PROBED_NAME) else ""


def drill_copy_prefix(settings: FlowSettings) -> str:
    """What the copies of the topics that drills name by themselves begin with; empty where no prefix has them alone."""
    return remote_prefix(settings, DRILL_PREFIX)
