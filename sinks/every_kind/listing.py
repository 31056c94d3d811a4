"""The listing of both clusters' topics, and the topics that the target should have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cached_property
from typing import Protocol

from sinks.model.plan import Refusal


class Freshness(Enum):
    """How fresh a listing must be."""

    ALL_NOW = auto()
    """List both clusters now, and derive the desired topics now."""
    ALL = auto()
    """The same, but the target's listing may be a moment old, from another flow."""
    SOURCE_NOW = auto()
    """List the source now; the target's listing may be a few seconds old."""
    QUIET = auto()
    """Take the last listing of the source: its metadata log has not moved since."""


@dataclass(frozen=True)
class DesiredTopics:
    """The topics that the target should have."""

    remote: Mapping[str, str]
    """Remote name by upstream name."""
    refused: tuple[Refusal, ...] = ()
    """Remote names that Kafka would not accept, or that several topics of the source would get."""
    partitions: Mapping[str, int] = field(default_factory=dict)
    """Number of partitions by remote name."""
    upstream: frozenset[str] = frozenset()
    """Remote names of all topics of the source, replicated or not."""
    shared: Mapping[str, str] = field(default_factory=dict)
    """Remote name by upstream name, of topics that would get the same name; MM2 copies them all the same."""
    kept: Mapping[str, str] = field(default_factory=dict)
    """Part of `remote`: topics whose copies Lockstep creates, enlarges and configures."""
    created_by_mm2: Mapping[str, str] = field(default_factory=dict)
    """Remote name by upstream name, of topics that only some versions of MM2 replicate. Lockstep does not create their
    copies."""

    @cached_property
    def copies(self) -> frozenset[str]:
        """Returns the remote names of `kept`."""
        return frozenset(self.kept.values())


@dataclass(frozen=True)
class Listed:
    """Topics and partition counts of both clusters, and the topics that the target should have. `ids`: topic ids of the
    source; "" on brokers without topic ids."""

    source: Mapping[str, int]
    target: Mapping[str, int]
    desired: DesiredTopics
    ids: Mapping[str, str] = field(default_factory=dict)

    def awaits_mm2(self) -> dict[str, str]:
        """Returns remote names by upstream name, of topics that have no copy yet and whose copy only MM2 creates."""
        return {topic: name for topic, name in self.desired.created_by_mm2.items() if name not in self.target}


NOTHING_LISTED = Listed({}, {}, DesiredTopics({}))
"""The listing of a flow that observes nothing any more."""


class TopicListing(Protocol):
    """Lists the topics of a flow's clusters."""

    def list_topics(self, freshness: Freshness) -> Listed:
        """List both clusters, at least as fresh as asked. Raises ClusterUnreachable, RightsMissing."""


def replicated_topics(listed: Listed) -> dict[str, str]:
    """Returns remote names by upstream name, for topics that are on the target, as `lockstep topics` shows them."""
    return {topic: remote for topic, remote in sorted(listed.desired.remote.items()) if remote in listed.target}
