"""Lines that are sound by themselves, and contradict each other, or do for Lockstep what MM2 does as well.

A contradiction is a warning, for the file still has one meaning: MM2 takes it, and so do we.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from app.properties import keys
from app.properties.keys import (
    CONFIG_EXCLUDE,
    CONFIG_FILTER,
    COPIER,
    COPIER_KEEPS,
    EMIT_CHECKPOINTS,
    FAILOVER_LISTENER,
    FULL_COMPARISON_INTERVAL,
    GROUP_FILTER,
    GROUP_LISTENER,
    GROUPS,
    GROUPS_EXCLUDE,
    HEARTBEAT_TIMEOUT,
    INTERNAL_SEPARATOR,
    POLICY,
    REFRESH_TOPICS,
    REFRESH_TOPICS_INTERVAL,
    SEPARATOR,
    SYNC_BROKER_CONFIGS,
    SYNC_GROUP_OFFSETS,
    SYNC_GROUP_OFFSETS_INTERVAL,
    SYNC_TOPIC_ACLS,
    SYNC_TOPIC_CONFIGS,
    SYNC_TOPIC_CONFIGS_INTERVAL,
    TOPIC_FILTER,
    TOPIC_LISTENER,
    TOPICS,
    TOPICS_EXCLUDE,
    TRIGGER_INTERVAL,
    USE_DEFAULTS_FROM,
    Key,
)
from app.properties.mistakes import Findings, PropertyLine
from app.properties.scoped_keys import Properties
from sinks.flow_settings import Copier, FlowSettings
from sinks.model.changes import Kind
from streaming.flow import Flow
from streaming.mm2.replication_filters import DefaultConfigPropertyFilter, DefaultGroupFilter, DefaultTopicFilter
from streaming.mm2.replication_policy import endless_cycles

READ_BY: Mapping[Key[str], tuple[Key[Any], ...]] = {
    POLICY: (SEPARATOR, INTERNAL_SEPARATOR),
    TOPIC_FILTER: (TOPICS, TOPICS_EXCLUDE),
    GROUP_FILTER: (GROUPS, GROUPS_EXCLUDE),
    CONFIG_FILTER: (CONFIG_EXCLUDE, USE_DEFAULTS_FROM),
    TOPIC_LISTENER: (),
    GROUP_LISTENER: (),
    FAILOVER_LISTENER: (),
}
"""Which keys Kafka's own class reads, by the key that names the class."""

INTERVAL_OF: Mapping[Key[Any], Key[bool]] = {
    REFRESH_TOPICS_INTERVAL: REFRESH_TOPICS,
    SYNC_TOPIC_CONFIGS_INTERVAL: SYNC_TOPIC_CONFIGS,
    SYNC_GROUP_OFFSETS_INTERVAL: SYNC_GROUP_OFFSETS,
}
"""MM2's intervals, each with the key that turns on what it is about."""

BOTH_SYNC: Mapping[Key[bool], str] = {
    SYNC_TOPIC_CONFIGS: "topic configs",
    SYNC_TOPIC_ACLS: "topic ACLs",
    SYNC_GROUP_OFFSETS: "group offsets",
}
"""What MM2 may keep in step as well."""

LITERAL = re.compile(r"[a-zA-Z0-9_-]+")
"""A pattern that matches one topic and no other, dots left aside."""


def check_flow(properties: Properties, flow: Flow, findings: Findings) -> None:
    """What the lines for one flow say together."""
    internal = properties.entry(INTERNAL_SEPARATOR.name, flow)
    if internal is not None and properties.entry(SEPARATOR.name, flow) is None:
        findings.warn(internal, f"changes nothing without {SEPARATOR.name}: the separator is a dot either way")
    _check_interval(properties, flow, findings)
    if properties.get(COPIER, flow) == Copier.OFFSET_PRESERVING.value:
        return
    kept = properties.entry(COPIER_KEEPS.name, flow)
    if kept is not None:
        findings.warn(kept, f"changes nothing without {COPIER.name}={Copier.OFFSET_PRESERVING.value}")
    _check_checkpoints(properties, flow, findings)
    _check_both_sync(properties, flow, findings)
    for key, enabled in INTERVAL_OF.items():
        entry = properties.mm2_entry(key.name, flow)
        if entry is not None and properties.get(key, flow) is None and properties.get(enabled, flow):
            findings.warn(entry, f"holds for MM2 only: Lockstep polls at each change, or as lockstep.{key.name} says")


