"""Which groups may have committed, by the ends of `__consumer_offsets`: one request, however many groups there are.

Whatever changes a group's offsets, a commit, a deletion, an expiry, the end of a transaction, is a record in the
partition of that topic which the group belongs to. To see its end needs DESCRIBE on the topic alone; where that is
missing every group has to be asked for. So it is on a cluster that keeps commits in another way than Kafka does, which
shows when a full comparison finds a commit that moved no end.
"""

from __future__ import annotations

import logging
from collections.abc import Collection

from sinks.faults import RightsMissing
from sinks.kafka.ports.groups import GroupReader
from streaming.commits.commit_record import COMMITS_TOPIC, commit_partition
from streaming.mm2.records import TopicPartition

log = logging.getLogger(__name__)


class CommitEnds:
    """The ends of one cluster's partitions of that topic, as they were seen last."""

    def __init__(self, groups: GroupReader) -> None:
        self._groups = groups
        self._ends: dict[int, int] = {}
        self._moved: frozenset[int] = frozenset()
        self._expected: frozenset[int] = frozenset()
        self._told = True

    def moved(self, partitions: int) -> frozenset[int] | None:
        """The partitions that moved since the last time, or moved then; at first, all. None: nobody can tell.

        Twice, because an end may be seen a moment before its coordinator tells of the commit. `partitions`: how many
        the topic has; 0 where that is not known. Raises ClusterUnreachable.
        """
        seen = self._seen(partitions) if self._told else {}
        before, self._ends = self._ends if len(self._ends) <= partitions else {}, seen
        now = frozenset(
            number for number in range(partitions) if number not in seen or before.get(number) != seen[number]
        )
        expected, self._expected = self._expected, frozenset()
        if seen and expected - now:
            self._told, seen = False, {}
            log.warning("groups committed, and the ends of %s did not move: all groups are polled", COMMITS_TOPIC)
        moved, self._moved = now | self._moved, now if seen else frozenset()
        return moved if seen else None

    def found(self, groups: Collection[str], partitions: int) -> None:
        """These had committed, as was seen after the ends were. What had not moved then must have by the next time."""
        self._expected = frozenset(commit_partition(group, partitions) for group in groups) - self._moved

    def _seen(self, partitions: int) -> dict[int, int]:
        try:
            found = self._groups.ends([TopicPartition(COMMITS_TOPIC, number) for number in range(partitions)])
        except RightsMissing:
            return {}
        return {where.partition: log.end for where, log in found.items.items()}


def groups_in(groups: Collection[str], moved: Collection[int], partitions: int) -> list[str]:
    """Those of the groups whose commits are in one of these partitions, of so many."""
    if len(moved) == partitions:
        return list(groups)
    return [group for group in groups if commit_partition(group, partitions) in moved]
