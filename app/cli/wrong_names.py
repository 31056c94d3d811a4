"""Rejects names on a command line that no flow replicates, and explains why. Otherwise they would look healthy."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from app.settings import Settings
from app.wiring import both_clusters, guard
from sinks.every_kind.listing import Listed
from sinks.flow_settings import FlowSettings
from sinks.kinds.desired_topics import is_replicated
from sinks.kinds.shared_listings import list_both
from streaming.errors import WrongUsage
from streaming.message_words import nearest_hint


def wrong_topic(topic: str, flows: Sequence[tuple[FlowSettings, Listed]]) -> str | None:
    """Returns why no flow replicates a topic of this name; None if one does."""
    if any(topic in listed.desired.remote for _, listed in flows):
        return None
    return _remote_name(topic, flows) or _excluded(topic, flows) or _missing(topic, flows)


def refuse_wrong_topics(topics: Iterable[str], flows: Sequence[tuple[FlowSettings, Listed]]) -> None:
    """Raises WrongUsage with every name that no flow replicates."""
    wrong = [f"{topic} {reason}" for topic in topics if (reason := wrong_topic(topic, flows))]
    if wrong:
        raise WrongUsage("\n".join(wrong))


def _remote_name(topic: str, flows: Sequence[tuple[FlowSettings, Listed]]) -> str | None:
    for flow, listed in flows:
        upstream = next((name for name, remote in listed.desired.remote.items() if remote == topic), None)
        if upstream is not None:
            return f"is the name on {flow.flow.target}: write {upstream}, its name on {flow.flow.source}"
    return None


def _excluded(topic: str, flows: Sequence[tuple[FlowSettings, Listed]]) -> str | None:
    for flow, listed in flows:
        if topic not in listed.source:
            continue
        key = (flow.policy.format_remote_topic(flow.flow.source, topic),)
        refused = next((one.reason for one in listed.desired.refused if one.key == key), None)
        if is_replicated(flow, topic) and refused is not None:
            return f"is not replicated: its remote name {refused}"
        return f"is on {flow.flow.source}, but is not replicated: topics, topics.exclude or the policy leave it out"
    return None


def _missing(topic: str, flows: Sequence[tuple[FlowSettings, Listed]]) -> str:
    sources = " and ".join(dict.fromkeys(flow.flow.source for flow, _ in flows))
    replicated = {name for _, listed in flows for name in listed.desired.remote}
    return f"does not exist on {sources}{nearest_hint(topic, replicated)}"


def wrong_group(group: str, flows: Sequence[tuple[FlowSettings, Collection[str]]], *, back: bool = False) -> str:
    """Returns why no flow has offsets of this group. `flows`: each with the groups of its source or, on the way `back`,
    of its target."""
    names = {name for _, there in flows for name in there}
    aliases = " and ".join(dict.fromkeys(flow.flow.target if back else flow.flow.source for flow, _ in flows))
    if group not in names:
        return f"does not exist on {aliases}{nearest_hint(group, names)}"
    if not any(flow.group_filter.should_replicate_group(group) for flow, there in flows if group in there):
        return "is not replicated: groups or groups.exclude leave it out"
    return f"has no offsets on replicated topics of {aliases}"


def topics_of_flows(settings: Settings, topics: Sequence[str]) -> list[tuple[FlowSettings, tuple[str, ...]]]:
    """Returns each flow that replicates some of these topics, with those topics.

    Raises WrongUsage with every name that no flow replicates, LockstepError if no cluster answers.
    """
    listed = []
    for one in settings.flows:
        with both_clusters(settings, one) as clusters:
            guard(one, clusters.source, clusters.target).ids()
            listed.append((one, list_both(one, clusters.source, clusters.target)))
    refuse_wrong_topics(topics, listed)
    chosen = [(one, tuple(topic for topic in topics if topic in found.desired.remote)) for one, found in listed]
    return [(one, names) for one, names in chosen if names]
