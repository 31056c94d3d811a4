"""When a cluster in memory answers: what its topics, ACLs, users and groups have in common."""

from __future__ import annotations

from collections.abc import Collection

from sinks.faults import ClusterUnreachable, ItemFault, RightsMissing

GONE = ItemFault("UNKNOWN_TOPIC_OR_PART", "This server does not host this topic-partition.", retriable=True)
"""What a broker says of a topic that is not there."""


def answer(alias: str, reachable: bool) -> None:
    """Raises ClusterUnreachable where it does not."""
    if not reachable:
        raise ClusterUnreachable(f"{alias}: no answer (in-memory cluster)")


def permit(alias: str, reachable: bool, denied: Collection[str], operation: str) -> None:
    """Raises ClusterUnreachable, and RightsMissing for an operation (`describe`, `alter`) that is denied."""
    answer(alias, reachable)
    if operation in denied:
        raise RightsMissing(f"{alias}: not permitted to {operation} (in-memory cluster)")
