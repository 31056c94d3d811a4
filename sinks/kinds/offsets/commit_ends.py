"""Which groups may have committed, by the ends of `__consumer_offsets`: one request, however many groups there are.

Every change of a group's offsets is a record in the group's partition of that topic: a commit, a deletion, an expiry,
the end of a transaction. Reading the ends needs DESCRIBE on the topic. Without that right every group is polled.

A cluster may keep commits in another way than Kafka does. That shows when a group has new offsets while the end of its
partition has not moved since the group's last poll. Then every group is polled for some minutes.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Collection, Mapping
from typing import Final

from sinks.faults import RightsMissing
from sinks.kafka.ports.groups import GroupReader
from streaming.mm2.records import TopicPartition

log = logging.getLogger(__name__)


COMMITS_TOPIC: Final = "__consumer_offsets"

DOUBTED = 600.0
"""Seconds for which all groups are polled after a commit that moved no end. Each such commit starts them again."""


class CommitEnds:
    """The ends of the topic's partitions on one cluster, as of the last two looks."""

    def __init__(self, groups: GroupReader) -> None:
        self._groups = groups
        self._count = 0
        self._ends: dict[int, int] = {}
        self._before: dict[int, int] = {}
        self._moved: frozenset[int] = frozenset()
        self._partition: dict[str, int] = {}
        self._since: dict[str, int] = {}
        self._expected: dict[int, int] = {}
        self._doubted_until = float("-inf")

    def moved(self, partitions: int, now: float) -> frozenset[int] | None:
        """Returns the partitions that moved since the last look, or in the look before. None: unknown.

        Each is returned twice, because an end may be seen a moment before its coordinator shows the commit. The first
        look returns all. `partitions`: how many the topic has, 0 if unknown. If the number changes, the ends say
        nothing: each broker counts the partitions of its own start (`GroupCoordinatorService.startup`). `now` in
        monotonic seconds. Raises ClusterUnreachable.
        """
        seen = self._seen(partitions) if self._counts(partitions) else {}
        stayed = {number: end for number, end in self._expected.items() if seen.get(number) == end}
        self._before, self._ends, self._expected = self._ends, seen, {}
        if stayed:
            self._doubt(stayed, now)
        here = frozenset(
            number for number in range(partitions) if number not in seen or self._before.get(number) != seen[number]
        )
        moved, self._moved = here | self._moved, here if seen else frozenset()
        return moved if seen and now >= self._doubted_until else None

    def groups_in(self, moved: Collection[int], groups: Collection[str]) -> list[str]:
        """Returns the groups whose commits are in a partition that moved."""
        if len(moved) == self._count:
            return list(groups)
        return [group for group in groups if self._partition_of(group) in moved]

    def polled(self, asked: Collection[str], committed: Collection[str]) -> None:
        """Notes groups that were polled after the ends were seen. `committed`: groups with new offsets.

        A group with new offsets whose partition has not moved has committed a moment ago. By the next look the end
        must have moved. A group's last poll counts from the ends before it, because a coordinator may lag behind them.
        """
        for group in asked if self._ends else ():
            number = self._partition_of(group)
            if (end := self._ends.get(number)) is None:
                continue
            if group in committed and self._since.get(group) == end:
                self._expected[number] = end
            if (before := self._before.get(number)) is not None:
                self._since[group] = before

    def forget(self, groups: Collection[str]) -> None:
        """Groups that are gone."""
        for group in groups:
            self._since.pop(group, None)
            self._partition.pop(group, None)

    def _partition_of(self, group: str) -> int:
        # There can be many groups with long names, and each is looked up again and again.
        if group not in self._partition:
            self._partition[group] = commit_partition(group, self._count)
        return self._partition[group]

    def _doubt(self, stayed: Mapping[int, int], now: float) -> None:
        if now >= self._doubted_until:
            number, end = min(stayed.items())
            log.warning(
                "a group of partition %d of %s has new offsets, but the partition still ends at %d. Lockstep polls all"
                " groups until this has not happened for %d minutes",
                *(number, COMMITS_TOPIC, end, DOUBTED // 60),
            )
        self._doubted_until = now + DOUBTED

    def _counts(self, partitions: int) -> bool:
        """Whether coordinators spread groups over so many partitions, as far as Lockstep can know."""
        self._count = self._count or partitions
        return 0 < partitions == self._count

    def _seen(self, partitions: int) -> dict[int, int]:
        try:
            found = self._groups.latest([TopicPartition(COMMITS_TOPIC, number) for number in range(partitions)])
        except RightsMissing:
            return {}
        return {where.partition: end for where, end in found.items.items()}


def commit_partition(group: str, partitions: int) -> int:
    """The partition of `__consumer_offsets`, of so many, that has a group's commits: Kafka's
    `GroupCoordinatorService.partitionFor`, which is `Utils.abs(group.hashCode()) % partitions`.
    """
    hashed = 0
    for (unit,) in struct.iter_unpack(">H", group.encode("utf-16-be", "surrogatepass")):
        hashed = (31 * hashed + unit) & 0xFFFFFFFF
    signed = hashed - (1 << 32) if hashed >> 31 else hashed
    return (0 if signed == -(1 << 31) else abs(signed)) % partitions
