"""Checks lines that are valid alone but contradict each other, or repeat what MM2 does.

A contradiction is a warning, because the file still has one meaning: MM2 accepts it, and so does Lockstep.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

from app.plugins import PLUGIN_KINDS
from app.properties import keys
from app.properties.keys import Key
from app.properties.mistakes import PropertyLine
from app.properties.scoped_keys import Properties
from sinks.flow_settings import Copier, FlowSettings
from sinks.model.changes import Kind
from streaming.flow import Flow
from streaming.mm2.replication_filters import ConfigPropertyFilter, GroupFilter, TopicFilter
from streaming.mm2.replication_policy import endless_cycles

INTERVAL_OF: Mapping[Key[Any], Key[bool]] = {
    keys.REFRESH_TOPICS_INTERVAL: keys.REFRESH_TOPICS,
    keys.SYNC_TOPIC_CONFIGS_INTERVAL: keys.SYNC_TOPIC_CONFIGS,
    keys.SYNC_GROUP_OFFSETS_INTERVAL: keys.SYNC_GROUP_OFFSETS,
}
"""MM2's intervals, each with the key that enables its sync."""

BOTH_SYNC: Mapping[Key[bool], str] = {
    keys.SYNC_TOPIC_CONFIGS: "topic configs",
    keys.SYNC_TOPIC_ACLS: "topic ACLs",
    keys.SYNC_GROUP_OFFSETS: "group offsets",
}
"""What MM2 may keep in step too, by the key that enables it."""

LITERAL = re.compile(r"[a-zA-Z0-9_-]+")
"""Matches a pattern that selects a single topic. Dots do not count."""


def check_flow(properties: Properties, flow: Flow) -> None:
    """Checks the lines for one flow together."""
    internal = properties.entry(keys.INTERNAL_SEPARATOR.name, flow)
    if internal is not None and properties.entry(keys.SEPARATOR.name, flow) is None:
        properties.warn(internal, f"changes nothing without {keys.SEPARATOR.name}: the separator is a dot either way")
    _check_interval(properties, flow)
    if properties.get(keys.COPIER, flow) == Copier.OFFSET_PRESERVING.value:
        return
    kept = properties.entry(keys.COPIER_KEEPS.name, flow)
    if kept is not None:
        properties.warn(kept, f"changes nothing without {keys.COPIER.name}={Copier.OFFSET_PRESERVING.value}")
    _check_checkpoints(properties, flow)
    _check_both_sync(properties, flow)
    for key, enabled in INTERVAL_OF.items():
        entry = properties.mm2_entry(key.name, flow)
        if entry is not None and properties.get(key, flow) is None and properties.get(enabled, flow):
            properties.warn(
                entry, f"holds for MM2 only: Lockstep polls at each change, or at the interval lockstep.{key.name}"
            )


def _check_checkpoints(properties: Properties, flow: Flow) -> None:
    entry = properties.mm2_entry(keys.EMIT_CHECKPOINTS.name, flow)
    mm2_emits = entry is None or properties.mm2_get(keys.EMIT_CHECKPOINTS, flow)
    if properties.mm2_get(keys.SYNC_GROUP_OFFSETS, flow) and not mm2_emits:
        properties.warn(
            properties.mm2_entry(keys.SYNC_GROUP_OFFSETS.name, flow),
            f"contradicts {keys.EMIT_CHECKPOINTS.name}=false: MM2 syncs no offsets where it writes no checkpoints",
        )
    if properties.get(keys.EMIT_CHECKPOINTS, flow) and mm2_emits:
        properties.warn(
            properties.entry(keys.EMIT_CHECKPOINTS.name, flow),
            f"MM2 and Lockstep both write the checkpoints of {flow.name}: to leave it to Lockstep, write "
            f"{keys.EMIT_CHECKPOINTS.name}=false as well",
        )


def _check_interval(properties: Properties, flow: Flow) -> None:
    trigger, full = properties.get(keys.TRIGGER_INTERVAL), properties.get(keys.FULL_COMPARISON_INTERVAL, flow)
    if full < trigger:
        properties.warn(
            properties.entry(keys.FULL_COMPARISON_INTERVAL.name, flow) or properties.entry(keys.TRIGGER_INTERVAL.name),
            f"the full comparison ({full:g} s) comes no more often than the trigger ({trigger:g} s)",
        )
    timeout = properties.get(keys.HEARTBEAT_TIMEOUT, flow)
    if timeout <= trigger:
        properties.warn(
            properties.entry(keys.HEARTBEAT_TIMEOUT.name, flow) or properties.entry(keys.TRIGGER_INTERVAL.name),
            f"a heartbeat counts as stale after {timeout:g} s, and they are read every {trigger:g} s only: write "
            f"{keys.TRIGGER_INTERVAL.name}={timeout / 2:g} seconds, or less",
        )


