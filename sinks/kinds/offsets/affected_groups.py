"""Groups whose offsets may be nearer by what MM2 wrote. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from sinks.kinds.offsets.direction import GroupOffset
from streaming.mm2.records import TopicPartition

Rows = Mapping[str, Sequence[GroupOffset]]
"""What is known of each group."""


def not_settled(groups: Collection[str], rows: Rows) -> set[str]:
    """Those of the groups that a checkpoint can bring nearer; what one says of a commit, the commit says as well."""
    return {group for group in groups if not (known := rows.get(group)) or not all(row.settled for row in known)}


def groups_on(partitions: Collection[TopicPartition], remote: Mapping[str, str], rows: Rows) -> set[str]:
    """Groups with offsets on these partitions of the source: what MM2 sent again can bring them nearer.

    `remote`: the names of topics on the target.
    """
    there = {TopicPartition(remote[where.topic], where.partition) for where in partitions if where.topic in remote}
    if not there:
        return set()
    return {group for group, known in rows.items() if any(row.where in there for row in known)}
