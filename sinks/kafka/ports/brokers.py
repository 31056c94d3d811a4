"""A cluster's brokers, replicas and open transactions: whether it could take over, and what a config did to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from streaming.mm2.records import TopicPartition


@dataclass(frozen=True)
class Replicas:
    """`brokers`: number of brokers. `factors`: by topic, the fewest replicas of a partition. `in_sync`: by topic, the
    fewest replicas in sync. `partitions`: their number by topic. `offline`: partitions without a leader.
    `under_replicated`: partitions that lack replicas."""

    brokers: int
    factors: Mapping[str, int] = field(default_factory=dict)
    in_sync: Mapping[str, int] = field(default_factory=dict)
    partitions: Mapping[str, int] = field(default_factory=dict)
    offline: frozenset[TopicPartition] = frozenset()
    under_replicated: frozenset[TopicPartition] = frozenset()


class Partitions(Protocol):
    """Reads the partitions of all topics. Raises ClusterUnreachable, RightsMissing."""

    def names(self) -> list[str]:
        """Of the topics that may be seen, in order."""

    def replicas(self) -> Replicas:
        """Of all these topics."""
