"""Names of topics on both sides of a flow (KIP-382, KIP-690): MM2's replication policies, method by method.

They follow Kafka 4, where only MM2's own topics are internal (KIP-1074). Up to 3.9 every topic ending in `.internal` or
`-internal` was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

from streaming.errors import NamingError
from streaming.flow import Flow
from streaming.mm2.replication_filters import TopicFilter

SEPARATOR_KEY = "replication.policy.separator"
INTERNAL_SEPARATOR_ENABLED = "replication.policy.internal.topic.separator.enabled"
SOURCE_ALIAS = "source.cluster.alias"


class ReplicationPolicy(Protocol):
    """Kafka's `ReplicationPolicy`: the methods of a user's own policy. `BaseReplicationPolicy` has most of them."""

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """Returns the name on the target of a topic of the source."""

    def topic_source(self, topic: str) -> str | None:
        """Returns the alias from which a remote topic came last; None if the topic is not remote."""

    def upstream_topic(self, topic: str) -> str | None:
        """Returns a remote topic's name on the cluster from which it came last; None if it is not remote."""

    def original_topic(self, topic: str) -> str:
        """Returns a topic's name on its first cluster, any number of hops away."""

    def heartbeats_topic(self) -> str:
        """Returns the topic of MM2's heartbeats, on the cluster where they are emitted."""

    def offset_syncs_topic(self, alias: str) -> str:
        """Returns the topic of offset-syncs. `alias`: of the flow's other cluster."""

    def checkpoints_topic(self, alias: str) -> str:
        """Returns the topic of checkpoints on the target. `alias`: of the source."""

    def is_heartbeats_topic(self, topic: str) -> bool:
        """Whether it is a heartbeats topic, also a remote one."""

    def is_checkpoints_topic(self, topic: str) -> bool:
        """Whether it is a checkpoints topic."""

    def is_mm2_internal_topic(self, topic: str) -> bool:
        """Whether MM2 writes the topic for its own use."""

    def is_internal_topic(self, topic: str) -> bool:
        """Whether the topic is internal to MM2 or Kafka, and so never replicated."""


class BaseReplicationPolicy(ReplicationPolicy):
    """The defaults of Kafka's interface. A policy that extends it has to write `format_remote_topic`, `topic_source`
    and `upstream_topic`."""

    def original_topic(self, topic: str) -> str:
        """Return the last name that the upstream names lead to. Raises NamingError if a policy's names make a cycle."""
        return [*_upstream_names(self, topic)][-1]

    def heartbeats_topic(self) -> str:
        return "heartbeats"

    def offset_syncs_topic(self, alias: str) -> str:
        return f"mm2-offset-syncs.{alias}.internal"

    def checkpoints_topic(self, alias: str) -> str:
        return f"{alias}.checkpoints.internal"

    def is_heartbeats_topic(self, topic: str) -> bool:
        return self.original_topic(topic) == self.heartbeats_topic()

    def is_checkpoints_topic(self, topic: str) -> bool:
        return topic.endswith(".checkpoints.internal")

    def is_mm2_internal_topic(self, topic: str) -> bool:
        return (topic.startswith("mm2") and topic.endswith(".internal")) or self.is_checkpoints_topic(topic)

    def is_internal_topic(self, topic: str) -> bool:
        return self.is_mm2_internal_topic(topic) or topic.startswith(("__", "."))


