"""Consumer groups and the ends of logs: what the sink asks of a cluster. No client is imported here."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from sinks.faults import ItemFault, Observed
from streaming.mm2.records import TopicPartition


@dataclass(frozen=True, slots=True)
class LogRange:
    """A partition's log: its start, and its end for who reads uncommitted records (the high watermark)."""

    start: int
    end: int


Offsets = Mapping[TopicPartition, int]
"""Committed offsets of one group; partitions without one are left out."""


GroupFaults = dict[str, dict[TopicPartition, ItemFault | None]]
"""Per group and partition: `None` when it was written."""


def ends_of(logs: Observed[TopicPartition, LogRange]) -> Observed[TopicPartition, int]:
    """Without the starts."""
    return Observed({where: log.end for where, log in logs.items.items()}, logs.errors)


class GroupReader(Protocol):
    """Looks at the consumer groups of one cluster, and changes none. Raises ClusterUnreachable, RightsMissing.

    What coordinators alone know (`names`, `committed`, `members`, and `commit`) raises CoordinatorUnavailable where
    none of them answers.
    """

    def names(self) -> set[str]:
        """The groups that may be seen. Raises CoordinatorUnavailable as well where only some brokers answered."""

    def committed(self, groups: Collection[str]) -> Observed[str, Offsets]:
        """Their committed offsets; a group that is not there has none."""

    def members(self, groups: Collection[str]) -> Observed[str, int]:
        """How many members each has; a group that is not there has none, one that cannot be described at least one."""

    def ends(self, partitions: Collection[TopicPartition]) -> Observed[TopicPartition, LogRange]:
        """Start and end (high watermark) of each log. One that is gone is an error `UNKNOWN_TOPIC_OR_PART`."""

    def latest(self, partitions: Collection[TopicPartition]) -> Observed[TopicPartition, int]:
        """The end (high watermark) of each log, errors as `ends` has them; for who needs no starts, which cost as much
        again."""

    def topic_ids(self, topics: Collection[str]) -> dict[str, str]:
        """The id of each topic that is there (KIP-516): another one means that it was recreated. "" without ids."""


class Groups(GroupReader, Protocol):
    """Looks and writes."""

    def commit(self, offsets: Mapping[str, Offsets]) -> GroupFaults:
        """Commits for groups without members; one that has some is the fault `UNKNOWN_MEMBER_ID`."""


GroupPartition = tuple[str, TopicPartition]
"""A consumer group and one of its partitions, on the cluster that the use of it says."""