def _check_checkpoints(properties: Properties, flow: Flow, findings: Findings) -> None:
    entry = properties.mm2_entry(EMIT_CHECKPOINTS.name, flow)
    mm2_emits = entry is None or properties.mm2_get(EMIT_CHECKPOINTS, flow)
    if properties.mm2_get(SYNC_GROUP_OFFSETS, flow) and not mm2_emits:
        findings.warn(
            properties.mm2_entry(SYNC_GROUP_OFFSETS.name, flow),
            f"contradicts {EMIT_CHECKPOINTS.name}=false: MM2 syncs no offsets where it writes no checkpoints",
        )
    if properties.get(EMIT_CHECKPOINTS, flow) and mm2_emits:
        findings.warn(
            properties.entry(EMIT_CHECKPOINTS.name, flow),
            f"MM2 and Lockstep both write the checkpoints of {flow.name}: to leave it to Lockstep, write "
            f"{EMIT_CHECKPOINTS.name}=false as well",
        )


def _check_interval(properties: Properties, flow: Flow, findings: Findings) -> None:
    trigger, full = properties.get(TRIGGER_INTERVAL), properties.get(FULL_COMPARISON_INTERVAL, flow)
    if full < trigger:
        findings.warn(
            properties.entry(FULL_COMPARISON_INTERVAL.name, flow) or properties.entry(TRIGGER_INTERVAL.name),
            f"the full comparison ({full:g} s) comes no more often than the trigger ({trigger:g} s)",
        )
    timeout = properties.get(HEARTBEAT_TIMEOUT, flow)
    if timeout <= trigger:
        findings.warn(
            properties.entry(HEARTBEAT_TIMEOUT.name, flow) or properties.entry(TRIGGER_INTERVAL.name),
            f"a heartbeat counts as stale after {timeout:g} s, and they are read every {trigger:g} s only: write "
            f"{TRIGGER_INTERVAL.name}={timeout / 2:g} seconds, or less",
        )


def _check_both_sync(properties: Properties, flow: Flow, findings: Findings) -> None:
    for key, what in BOTH_SYNC.items():
        if properties.mm2_get(key, flow) and properties.get(key, flow):
            entry = properties.mm2_entry(key.name, flow)
            findings.warn(
                entry,
                f"MM2 and Lockstep both sync the {what} of {flow.name}: to leave it to Lockstep, write "
                f"{key.name}=false and lockstep.{key.name}=true",
                entry.key if entry else key.name,
            )


def check_plugins(properties: Properties, settings: FlowSettings, findings: Findings) -> None:
    """Warn of keys that only Kafka's own filter reads, if the file names another filter class."""
    rules: tuple[tuple[Key[str], object, type], ...] = (
        (TOPIC_FILTER, settings.topic_filter, DefaultTopicFilter),
        (GROUP_FILTER, settings.group_filter, DefaultGroupFilter),
        (CONFIG_FILTER, settings.config_filter, DefaultConfigPropertyFilter),
    )
    for chosen, built, default in rules:
        if isinstance(built, default):
            continue
        for key in READ_BY[chosen]:
            entry = properties.entry(key.name, settings.flow)
            if entry is not None:
                findings.warn(
                    entry,
                    f"is what Kafka's {default.__name__} reads; {chosen.name} names another class, which may ignore it",
                )


def check_copier(properties: Properties, settings: FlowSettings, findings: Findings) -> None:
    """Refuse a replication policy that renames topics beside a copier that preserves offsets and names."""
    if settings.keeps_offsets and settings.policy.format_remote_topic(settings.flow.source, "t") != "t":
        findings.mistake(
            properties.entry(COPIER.name, settings.flow),
            f"{settings.copier.value} keeps the names of topics, and the replication policy of {settings.flow.name} "
            f"changes them: write {POLICY.name}=IdentityReplicationPolicy as well",
            COPIER.name,
        )


