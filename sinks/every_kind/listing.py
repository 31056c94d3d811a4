"""The topics of both clusters, listed together, and what the target should have of the source's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cached_property
from typing import Protocol

from sinks.model.plan import Refusal


class Freshness(Enum):
    """What a pass needs of a listing."""

    ALL_NOW = auto()
    """Both clusters, listed and derived now."""
    ALL = auto()
    """The same, of the target as it was a moment ago perhaps, when another flow had it listed."""
    SOURCE_NOW = auto()
    """The source as it is now; the target a few seconds ago perhaps."""
    QUIET = auto()
    """The source as it was listed last: its metadata log has moved no more since then."""


@dataclass(frozen=True)
class DesiredTopics:
    """The topics that the target should have.

    `remote`: remote name by upstream name. `refused`: remote names that Kafka would not accept, or that several topics
    of the source would get. `shared`: as `remote`, for topics that would get the same name; MM2 copies them all the
    same. `partitions`: by remote name. `upstream`: the remote names of all topics of the source, replicated or not.
    `kept`: of `remote`, the topics whose copies Lockstep creates, enlarges and configures. `created_by_mm2`: as
    `remote`, for topics that only some versions of MM2 replicate. Where the target has no copy, MM2 alone creates it.
    """

    remote: Mapping[str, str]
    refused: tuple[Refusal, ...] = ()
    partitions: Mapping[str, int] = field(default_factory=dict)
    upstream: frozenset[str] = frozenset()
    shared: Mapping[str, str] = field(default_factory=dict)
    kept: Mapping[str, str] = field(default_factory=dict)
    created_by_mm2: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def copies(self) -> frozenset[str]:
        """The remote names of `kept`."""
        return frozenset(self.kept.values())


@dataclass(frozen=True)
class Listed:
    """Topics and partition counts of both clusters, and the topics that the target should have. `ids`: of the source's
    topics, "" on brokers without topic ids."""

    source: Mapping[str, int]
    target: Mapping[str, int]
    desired: DesiredTopics
    ids: Mapping[str, str] = field(default_factory=dict)

    def awaits_mm2(self) -> dict[str, str]:
        """Returns remote names by upstream name, for topics without a copy that MM2 alone creates."""
        return {topic: name for topic, name in self.desired.created_by_mm2.items() if name not in self.target}


NOTHING_LISTED = Listed({}, {}, DesiredTopics({}))
"""Of a flow for which nothing is observed any more."""


class TopicListing(Protocol):
    """Lists the topics of a flow's clusters."""

    def list_topics(self, freshness: Freshness) -> Listed:
        """List both clusters, at least as fresh as asked. Raises ClusterUnreachable, RightsMissing."""


def replicated_topics(listed: Listed) -> dict[str, str]:
    """Returns remote names by upstream name, for topics that are on the target, as `lockstep topics` shows them."""
    return {topic: remote for topic, remote in sorted(listed.desired.remote.items()) if remote in listed.target}
