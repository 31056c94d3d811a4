"""Replication cycles: flows by which a topic would come back to its own cluster, and be replicated there again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from streaming.flow import Flow
from streaming.mm2.replication_policy import ReplicationPolicy, is_cycle

PROBED_TOPIC = "topic"
"""Any name that no policy treats apart."""


def endless_cycles(policies: Mapping[Flow, ReplicationPolicy]) -> list[tuple[Flow, ...]]:
    """The cycles that no policy ends, each once, sorted; of those through a flow the shortest.

    A policy that puts the alias into the name sees where a topic has been. IdentityReplicationPolicy cannot, so there
    only the topic filters keep a topic from going round for ever.
    """
    cycles = set()
    for flow in policies:
        back = _shortest(policies, flow.target, flow.source)
        if back and _is_endless((flow, *back), policies):
            whole = (flow, *back)
            first = whole.index(min(whole))
            cycles.add(whole[first:] + whole[:first])
    return sorted(cycles)


def _shortest(flows: Iterable[Flow], start: str, end: str) -> tuple[Flow, ...]:
    """The fewest flows from one cluster to another; none where no way leads there."""
    ordered = sorted(flows)
    ways: list[tuple[Flow, ...]] = [(flow,) for flow in ordered if flow.source == start]
    reached = {start}
    for way in ways:
        if way[-1].target == end:
            return way
        if way[-1].target not in reached:
            reached.add(way[-1].target)
            ways += [(*way, flow) for flow in ordered if flow.source == way[-1].target]
    return ()


def _is_endless(whole: tuple[Flow, ...], policies: Mapping[Flow, ReplicationPolicy]) -> bool:
    topic = PROBED_TOPIC
    for flow in whole:
        if is_cycle(policies[flow], topic, flow.target):
            return False
        topic = policies[flow].format_remote_topic(flow.source, topic)
    return True