def check_collisions(properties: Properties, flows: Iterable[FlowSettings], findings: Findings) -> None:
    """Refuse two flows into one target that both keep the source's names: both would write a topic that both sources
    have."""
    seen: dict[str, list[FlowSettings]] = {}
    for flow in flows:
        if flow.policy.format_remote_topic(flow.flow.source, "t") != "t":
            continue
        for other in seen.setdefault(flow.flow.target, []):
            if not _share_nothing(properties, (flow.flow, other.flow)):
                findings.warn(
                    properties.entry(POLICY.name, flow.flow),
                    f"{other.flow.name} and {flow.flow.name} both keep their source's names on {flow.flow.target}: a "
                    f"topic that both sources have would be written by both; let `{TOPICS.name}` of the two share none",
                )
        seen[flow.flow.target].append(flow)


def check_broker_configs(properties: Properties, flows: Iterable[FlowSettings], findings: Findings) -> None:
    """Refuse two flows into one target that both sync broker configs: each would overwrite the other's."""
    first: dict[str, Flow] = {}
    for flow in (one.flow for one in flows if one.enabled.get(Kind.BROKER_CONFIG)):
        other = first.setdefault(flow.target, flow)
        if other != flow:
            findings.mistake(
                properties.entry(SYNC_BROKER_CONFIGS.name, flow),
                f"holds for {other.name} and {flow.name}: the brokers of {flow.target} have one set of configs, and "
                "each flow would overwrite what the other wrote. Let one of them keep it: write "
                f"{other.name}.{SYNC_BROKER_CONFIGS.name}=true or {flow.name}.{SYNC_BROKER_CONFIGS.name}=true alone",
                SYNC_BROKER_CONFIGS.name,
            )


def check_cycles(properties: Properties, flows: Sequence[FlowSettings], findings: Findings) -> None:
    """Check flows that form a cycle under policies that cannot see it. Only topic filters keep topics from going
    round."""
    for whole in endless_cycles({flow.flow: flow.policy for flow in flows}):
        if not _share_nothing(properties, whole):
            names = ", ".join(flow.name for flow in whole)
            findings.warn(
                properties.entry(POLICY.name, whole[0]),
                f"{names} form a cycle, and the policy leaves no trace in a topic's name. A topic that all of them "
                f"replicate would go round for ever: let `{TOPICS.name}` of one of them leave out the others' topics",
            )


def _share_nothing(properties: Properties, flows: Sequence[Flow]) -> bool:
    """Whether lists of plain names show that no topic is in all of them. Patterns show nothing."""
    lists = [properties.get(TOPICS, flow) for flow in flows]
    plain = all(LITERAL.fullmatch(topic) for topics in lists for topic in topics)
    return plain and not set.intersection(*map(set, lists))


# What MM2 is told in the same file, and what that means beside Lockstep: lines that work, but hardly as meant.
#
# | MM2's line                            | why it is warned about                                                  |
# |---------------------------------------|-------------------------------------------------------------------------|
# | `forwarding.admin.class`              | Lockstep writes by itself, not through that class (KIP-787)             |
# | `transforms`                          | what they rename, change or drop is not where offset-syncs say it is    |
# | `emit.offset-syncs.enabled=false`     | without them no offset can be translated (KIP-1031)                     |
# | `emit.heartbeats.enabled=false`       | without them it is not seen whether MM2 runs                            |
# | `…interval.seconds`, where not read   | Lockstep polls at its own pace                                          |


FORWARDING_ADMIN = "forwarding.admin.class"
KAFKAS_ADMIN = "org.apache.kafka.connect.mirror.ForwardingAdmin"
TRANSFORMS = "transforms"
EMIT_OFFSET_SYNCS = "emit.offset-syncs.enabled"
EMIT_HEARTBEATS = "emit.heartbeats.enabled"

