"""What one streaming query is made of, and when a query that broke off is started again. Plain values, no IO."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from streaming.flow import Flow
from streaming.mm2.topic_roles import TopicRole

CHECKPOINT_FORMAT = "1"
"""Counts up when the sources of a query change in number or order for the same clusters."""


@dataclass(frozen=True, slots=True)
class ClusterSource:
    """The internal topics of one cluster. `options` are Java client properties; they may hold secrets."""

    alias: str
    options: Mapping[str, str] = field(repr=False)
    topics: Mapping[str, TopicRole]

    def __post_init__(self) -> None:
        if not self.options.get("bootstrap.servers"):
            raise ValueError(f"{self.alias}.bootstrap.servers is missing: the query cannot read the cluster")
        if not self.topics:
            raise ValueError(f"the query has no topic to read on {self.alias}")

    @property
    def pattern(self) -> str:
        r"""The topics as a regular expression of Java's, sorted, each name quoted (`\Q…\E`).

        Anchored, because Spark looks for it anywhere in a name: `heartbeats` alone would read `x.heartbeats`, too.
        """
        return "^(?:" + "|".join(rf"\Q{topic}\E" for topic in sorted(self.topics)) + ")$"


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """The query of one target cluster. `trigger_interval` in seconds, `sources` sorted by alias.

    Without any source only the clock is left. `max_offsets_per_trigger` limits a batch (records a source); None reads
    all there is.
    """

    target: str
    sources: tuple[ClusterSource, ...]
    trigger_interval: float
    checkpoint_dir: Path
    max_offsets_per_trigger: int | None = None

    def __post_init__(self) -> None:
        aliases = [source.alias for source in self.sources]
        if aliases != sorted(set(aliases)):
            raise ValueError(f"the sources of {self.name} must be sorted by alias, each once, not {aliases}")
        if self.trigger_interval <= 0:
            raise ValueError(f"lockstep.trigger.interval is {self.trigger_interval}: it must be longer than 0 seconds")

    @property
    def name(self) -> str:
        """What the Spark UI and the logs call the query."""
        return f"lockstep-{self.target}"

    @property
    def flows(self) -> tuple[Flow, ...]:
        """The flows that the sources tell of, sorted."""
        roles = (role for source in self.sources for role in source.topics.values())
        return tuple(sorted({role.flow for role in roles if role.flow is not None}))

    def description(self, batch: int) -> str:
        """What the Spark UI calls the jobs of a batch."""
        told = ", ".join(flow.name for flow in self.flows) or "no cluster that answers"
        return f"{self.name}, batch {batch}: what MM2 says of {told}"

    @property
    def checkpoint(self) -> Path:
        """Where Spark keeps the query's offsets.

        Spark finds a source's offsets by its place in the query, so that a query with other sources must not meet
        them. Nothing is lost when they are: the query then starts from the earliest records.
        """
        parts = [CHECKPOINT_FORMAT, *(text for source in self.sources for text in (source.alias, source.pattern))]
        digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
        return self.checkpoint_dir / re.sub(r"[^A-Za-z0-9._-]", "_", self.target) / digest[:12]

    def without(self, alias: str) -> QueryPlan:
        """The same query while a cluster cannot be reached, so that the other flows go on."""
        return replace(self, sources=tuple(source for source in self.sources if source.alias != alias))