def _check_both_sync(properties: Properties, flow: Flow) -> None:
    for key, what in BOTH_SYNC.items():
        if properties.mm2_get(key, flow) and properties.get(key, flow):
            entry = properties.mm2_entry(key.name, flow)
            properties.warn(
                entry,
                f"MM2 and Lockstep both sync the {what} of {flow.name}: to leave it to Lockstep, write "
                f"{key.name}=false and lockstep.{key.name}=true",
                entry.key if entry else key.name,
            )


def check_plugins(properties: Properties, settings: FlowSettings) -> None:
    """Warns of keys that only Kafka's own filter reads, if the file names another filter class."""
    built = {
        TopicFilter: settings.topic_filter,
        GroupFilter: settings.group_filter,
        ConfigPropertyFilter: settings.config_filter,
    }
    for protocol, plugin in built.items():
        kind = PLUGIN_KINDS[protocol]
        if isinstance(plugin, kind.shipped):
            continue
        for key in kind.reads:
            entry = properties.entry(key.name, settings.flow)
            if entry is not None:
                properties.warn(
                    entry,
                    f"is what Kafka's {kind.shipped[0].__name__} reads; {kind.key.name} names another class, which may "
                    "ignore it",
                )


def check_copier(properties: Properties, settings: FlowSettings) -> None:
    """Notes a mistake for a replication policy that renames topics beside a copier that preserves offsets and names."""
    if settings.keeps_offsets and settings.policy.format_remote_topic(settings.flow.source, "t") != "t":
        properties.mistake(
            properties.entry(keys.COPIER.name, settings.flow),
            f"{settings.copier.value} keeps the names of topics, and the replication policy of {settings.flow.name} "
            f"changes them: write {keys.POLICY.name}=IdentityReplicationPolicy as well",
            keys.COPIER.name,
        )


def check_collisions(properties: Properties, flows: Iterable[FlowSettings]) -> None:
    """Notes a mistake for two flows into one target that both keep the source's names. Both would write a topic that
    both sources have."""
    keeping = [one.flow for one in flows if one.policy.format_remote_topic(one.flow.source, "t") == "t"]
    for other, flow in combinations(keeping, 2):
        if flow.target == other.target and not _share_nothing(properties, (flow, other)):
            properties.warn(
                properties.entry(keys.POLICY.name, flow),
                f"{other.name} and {flow.name} both keep their source's names on {flow.target}: a topic that both "
                "sources have would be written by both; let `topics` of the two share none",
            )


def check_broker_configs(properties: Properties, flows: Iterable[FlowSettings]) -> None:
    """Notes a mistake for two flows into one target that both sync broker configs. Each would overwrite the other's."""
    first: dict[str, Flow] = {}
    key = keys.SYNC_BROKER_CONFIGS.name
    for flow in (one.flow for one in flows if one.enabled.get(Kind.BROKER_CONFIG)):
        other = first.setdefault(flow.target, flow)
        if other != flow:
            properties.mistake(
                properties.entry(key, flow),
                f"holds for {other.name} and {flow.name}: the brokers of {flow.target} have one set of configs, and "
                "each flow would overwrite what the other wrote. Let one of them keep it: write "
                f"{other.name}.{key}=true or {flow.name}.{key}=true alone",
                key,
            )


def check_cycles(properties: Properties, flows: Sequence[FlowSettings]) -> None:
    """Checks flows that form a cycle under policies that cannot detect it. Then only topic filters stop a topic from
    going round for ever."""
    for whole in endless_cycles({flow.flow: flow.policy for flow in flows}):
        if not _share_nothing(properties, whole):
            names = ", ".join(flow.name for flow in whole)
            properties.warn(
                properties.entry(keys.POLICY.name, whole[0]),
                f"{names} form a cycle, and the policy leaves no trace in a topic's name. A topic that all of them "
                "replicate would go round for ever: let `topics` of one of them leave out the others' topics",
            )


def _share_nothing(properties: Properties, flows: Sequence[Flow]) -> bool:
    """Returns whether lists of plain names show that no topic is in all of them. With patterns returns False."""
    lists = [properties.get(keys.TOPICS, flow) for flow in flows]
    plain = all(LITERAL.fullmatch(topic) for topics in lists for topic in topics)
    return plain and not set.intersection(*map(set, lists))