MM2_ONLY = "holds for MM2 only: Lockstep"
INTERVALS: Mapping[str, tuple[tuple[Kind, ...], str]] = {
    "sync.topic.acls.interval.seconds": (
        (Kind.ACL,),
        f"{MM2_ONLY} compares ACLs when the source's metadata log tells of a change, and where none does every 10 s",
    ),
    "refresh.groups.interval.seconds": (
        (Kind.GROUP_OFFSET,),
        f"{MM2_ONLY} lists groups every second, or as lockstep.{keys.SYNC_GROUP_OFFSETS_INTERVAL.name} says",
    ),
}
"""Intervals for which Lockstep has none of its own: the kinds that they are about, and when those are polled."""


def check_mm2_lines(properties: Properties, flow: Flow, findings: Findings) -> None:
    """Warn of lines for MM2 that mean something else, or nothing, for Lockstep's part of this flow."""
    for name, says in LINE_RULES.items():
        entry = properties.mm2_entry(name, flow)
        if entry is not None and entry.problem is None and (said := says(entry, properties, flow)) is not None:
            findings.warn(entry, said)
    for name, (kinds, said) in INTERVALS.items():
        entry = properties.mm2_entry(name, flow)
        if entry is not None and any(is_enabled(properties, flow, kind) for kind in kinds):
            findings.warn(entry, said)


def _forwarding_admin(entry: PropertyLine, properties: Properties, flow: Flow) -> str | None:
    if entry.value == KAFKAS_ADMIN:
        return None
    return (
        "holds for MM2 only: Lockstep creates and alters topics, configs and ACLs itself, past that class. Give its "
        "principal the rights that `lockstep rights` prints. Or switch off lockstep.refresh.topics.enabled, "
        "lockstep.sync.topic.configs.enabled and lockstep.sync.topic.acls.enabled"
    )


def _transforms(entry: PropertyLine, properties: Properties, flow: Flow) -> str | None:
    if not entry.value:
        return None
    return (
        "MM2 may rename topics, change records or drop them with these. Lockstep expects the replication policy's "
        "names of remote topics, and finds records on the target by timestamp, key and value. Where a "
        f"transformation changes those, write {keys.OFFSET_TRANSLATION.name}=conservative. Rename topics by a "
        "replication policy instead"
    )


def _no_offset_syncs(entry: PropertyLine, properties: Properties, flow: Flow) -> str | None:
    if not _is_false(entry):
        return None
    return (
        f"without offset-syncs Lockstep cannot translate offsets of {flow.name}, neither for groups that it syncs nor "
        f"for `lockstep offsets`; write {EMIT_OFFSET_SYNCS}=true where consumers are to fail over"
    )


def _no_heartbeats(entry: PropertyLine, properties: Properties, flow: Flow) -> str | None:
    """Whether the flow gets no heartbeats. MM2 emits heartbeats of a->b on b, and copies the heartbeats that any flow
    into a emits there."""
    into_source = [Flow(alias, flow.source) for alias in properties.aliases if alias != flow.source]
    copied = properties.mm2_get(keys.HEARTBEATS_REPLICATION, flow) and any(
        (other := properties.mm2_entry(EMIT_HEARTBEATS, one)) is None or not _is_false(other) for one in into_source
    )
    if not _is_false(entry) or copied:
        return None
    return (
        f"no heartbeat of MM2's reaches {flow.target}: the state of {flow.name} will be NO_HEARTBEAT, whether MM2 runs "
        f"or not; write {EMIT_HEARTBEATS}=true for {flow.name}, or for a flow into {flow.source}"
    )


def _is_false(entry: PropertyLine) -> bool:
    return entry.value.lower() == "false"


LINE_RULES: Mapping[str, Callable[[PropertyLine, Properties, Flow], str | None]] = {
    FORWARDING_ADMIN: _forwarding_admin,
    TRANSFORMS: _transforms,
    EMIT_OFFSET_SYNCS: _no_offset_syncs,
    EMIT_HEARTBEATS: _no_heartbeats,
}
"""By the key: what is to be said of a line; None where nothing is."""


def is_enabled(properties: Properties, flow: Flow, kind: Kind) -> bool:
    """Whether the file enables a kind for a flow."""
    return any(properties.get(keys.TABLE[switch.name], flow) for switch in kind.row.enabled_by)
