"""The comparison of records that `--verify` asks for: each topic once, before anybody is told that it is drained."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from streaming.mm2.records import TopicPartition

Compare = Callable[[Collection[str], Mapping[TopicPartition, int]], None]
"""Compares the records of these topics of the source; raises where they differ. Partitions of the target end at the
offsets that are given: what clients have written behind them is no copy."""


@dataclass
class CopyCheck:
    """Of one command. `compared`: topics of which nothing need be compared any more."""

    compare: Compare
    compared: set[str] = field(default_factory=set)

    def run(self, topics: Collection[str], ends: Mapping[TopicPartition, int]) -> bool:
        """Whether there was something to compare. Raises what `compare` raises."""
        left = set(topics) - self.compared
        if left:
            self.compare(left, ends)
            self.compared |= left
        return bool(left)
