"""Warnings about probable mistakes in the properties file: names that match nothing, and copies that it no longer
names. Pure.

A typo in `topics` stops the sync of a topic, and nothing shows it, because a topic that is not named has no drift.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from sinks.every_kind.listing import Listed
from sinks.flow_settings import FlowSettings
from sinks.kinds.desired_topics import is_replicated
from streaming.message_words import first_names, nearest, number_of
from streaming.mm2.replication_filters import DefaultGroupFilter, DefaultTopicFilter
from streaming.mm2.replication_policy import is_written_by_mm2_alone


def unmatched(key: str, named: Sequence[str], there: Collection[str], alias: str) -> list[str]:
    """Returns the plain names in the list of `key` that match nothing that exists."""
    found = []
    for name in named:
        if name in there or any(re.fullmatch(name, other) for other in there):
            continue
        near = nearest(name, there)
        hint = f"; nearest: {near}" if near else ""
        found.append(f"{key} names {name}, and {alias} has no such {key.removesuffix('s')}{hint}")
    return found


def unmatched_topics(settings: FlowSettings, source: Collection[str]) -> list[str]:
    """Returns names in `topics` that no topic of the source has."""
    chosen = settings.topic_filter
    if not isinstance(chosen, DefaultTopicFilter) or not source:
        return []
    return unmatched("topics", chosen.plain_names, source, settings.flow.source)


def unmatched_groups(settings: FlowSettings, source: Callable[[], Collection[str]]) -> list[str]:
    """Returns names in `groups` that no group of the source has. Lists the groups only if the key names any."""
    chosen = settings.group_filter
    if not (isinstance(chosen, DefaultGroupFilter) and chosen.plain_names):
        return []
    return unmatched("groups", chosen.plain_names, source(), settings.flow.source)


def forgotten_copies(settings: FlowSettings, listed: Listed) -> list[str]:
    """Returns the topics of the source that have a copy on the target and that the file neither names nor excludes,
    sorted. Empty for an operator's own filter class."""
    flow, policy, chosen = settings.flow, settings.policy, settings.topic_filter
    if not isinstance(chosen, DefaultTopicFilter):
        return []
    return sorted(
        topic
        for topic in listed.source.keys() - listed.desired.remote.keys()
        if policy.format_remote_topic(flow.source, topic) in listed.target
        and is_written_by_mm2_alone(policy, flow.source, topic)
        and not policy.is_mm2_internal_topic(topic)
        # MM2 never copies back what came from the target.
        and policy.topic_source(topic) != flow.target
        and not is_replicated(settings, topic)
        and not chosen.is_excluded(topic)
    )


def left_behind(settings: FlowSettings, listed: Listed) -> list[str]:
    """Returns warnings about copies on the target whose topics the source has, and the file neither names nor
    excludes."""
    flow, found = settings.flow, forgotten_copies(settings, listed)
    if not found:
        return []
    left = f"{number_of(len(found), 'topic', 'topics')} of {flow.source} with a copy on {flow.target}"
    return [f"the properties file leaves out {left}, so Lockstep does not sync them: {first_names(found, 3)}"]


AWAITS_MM2 = (
    "{} has no copy of {}. MM2 of Kafka 4 creates copies of topics whose names end in .internal or -internal within "
    "refresh.topics.interval.seconds; MM2 of Kafka 3 never does, and then `topics.exclude` should name them"
)


def without_copy(settings: FlowSettings, listed: Listed, accepted: Collection[str] = ()) -> list[str]:
    """Returns a warning about topics whose copies MM2 has to create and has not yet. `accepted`: topics to leave
    out."""
    left = sorted(listed.awaits_mm2().keys() - accepted)
    return [AWAITS_MM2.format(settings.flow.target, first_names(left, 3))] if left else []


def file_warnings(settings: FlowSettings, listed: Listed) -> tuple[str, ...]:
    """Returns warnings about probable mistakes in the properties file."""
    return (
        *unmatched_topics(settings, listed.source),
        *left_behind(settings, listed),
        *without_copy(settings, listed),
    )
