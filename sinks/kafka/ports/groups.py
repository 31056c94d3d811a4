"""Consumer groups and the ends of logs: what the sink asks of a cluster. No client is imported here."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from sinks.faults import ItemFault, Observed
from streaming.mm2.records import TopicPartition


@dataclass(frozen=True, slots=True)
class LogRange:
    """A partition's log: its start, and its end (the high watermark)."""

    start: int
    end: int


Offsets = Mapping[TopicPartition, int]
"""Committed offsets of one group; partitions without one are left out."""


GroupFaults = dict[str, dict[TopicPartition, ItemFault | None]]
"""Result of a commit by group and partition: `None` if it was written."""


def ends_of(logs: Observed[TopicPartition, LogRange]) -> Observed[TopicPartition, int]:
    """Returns the logs' ends without their starts."""
    return Observed({where: log.end for where, log in logs.items.items()}, logs.errors)


class EndReader(Protocol):
    """Reads where logs begin and end. Raises ClusterUnreachable, RightsMissing."""

    def ends(self, partitions: Collection[TopicPartition]) -> Observed[TopicPartition, LogRange]:
        """Returns start and end (high watermark) of each log. A partition that is gone is the error
        `UNKNOWN_TOPIC_OR_PART`."""

    def latest(self, partitions: Collection[TopicPartition]) -> Observed[TopicPartition, int]:
        """Returns the end (high watermark) of each log, with errors as in `ends`. Half as expensive as `ends`."""


class GroupReader(EndReader, Protocol):
    """Reads the consumer groups of one cluster. Raises ClusterUnreachable, RightsMissing.

    `names`, `committed`, `members` and `commit` need coordinators, and raise CoordinatorUnavailable if none of them
    answers.
    """

    def names(self) -> set[str]:
        """Returns the groups that the principal may see. Raises CoordinatorUnavailable also if only some brokers
        answered."""

    def committed(self, groups: Collection[str]) -> Observed[str, Offsets]:
        """Returns committed offsets. A group that does not exist has none."""

    def members(self, groups: Collection[str]) -> Observed[str, int]:
        """Returns the number of members. A group that does not exist has none; a group that cannot be described has at
        least one."""

    def topic_ids(self, topics: Collection[str]) -> dict[str, str]:
        """Returns the id of each topic that exists (KIP-516). A recreated topic has another id. "" on brokers without
        ids."""


class Groups(GroupReader, Protocol):
    """Reads consumer groups and commits their offsets."""

    def commit(self, offsets: Mapping[str, Offsets]) -> GroupFaults:
        """Commit offsets of groups without members. A group with members is the fault `UNKNOWN_MEMBER_ID`."""


GroupPartition = tuple[str, TopicPartition]
"""A consumer group and one of its partitions."""
