"""Clusters that give no answer when they are asked which ones they are."""

from __future__ import annotations

import threading

import pytest

from sinks.engine.cluster_guard import ClusterGuard
from sinks.faults import ClusterUnreachable
from tests.memory.memory_cluster import MemoryCluster
from tests.sinks.builders import FLOW


@pytest.fixture
def source() -> MemoryCluster:
    return MemoryCluster("a", "id-of-a")


@pytest.fixture
def target() -> MemoryCluster:
    return MemoryCluster("b", "id-of-b")


def test_clusters_that_are_both_silent_are_both_named(source: MemoryCluster, target: MemoryCluster) -> None:
    source.reachable = target.reachable = False
    with pytest.raises(ClusterUnreachable, match=r"^a: no answer.* b: no answer") as raised:
        ClusterGuard(FLOW, source, target).check_ids()
    assert raised.value.both


@pytest.mark.parametrize("alias", ["a", "b"])
def test_a_cluster_that_is_silent_alone_is_named_alone(
    source: MemoryCluster, target: MemoryCluster, alias: str
) -> None:
    (source if alias == "a" else target).reachable = False
    with pytest.raises(ClusterUnreachable, match=rf"^{alias}: no answer [^:]*$") as raised:
        ClusterGuard(FLOW, source, target).check_ids()
    assert not raised.value.both


def test_two_clusters_are_waited_for_at_the_same_time() -> None:
    both = threading.Barrier(2)

    class Slow(MemoryCluster):
        def cluster_id(self) -> str:
            both.wait(timeout=60)
            return super().cluster_id()

    assert ClusterGuard(FLOW, Slow("a", "id-of-a"), Slow("b", "id-of-b")).ids() == {"a": "id-of-a", "b": "id-of-b"}
