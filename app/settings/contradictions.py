"""Lines that are sound by themselves, and contradict each other, or do for Lockstep what MM2 does as well.

A contradiction is a warning, for the file still has one meaning: MM2 takes it, and so do we.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from app.properties.keys import (
    CONFIG_EXCLUDE,
    CONFIG_FILTER,
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
from app.properties.mistakes import Findings
from app.properties.scoped_keys import Properties
from sinks.flow_settings import FlowSettings
from sinks.model.changes import Kind
from streaming.flow import Flow
from streaming.mm2.replication_cycles import endless_cycles
from streaming.mm2.replication_filters import DefaultConfigPropertyFilter, DefaultGroupFilter, DefaultTopicFilter

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
    _check_checkpoints(properties, flow, findings)
    _check_interval(properties, flow, findings)
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
    """Keys that only Kafka's own filter reads, beside a filter of the user's that is none."""
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


def check_collisions(properties: Properties, flows: Iterable[FlowSettings], findings: Findings) -> None:
    """Two flows into one target that both keep the source's names: a topic that both have is written by both."""
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
    """Two flows into one target that both keep its brokers' configs: each would overwrite what the other wrote."""
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
    """Flows that form a cycle under policies that cannot see it: only topic filters keep topics from going round."""
    for whole in endless_cycles({flow.flow: flow.policy for flow in flows}):
        if not _share_nothing(properties, whole):
            names = ", ".join(flow.name for flow in whole)
            findings.warn(
                properties.entry(POLICY.name, whole[0]),
                f"{names} form a cycle, and the policy leaves no trace in a topic's name: a topic that all of them "
                f"replicate would go round for ever; let `{TOPICS.name}` of one of them leave out the others' topics",
            )


def _share_nothing(properties: Properties, flows: Sequence[Flow]) -> bool:
    """Whether lists of plain names show that no topic is in all of them; patterns show nothing."""
    lists = [properties.get(TOPICS, flow) for flow in flows]
    plain = all(LITERAL.fullmatch(topic) for topics in lists for topic in topics)
    return plain and not set.intersection(*map(set, lists))
