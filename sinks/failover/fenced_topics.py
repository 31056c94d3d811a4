"""Tells which topics of the source a fence covers: replicated topics that producers write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sinks.flow_settings import FlowSettings
from streaming.errors import LockstepError
from streaming.message_words import first_names
from streaming.mm2.records import TopicPartition


def is_copy(settings: FlowSettings, topic: str) -> bool:
    """Whether MM2 writes this topic of the source, by its name: heartbeats, or a copy that a flow of the file makes.

    With the identity policy names do not tell which topics are copies.
    """
    policy = settings.policy
    if policy.is_heartbeats_topic(topic):
        return True
    source, upstream = policy.topic_source(topic), policy.upstream_topic(topic)
    if source not in settings.upstream_aliases or source is None or upstream in (None, topic):
        return False
    return upstream is not None and policy.format_remote_topic(source, upstream) == topic


def fenced_topics(settings: FlowSettings, remote: Mapping[str, str]) -> list[str]:
    """Returns the replicated topics that producers write, sorted. `remote`: names on the target, by source topic."""
    return sorted(topic for topic in remote if not is_copy(settings, topic))


def doubtful_heartbeats(settings: FlowSettings, remote: Mapping[str, str]) -> list[str]:
    """Returns source topics with names like copies of heartbeats that no flow of the file copies."""
    policy = settings.policy
    return sorted(
        topic
        for topic in remote
        if policy.is_heartbeats_topic(topic)
        and topic != policy.heartbeats_topic()
        and policy.topic_source(topic) not in settings.upstream_aliases
    )


def check_names(settings: FlowSettings, shared: Mapping[str, str]) -> None:
    """Raises LockstepError if topics that producers write share a name on the target, because MM2 mixes their records
    there. `shared`: that name, by source topic."""
    mixed = {shared[topic] for topic in shared if not is_copy(settings, topic)}
    if not mixed:
        return
    said = [
        f"{' and '.join(sorted(topic for topic, name in shared.items() if name == one))} would all be {one}"
        for one in sorted(mixed)
    ]
    raise LockstepError(
        f"topics would share a name on {settings.flow.target}: {first_names(said)}. Their copies cannot be told apart. "
        "Leave all but one of them out (topics.exclude), or give each a name of its own in the replication policy, and "
        "run the command again"
    )


def topics_of(partitions: Iterable[TopicPartition]) -> list[str]:
    return sorted({where.topic for where in partitions})
