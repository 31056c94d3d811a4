"""Partitions without a leader or with lagging replicas: what `lockstep configs --canary` asks of a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

Partition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Troubled:
    """Partitions in trouble, by topic and number: `offline` have no leader, `under_replicated` miss replicas."""

    offline: frozenset[Partition] = frozenset()
    under_replicated: frozenset[Partition] = frozenset()


class Partitions(Protocol):
    """Looks at all topics."""

    def topics(self) -> list[str]:
        """Their names, in order. Raises ClusterUnreachable, RightsMissing."""

    def troubled(self) -> Troubled:
        """Those in trouble now. Raises ClusterUnreachable, RightsMissing."""
