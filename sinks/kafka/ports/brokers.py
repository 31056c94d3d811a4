"""A cluster's brokers, replicas and open transactions: whether it could take over, and what a config did to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from streaming.mm2.records import TopicPartition


@dataclass(frozen=True)
class Replicas:
    """`brokers`: how many there are. `factors`, `in_sync`: by topic, the fewest replicas of a partition, and the fewest
    in sync; `partitions`: how many it has. `offline` ones have no leader, `under_replicated` ones miss replicas."""

    brokers: int
    factors: Mapping[str, int] = field(default_factory=dict)
    in_sync: Mapping[str, int] = field(default_factory=dict)
    partitions: Mapping[str, int] = field(default_factory=dict)
    offline: frozenset[TopicPartition] = frozenset()
    under_replicated: frozenset[TopicPartition] = frozenset()


class Partitions(Protocol):
    """Looks at all topics. Raises ClusterUnreachable, RightsMissing."""

    def names(self) -> list[str]:
        """Of the topics that may be seen, in order."""

    def replicas(self) -> Replicas:
        """Of all these topics."""
