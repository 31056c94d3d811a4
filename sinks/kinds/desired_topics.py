"""The topics that the target should have: those MM2 replicates, under names that Kafka accepts. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from sinks.every_kind.listing import DesiredTopics
from sinks.flow_settings import FlowSettings
from sinks.model.changes import Kind, Op
from sinks.model.plan import Refusal
from streaming.errors import NamingError
from streaming.mm2.replication_policy import check_topic_name, is_written_by_mm2_alone, replicates

OWN = ("lockstep-ledger", "lockstep-audit", "lockstep-topics", "lockstep-groups")
"""Prefixes of Lockstep's own topics. MM2 4 treats them like any other topic (KIP-1074), but they belong to their
cluster."""


IS_OWN_TOPIC = "is one of Lockstep's own topics on the target: exclude the source's topic, or name it otherwise"
IS_MM2S_TOPIC = (
    "is one of MM2's internal topics on the target: exclude the source's topic (topics.exclude), for MM2 as well, or "
    "name it otherwise. MM2 copies its records into what MM2 and Lockstep read"
)

SHARED = (
    "{} of the source would all be this topic: leave all but one out (topics.exclude), or give each a name of its own "
    "in the replication policy"
)
SHOWN = 3
"""Most names that such a reason shows."""


def is_replicated(settings: FlowSettings, topic: str) -> bool:
    """Whether MM2's `shouldReplicateTopic` replicates the topic, and it is not one of Lockstep's own. It need not
    exist."""
    return not topic.startswith(OWN) and _is_copied(settings, topic)


def _is_copied(settings: FlowSettings, topic: str) -> bool:
    """Whether MM2's `shouldReplicateTopic` replicates the topic. MM2 treats Lockstep's own topics like any other."""
    return replicates(
        settings.policy, settings.topic_filter, topic, settings.flow.target, settings.heartbeats_replication
    )


def _is_internal_to_kafka_3(topic: str) -> bool:
    """Whether only Kafka 3 treats the topic as internal (`ReplicationPolicy.isInternalTopic`, KIP-1074): names of
    Connect's topics. MM2 of Kafka 3 never creates its copy; MM2 of Kafka 4 does."""
    return topic.endswith((".internal", "-internal"))


def may_be_foreign(settings: FlowSettings, topic: str) -> bool:
    """Whether the target's topic of this name may be its own topic and not a copy: the name proves nothing, and MM2 of
    Kafka 3 does not replicate it. Lockstep changes neither its configs nor its ACLs."""
    internal = not settings.keeps_offsets and _is_internal_to_kafka_3(topic)
    return internal and not is_written_by_mm2_alone(settings.policy, settings.flow.source, topic)


def desired_topics(source: Mapping[str, int], settings: FlowSettings) -> DesiredTopics:
    """Returns the topics that the target should have, by MM2's `shouldReplicateTopic`."""
    remote: dict[str, str] = {}
    refused: dict[str, str] = {}
    names = {topic: settings.policy.format_remote_topic(settings.flow.source, topic) for topic in source}
    wanted = {topic: name for topic, name in names.items() if is_replicated(settings, topic)}
    sharing = Counter(wanted.values())
    for topic, name in wanted.items():
        if reason := _unfit(name, settings) or (_shared(name, wanted) if sharing[name] > 1 else None):
            refused[name] = reason
        else:
            remote[topic] = name
    for topic, name in names.items():
        if topic.startswith(OWN) and (reason := _internal(name, settings)) and _is_copied(settings, topic):
            refused[name] = reason
    by_mm2 = {} if settings.keeps_offsets else {t: name for t, name in remote.items() if _is_internal_to_kafka_3(t)}
    foreign = [topic for topic in by_mm2 if may_be_foreign(settings, topic)]
    kept = {topic: name for topic, name in remote.items() if topic not in foreign} if foreign else remote
    # A topic whose metadata came back with an error is there, but shows no partition.
    partitions = {name: source[topic] for topic, name in kept.items() if source[topic]}
    refusals = tuple(Refusal(Kind.TOPIC, Op.CREATE, (name,), reason) for name, reason in refused.items())
    shared = {topic: name for topic, name in wanted.items() if topic not in remote and sharing[name] > 1}
    return DesiredTopics(remote, refusals, partitions, frozenset(names.values()), shared, kept, by_mm2)


def _shared(name: str, wanted: Mapping[str, str]) -> str:
    """Returns why Lockstep keeps no topic of this remote name: several topics of the source would get it, and each
    would undo the others' changes."""
    topics = sorted(topic for topic, remote in wanted.items() if remote == name)
    return SHARED.format(" and ".join(topics[:SHOWN]))


def _unfit(name: str, settings: FlowSettings) -> str | None:
    try:
        check_topic_name(name)
    except NamingError as error:
        return str(error)
    return _internal(name, settings)


def _internal(name: str, settings: FlowSettings) -> str | None:
    if name in settings.internal.on_target:
        return IS_OWN_TOPIC
    return IS_MM2S_TOPIC if name in settings.internal.mm2s_on_target else None


def internal_topic_warnings(source: Iterable[str], settings: FlowSettings) -> list[str]:
    """Returns warnings about topics of the source whose remote names are internal topics. MM2 copies them all the
    same."""
    found = []
    for topic in sorted(source):
        name = settings.policy.format_remote_topic(settings.flow.source, topic)
        if (reason := _internal(name, settings)) and _is_copied(settings, topic):
            found.append(f"{topic} of {settings.flow.source} becomes {name}, which {reason}")
    return found