# What MM2 is told in the same file, and what that means beside Lockstep: lines that work, but hardly as meant.
# KIP-787 has the forwarding admin, KIP-1031 offset-syncs that are off.


TRANSFORMS = "transforms"
KAFKAS_ADMIN = "org.apache.kafka.connect.mirror.ForwardingAdmin"
EMIT_OFFSET_SYNCS = "emit.offset-syncs.enabled"
EMIT_HEARTBEATS = "emit.heartbeats.enabled"

MM2_ONLY = "holds for MM2 only: Lockstep"
INTERVALS: Mapping[str, tuple[tuple[Kind, ...], str]] = {
    "sync.topic.acls.interval.seconds": (
        (Kind.ACL,),
        f"{MM2_ONLY} compares ACLs when the source's metadata log reports a change, or without such reports every 10 s",
    ),
    "refresh.groups.interval.seconds": (
        (Kind.GROUP_OFFSET,),
        f"{MM2_ONLY} lists groups every second, or at the interval lockstep.{keys.SYNC_GROUP_OFFSETS_INTERVAL.name}",
    ),
}
"""MM2's intervals without a counterpart in Lockstep: the kinds that they concern, and when Lockstep polls those."""


def check_mm2_lines(properties: Properties, flow: Flow) -> None:
    """Warns of MM2's lines that have another meaning, or none, for Lockstep's part of this flow."""
    for name, (applies, text) in LINE_RULES.items():
        entry = properties.mm2_entry(name, flow)
        if entry is not None and entry.problem is None and applies(entry, properties, flow):
            properties.warn(entry, text.format(flow=flow))
    for name, (kinds, said) in INTERVALS.items():
        entry = properties.mm2_entry(name, flow)
        if entry is not None and any(is_enabled(properties, flow, kind) for kind in kinds):
            properties.warn(entry, said)


def _without_heartbeats(entry: PropertyLine, properties: Properties, flow: Flow) -> bool:
    """Returns whether the flow a->b gets no heartbeats. MM2 emits its heartbeats on b, and copies those that flows into
    a emit on a."""
    into_source = [Flow(alias, flow.source) for alias in properties.aliases if alias != flow.source]
    copied = properties.mm2_get(keys.HEARTBEATS_REPLICATION, flow) and any(
        (other := properties.mm2_entry(EMIT_HEARTBEATS, one)) is None or not _is_false(other) for one in into_source
    )
    return _is_false(entry) and not copied


def _is_false(entry: PropertyLine) -> bool:
    return entry.value.lower() == "false"


LINE_RULES: Mapping[str, tuple[Callable[[PropertyLine, Properties, Flow], bool], str]] = {
    "forwarding.admin.class": (
        lambda entry, properties, flow: entry.value != KAFKAS_ADMIN,
        "holds for MM2 only: Lockstep creates and alters topics, configs and ACLs itself, past that class. Give its "
        "principal the rights that `lockstep rights` prints. Or switch off lockstep.refresh.topics.enabled, "
        "lockstep.sync.topic.configs.enabled and lockstep.sync.topic.acls.enabled",
    ),
    TRANSFORMS: (
        lambda entry, properties, flow: bool(entry.value),
        "MM2 may rename topics, change records or drop them with these. Lockstep expects the replication policy's "
        "names of remote topics, and finds records on the target by timestamp, key and value. Where a "
        f"transformation changes those, write {keys.OFFSET_TRANSLATION.name}=conservative. Rename topics by a "
        "replication policy instead",
    ),
    EMIT_OFFSET_SYNCS: (
        lambda entry, properties, flow: _is_false(entry),
        "without offset-syncs Lockstep cannot translate offsets of {flow.name}, neither for groups that it syncs nor "
        f"for `lockstep offsets`; write {EMIT_OFFSET_SYNCS}=true where consumers are to fail over",
    ),
    EMIT_HEARTBEATS: (
        _without_heartbeats,
        "no heartbeat of MM2's reaches {flow.target}: the state of {flow.name} will be NO_HEARTBEAT, whether MM2 runs "
        f"or not; write {EMIT_HEARTBEATS}=true for {{flow.name}}, or for a flow into {{flow.source}}",
    ),
}
"""For a key: a test that returns True if its line deserves a warning, and the text."""


def is_enabled(properties: Properties, flow: Flow, kind: Kind) -> bool:
    return any(properties.get(keys.TABLE[switch.name], flow) for switch in kind.row.enabled_by)
