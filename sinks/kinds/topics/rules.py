"""Topics: which the target lacks, and which it has too many. Pure.

A remote topic has at least as many partitions as its upstream topic. Partitions never shrink. Lockstep deletes a topic
only if `lockstep.sync.topic.deletes.enabled` is set and `deletions` lists it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sinks.every_kind.listing import DesiredTopics, Listed
from sinks.kafka.ports.cluster import TopicSpec
from sinks.model.changes import Change, Key, Kind, Op


def to_create(listed: Listed, awaited: Collection[Key]) -> set[str]:
    """Returns the remote topics that Lockstep has to create now. Leaves out topics that MM2 creates or that the target
    will show soon."""
    absent = listed.desired.copies.difference(listed.target, listed.desired.created_by_mm2.values())
    return {name for name in absent if (name,) not in awaited}


def upstream_of(remote: Mapping[str, str], names: Collection[str]) -> set[str]:
    """Returns the upstream topics of these remote names. `remote`: remote name by upstream topic."""
    return {topic for topic, name in remote.items() if name in names} if names else set()


def plan_topics(
    desired: DesiredTopics,
    target: Mapping[str, int],
    configs: Mapping[str, tuple[tuple[str, str], ...]],
    factor: int,
    deletions: Mapping[str, str],
) -> list[Change]:
    """Returns creations, growth, and deletions of topics that Lockstep created.

    `configs`: overrides of missing topics by remote name; a topic without an entry is left for later. `deletions`: ids
    of the topics to delete, by remote name. A target topic with 0 partitions was listed with an error: how many it has
    is unknown.
    """
    changes = []
    for name, partitions in desired.partitions.items():
        existing = target.get(name)
        if existing is None and name in configs:
            changes.append(Change(Kind.TOPIC, (name,), None, TopicSpec(partitions, factor, configs[name])))
        elif existing and existing < partitions:
            changes.append(Change(Kind.TOPIC, (name,), TopicSpec(existing), TopicSpec(partitions)))
    for name, found in deletions.items():
        if existing := target.get(name):
            changes.append(Change(Kind.TOPIC, (name,), TopicSpec(existing, id=found), None))
    return changes


def is_still_wanted(remote: Collection[str], existing: Collection[str], change: Change) -> bool:
    """Whether a refused change is tried again. `remote`: names of replicated topics. `existing`: topics on the target.

    A refused deletion stays while its topic exists.
    """
    name = change.key[0]
    return name in remote or (change.kind is Kind.TOPIC and change.op is Op.DELETE and name in existing)