class DefaultReplicationPolicy(BaseReplicationPolicy):
    """Kafka's `DefaultReplicationPolicy`: source alias, separator, name: `us-west.orders`."""

    def __init__(self) -> None:
        self._separator = "."
        self._separates_internal = True

    def configure(self, properties: Mapping[str, str]) -> None:
        """Read the separator. As in MM2, `replication.policy.internal.topic.separator.enabled` (KAFKA-15102) counts
        only if one is set."""
        if SEPARATOR_KEY not in properties:
            return
        self._separator = properties[SEPARATOR_KEY]
        if INTERNAL_SEPARATOR_ENABLED in properties:
            self._separates_internal = properties[INTERNAL_SEPARATOR_ENABLED].lower() == "true"

    @property
    def internal_separator(self) -> str:
        """The separator in names of internal topics."""
        return self._separator if self._separates_internal else "."

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return f"{source_alias}{self._separator}{topic}"

    def topic_source(self, topic: str) -> str | None:
        if not self._separator:
            # Java splits at an empty pattern into single characters.
            return topic[0] if len(topic) > 1 else None
        source, _, rest = topic.partition(self._separator)
        # Java's split drops empty parts from the end, so that `a.` has one part, and `..` none.
        return source if rest.replace(self._separator, "") else None

    def upstream_topic(self, topic: str) -> str | None:
        source = self.topic_source(topic)
        return None if source is None else topic[len(source) + len(self._separator) :]

    def offset_syncs_topic(self, alias: str) -> str:
        return self.internal_separator.join(("mm2-offset-syncs", alias, "internal"))

    def checkpoints_topic(self, alias: str) -> str:
        return self.internal_separator.join((alias, "checkpoints", "internal"))

    def is_checkpoints_topic(self, topic: str) -> bool:
        return topic.endswith(self.checkpoints_topic(""))

    def is_mm2_internal_topic(self, topic: str) -> bool:
        internal = topic.startswith("mm2") and topic.endswith(f"{self.internal_separator}internal")
        return internal or self.is_checkpoints_topic(topic)


class IdentityReplicationPolicy(DefaultReplicationPolicy):
    """Kafka's `IdentityReplicationPolicy`: names stay, except names that end like the heartbeats topic. It cannot see
    cycles; `endless_cycles` finds them."""

    _source_alias: str | None = None

    def configure(self, properties: Mapping[str, str]) -> None:
        """Read the properties as the default policy does. `source.cluster.alias`: what `topic_source` returns for every
        topic."""
        super().configure(properties)
        self._source_alias = properties.get(SOURCE_ALIAS, self._source_alias)

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return super().format_remote_topic(source_alias, topic) if self._looks_like_heartbeat(topic) else topic

    def topic_source(self, topic: str) -> str | None:
        return super().topic_source(topic) if self._looks_like_heartbeat(topic) else self._source_alias

    def upstream_topic(self, topic: str) -> str | None:
        return super().upstream_topic(topic) if self._looks_like_heartbeat(topic) else topic

    def _looks_like_heartbeat(self, topic: str) -> bool:
        return topic.endswith(self.heartbeats_topic())


def _upstream_names(policy: ReplicationPolicy, topic: str) -> Iterator[str]:
    """Yields the topic, its name one hop upstream, and so on, up to the first name that stays the same."""
    seen = [topic]
    while True:
        yield seen[-1]
        upstream = policy.upstream_topic(seen[-1])
        if upstream is None or upstream == seen[-1]:
            return
        if upstream in seen:
            named = " -> ".join([*seen, upstream])
            raise NamingError(
                f"{type(policy).__name__}.upstream_topic makes a replication cycle: {named}; mend the policy"
            )
        seen.append(upstream)


def is_cycle(policy: ReplicationPolicy, topic: str, target_alias: str) -> bool:
    """Whether a topic was on the target before, at any hop: MM2's `MirrorSourceConnector.isCycle`."""
    for name in _upstream_names(policy, topic):
        source = policy.topic_source(name)
        if source is None:
            return False
        if source == target_alias:
            return True
    return False


def replicates(
    policy: ReplicationPolicy, topic_filter: TopicFilter, topic: str, target_alias: str, heartbeats_replication: bool
) -> bool:
    """Whether MM2 replicates a topic of the source: `MirrorSourceConnector.shouldReplicateTopic`."""
    wanted = topic_filter.should_replicate_topic(topic)
    wanted |= heartbeats_replication and policy.is_heartbeats_topic(topic)
    return wanted and not policy.is_internal_topic(topic) and not is_cycle(policy, topic, target_alias)


