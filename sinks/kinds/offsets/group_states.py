"""What groups have on a cluster, offsets and members: two requests, side by side where the groups are many."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from sinks.background import awaited, begun
from sinks.faults import Observed
from sinks.kafka.ports.groups import GroupReader, Offsets

MANY = 200
"""Groups from whose number on the two readings take long enough to be worth a thread."""


class GroupStates(NamedTuple):
    """By group: committed offsets, and how many members it has."""

    committed: Observed[str, Offsets]
    members: Observed[str, int]


def read_states(groups: GroupReader, names: Collection[str]) -> GroupStates:
    """Raises ClusterUnreachable, RightsMissing, CoordinatorUnavailable."""
    if len(names) < MANY:
        return GroupStates(groups.committed(names), groups.members(names))
    members = begun(lambda: groups.members(names), "group-members")
    return GroupStates(groups.committed(names), awaited(members))
