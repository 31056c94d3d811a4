"""What the file most likely does not mean: names that match nothing, and copies that it does not name any more. Pure.

A typo in `topics` stops what was kept in step, and everything looks well: what is not named has no drift.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from sinks.flow_settings import FlowSettings
from sinks.kinds.listing import Listed
from sinks.kinds.topics.rules import is_replicated
from streaming.mm2.replication_filters import DefaultGroupFilter, DefaultTopicFilter
from streaming.mm2.replication_policy import is_written_by_mm2_alone
from streaming.nearest import nearest
from streaming.number_of import number_of

SHOWN = 3
"""How many names a warning gives."""


def unmatched(key: str, named: Sequence[str], there: Collection[str], alias: str) -> list[str]:
    """Of the plain names that the list of a key has, those that match nothing of what is there."""
    found = []
    for name in named:
        if name in there or any(re.fullmatch(name, other) for other in there):
            continue
        near = nearest(name, there)
        hint = f"; nearest: {near}" if near else ""
        found.append(f"{key} names {name}, and {alias} has no such {key.removesuffix('s')}{hint}")
    return found


def unmatched_topics(settings: FlowSettings, source: Collection[str]) -> list[str]:
    """Names in `topics` that no topic of the source has."""
    chosen = settings.topic_filter
    if not isinstance(chosen, DefaultTopicFilter) or not source:
        return []
    return unmatched("topics", chosen.plain_names, source, settings.flow.source)


def unmatched_groups(settings: FlowSettings, source: Callable[[], Collection[str]]) -> list[str]:
    """Names in `groups` that no consumer group of the source has; it is asked where the list names any."""
    chosen = settings.group_filter
    if not (isinstance(chosen, DefaultGroupFilter) and chosen.plain_names):
        return []
    return unmatched("groups", chosen.plain_names, source(), settings.flow.source)


def left_behind(settings: FlowSettings, listed: Listed) -> list[str]:
    """What to say of copies on the target whose topics the source has and the settings leave out."""
    flow, policy = settings.flow, settings.policy
    found = sorted(
        topic
        for topic in listed.source.keys() - listed.desired.remote.keys()
        if policy.format_remote_topic(flow.source, topic) in listed.target
        and is_written_by_mm2_alone(policy, flow.source, topic)
        and not policy.is_mm2_internal_topic(topic)
        and not is_replicated(settings, topic)
    )
    if not found:
        return []
    names = ", ".join(found[:SHOWN]) + (", …" if len(found) > SHOWN else "")
    left = f"{number_of(len(found), 'topic', 'topics')} of {flow.source}"
    return [f"the properties file leaves out {left} with a copy on {flow.target}, not kept in step: {names}"]


def file_warnings(settings: FlowSettings, listed: Listed) -> tuple[str, ...]:
    """What a pass can tell of topics."""
    return (*unmatched_topics(settings, listed.source), *left_behind(settings, listed))