def is_written_by_mm2_alone(policy: ReplicationPolicy, source_alias: str, topic: str) -> bool:
    """Whether the name of a topic's copy says that it is a copy, so that only MM2 has a reason to write it. `topic`:
    name on the source.

    False if the copy has the same name, or if the policy does not lead from the copy back to source and topic. False
    too if the policy calls the source's own topic a remote one of the source, as `IdentityReplicationPolicy` does for
    every topic.
    """
    remote = policy.format_remote_topic(source_alias, topic)
    return (
        remote != topic
        and policy.topic_source(remote) == source_alias
        and policy.upstream_topic(remote) == topic
        and policy.topic_source(topic) != source_alias
    )


# Replication cycles: flows by which a topic would come back to its own cluster, and be replicated there again.


PROBED_TOPIC = "topic"
"""A topic name that no policy treats specially."""


def endless_cycles(policies: Mapping[Flow, ReplicationPolicy]) -> list[tuple[Flow, ...]]:
    """Returns the cycles of flows that no policy ends: each once, sorted, and the shortest of those through a flow.

    A policy that puts the alias into the name sees where a topic has been. IdentityReplicationPolicy cannot, so there
    only the topic filters keep a topic from going round for ever.
    """
    cycles = set()
    for flow in policies:
        back = _shortest(policies, flow.target, flow.source)
        if back and _is_endless((flow, *back), policies):
            whole = (flow, *back)
            first = whole.index(min(whole))
            cycles.add(whole[first:] + whole[:first])
    return sorted(cycles)


def _shortest(flows: Iterable[Flow], start: str, end: str) -> tuple[Flow, ...]:
    """Returns the fewest flows that lead from cluster `start` to `end`; empty if none do."""
    ordered = sorted(flows)
    ways: list[tuple[Flow, ...]] = [(flow,) for flow in ordered if flow.source == start]
    reached = {start}
    for way in ways:
        if way[-1].target == end:
            return way
        if way[-1].target not in reached:
            reached.add(way[-1].target)
            ways += [(*way, flow) for flow in ordered if flow.source == way[-1].target]
    return ()


def _is_endless(whole: tuple[Flow, ...], policies: Mapping[Flow, ReplicationPolicy]) -> bool:
    topic = PROBED_TOPIC
    for flow in whole:
        if is_cycle(policies[flow], topic, flow.target):
            return False
        topic = policies[flow].format_remote_topic(flow.source, topic)
    return True


# Valid names of topics.


MAX_TOPIC_NAME = 249
"""Most characters of a topic's name: Kafka's `Topic.MAX_NAME_LENGTH`."""
ILLEGAL = re.compile(r"[^a-zA-Z0-9._-]")


class TopicNameFault(NamedTuple):
    """Why Kafka refuses a topic's name, and what to check if a policy made it."""

    said: str
    remedy: str


def topic_name_fault(name: str) -> TopicNameFault | None:
    """Returns why Kafka's `Topic.validate` refuses a name; None if it accepts the name."""
    if len(name) > MAX_TOPIC_NAME:
        said = f"has {len(name)} characters, Kafka allows {MAX_TOPIC_NAME}"
        return TopicNameFault(said, "shorten the alias or the separator in it")
    if found := ILLEGAL.search(name):
        said = f"holds {found[0]!r}, Kafka allows a-z A-Z 0-9 . _ -"
        return TopicNameFault(said, f"look at the alias and at {SEPARATOR_KEY}")
    if name in ("", ".", ".."):
        return TopicNameFault("is one that Kafka does not allow", "look at the replication policy")
    return None


def check_topic_name(name: str) -> None:
    """Raises NamingError if Kafka's `Topic.validate` refuses the name."""
    if fault := topic_name_fault(name):
        remedy = f"{fault.remedy}, or exclude the topic with topics.exclude"
        raise NamingError(f"the topic name {name!r} {fault.said}: {remedy}")
