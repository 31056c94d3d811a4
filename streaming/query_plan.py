"""Plan of one streaming query: the clusters and topics that it reads. Plain values, no IO."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from streaming.flow import Flow
from streaming.mm2.internal_topic_names import TopicOn, TopicRole

CHECKPOINT_FORMAT = "1"
"""Format of a query's checkpoint. Raise it when a query's sources change in number or order for the same clusters."""


@dataclass(frozen=True, slots=True)
class ClusterSource:
    """The internal topics of one cluster that are read with the same client settings. `options`: Java client
    properties; they may hold secrets. `flow`: the flow whose settings these are."""

    alias: str
    options: Mapping[str, str] = field(repr=False)
    topics: Mapping[str, TopicRole]
    flow: Flow | None = None

    def __post_init__(self) -> None:
        if not self.options.get("bootstrap.servers"):
            raise ValueError(f"{self.alias}.bootstrap.servers is missing: the query cannot read the cluster")
        if not self.topics:
            raise ValueError(f"the query has no topic to read on {self.alias}")

    @property
    def pattern(self) -> str:
        r"""The topics as a Java regular expression, sorted, each name quoted (`\Q…\E`).

        It is anchored, because Spark looks for it anywhere in a name: `heartbeats` alone would also read
        `x.heartbeats`.
        """
        return "^(?:" + "|".join(rf"\Q{topic}\E" for topic in sorted(self.topics)) + ")$"


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """The query of one target cluster. `trigger_interval`: seconds. `sources`: sorted by alias and pattern; if empty,
    the query reads only its clock."""

    target: str
    sources: tuple[ClusterSource, ...]
    trigger_interval: float
    checkpoint_dir: Path

    def __post_init__(self) -> None:
        keys = [(source.alias, source.pattern) for source in self.sources]
        if keys != sorted(keys):
            raise ValueError(f"the sources of {self.name} must be sorted by alias and pattern, not {keys}")
        if len(self.topics) < sum(len(source.topics) for source in self.sources):
            raise ValueError(f"{self.name} would read a topic twice: each topic of a cluster belongs to one source")
        if self.trigger_interval <= 0:
            raise ValueError(f"lockstep.trigger.interval is {self.trigger_interval}: it must be longer than 0 seconds")

    @property
    def name(self) -> str:
        """The name of the query in Spark's UI and in the logs."""
        return f"lockstep-{self.target}"

    @property
    def topics(self) -> frozenset[TopicOn]:
        return frozenset(TopicOn(source.alias, topic) for source in self.sources for topic in source.topics)

    @property
    def flows(self) -> tuple[Flow, ...]:
        """The flows that the sources tell of, sorted."""
        roles = (role for source in self.sources for role in source.topics.values())
        return tuple(sorted({role.flow for role in roles if role.flow is not None}))

    def description(self, batch: int) -> str:
        """Returns what the Spark UI calls the jobs of a batch. `batch`: its number."""
        flows = ", ".join(flow.name for flow in self.flows) or "no cluster that answers"
        return f"{self.name}, batch {batch}: what MM2 says of {flows}"

    @property
    def checkpoint(self) -> Path:
        """The folder where Spark keeps the query's offsets.

        Spark finds a source's offsets by its place in the query, so a query with other sources needs another folder.
        Nothing is lost then: the query starts from the earliest records.
        """
        parts = [CHECKPOINT_FORMAT, *(text for source in self.sources for text in (source.alias, source.pattern))]
        digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
        return self.checkpoint_dir / re.sub(r"[^A-Za-z0-9._-]", "_", self.target) / digest[:12]


class FlowTopics(NamedTuple):
    """The internal topics of one flow, and how its clients reach their clusters (Java consumer properties)."""

    flow: Flow
    roles: Mapping[TopicOn, TopicRole]
    options: Mapping[str, Mapping[str, str]]


def sources_of(flows: Iterable[FlowTopics]) -> tuple[ClusterSource, ...]:
    """Returns one source for each cluster and each set of client settings, sorted. A topic that several flows share is
    read once, with the settings of the first."""
    found: list[ClusterSource] = []
    taken: dict[TopicOn, int] = {}
    topics: list[dict[str, TopicRole]] = []
    for flow, roles, options in flows:
        for where, role in roles.items():
            mine = options[where.cluster]
            same = (i for i, one in enumerate(found) if (one.alias, one.options) == (where.cluster, mine))
            at = taken.get(where, next(same, len(found)))
            if at == len(found):
                topics.append({where.topic: role})
                found.append(ClusterSource(where.cluster, mine, topics[at], flow))
            taken[where] = at
            topics[at][where.topic] = role
    return tuple(sorted(found, key=lambda source: (source.alias, source.pattern)))
