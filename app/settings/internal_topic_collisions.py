"""Topics of one flow that concern another: MM2's, which no two may share, and Lockstep's own on one target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from app.properties.keys import CLUSTERS, OFFSET_SYNCS_LOCATION, POLICY
from app.properties.mistakes import Findings
from app.properties.scoped_keys import Properties
from app.settings.cluster_sections import addresses
from app.settings.job_settings import ClusterSettings
from sinks.flow_settings import FlowSettings
from streaming.mm2.internal_topics import InternalTopics

HEARTBEATS = "heartbeats"
"""Says itself which flow a record is of; all others say it by their names alone."""


def topics_of(flow: FlowSettings) -> dict[str, tuple[str, str]]:
    """By what is in it: the alias of the cluster that an internal topic is on, and its name."""
    internal: InternalTopics = flow.internal
    source, target = internal.offset_syncs_cluster, flow.flow.target
    return {
        "offset-syncs": (source, internal.offset_syncs),
        "checkpoints": (target, internal.checkpoints),
        "ledger": (target, internal.ledger),
        "audit": (target, internal.audit),
        "topics": (target, internal.topics),
        "groups": (target, internal.groups),
        HEARTBEATS: (target, internal.heartbeats),
    }


def check_internal_topics(
    properties: Properties, clusters: Mapping[str, ClusterSettings], flows: Iterable[FlowSettings], findings: Findings
) -> None:
    """A mistake for each internal topic that two flows, or two roles of one, would share on one cluster."""
    seen: list[tuple[FlowSettings, str, str, str]] = []
    for flow in flows:
        for role, (alias, name) in topics_of(flow).items():
            for other, other_role, other_alias, other_name in seen:
                both_heartbeats = role == other_role == HEARTBEATS
                if name == other_name and not both_heartbeats and _is_same(clusters, alias, other_alias):
                    _report(properties, (other, other_role), (flow, role), f"{name} on {alias}", findings)
            seen.append((flow, role, alias, name))


def _is_same(clusters: Mapping[str, ClusterSettings], one: str, other: str) -> bool:
    return one == other or not addresses(clusters[one]).isdisjoint(addresses(clusters[other]))


def _report(
    properties: Properties,
    one: tuple[FlowSettings, str],
    other: tuple[FlowSettings, str],
    topic: str,
    findings: Findings,
) -> None:
    (first, role), (second, other_role) = one, other
    flow, syncs = second.flow, "offset-syncs" in (role, other_role)
    entry = properties.entry(POLICY.name, flow) or properties.entry(CLUSTERS.name)
    moved = f", or write {OFFSET_SYNCS_LOCATION.name} for one of them" if syncs else ""
    findings.mistake(
        entry,
        f"{topic} would hold the {role} of {first.flow.name} and the {other_role} of {flow.name}, and each would take "
        f"the other's for its own: choose a {POLICY.name} that makes other names{moved}, or leave one flow out",
        POLICY.name,
    )


def knowing(
    flow: FlowSettings, flows: Iterable[FlowSettings], clusters: Mapping[str, ClusterSettings]
) -> InternalTopics:
    """The flow's internal topics, with those that the file's other flows have on the same target.

    The policies of these flows choose the names.
    """
    there = [
        (one, name)
        for one in flows
        if one.flow != flow.flow
        for alias, name in topics_of(one).values()
        if _is_same(clusters, alias, flow.flow.target)
    ]
    lockstep = {name for one, name in there if name in one.internal.ours}
    mm2 = {name for one, name in there} - lockstep
    return replace(flow.internal, of_other_flows=tuple(sorted(lockstep)), mm2s_of_other_flows=tuple(sorted(mm2)))
