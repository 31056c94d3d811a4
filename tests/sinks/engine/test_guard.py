"""Two clusters, and always the same two."""

from __future__ import annotations

import pytest

from sinks.engine.guard import Guard
from sinks.engine.ledger import Entry, Ledger
from sinks.faults import ClusterUnreachable, WrongCluster
from sinks.kafka.memory.memory_cluster import MemoryCluster
from tests.sinks.builders import FLOW

TOPIC = "lockstep-ledger.a.internal"


@pytest.fixture
def source() -> MemoryCluster:
    return MemoryCluster("a", "id-of-a")


@pytest.fixture
def target() -> MemoryCluster:
    return MemoryCluster("b", "id-of-b")


def opened(target: MemoryCluster) -> Ledger:
    """The ledger, read now."""
    return Ledger(TOPIC, target, target, 1)


def test_first_contact_pins_both_ids(source: MemoryCluster, target: MemoryCluster) -> None:
    Guard(FLOW, source, target).check(opened(target))
    assert opened(target).get(Entry.CLUSTER_ID, "a") == "id-of-a"
    assert opened(target).get(Entry.CLUSTER_ID, "b") == "id-of-b"


def test_same_clusters_again_write_nothing(source: MemoryCluster, target: MemoryCluster) -> None:
    guard = Guard(FLOW, source, target)
    guard.check(opened(target))
    records, writes = target.read_log(TOPIC), target.writes
    guard.check(opened(target))
    assert (target.read_log(TOPIC), target.writes) == (records, writes)


@pytest.mark.parametrize("alias", ["a", "b"])
def test_another_id_stops_and_nothing_is_written(source: MemoryCluster, target: MemoryCluster, alias: str) -> None:
    guard = Guard(FLOW, source, target)
    guard.check(opened(target))
    records, writes = target.read_log(TOPIC), target.writes
    (source if alias == "a" else target).id = "somewhere-else"
    with pytest.raises(WrongCluster, match=rf"{alias}\.bootstrap\.servers leads to the cluster somewhere-else"):
        guard.check(opened(target))
    assert (target.read_log(TOPIC), target.writes) == (records, writes)


def test_one_cluster_on_both_sides_is_no_flow(source: MemoryCluster) -> None:
    with pytest.raises(WrongCluster, match="lead to one cluster, id-of-a: a flow needs two"):
        Guard(FLOW, source, source).check(opened(source))
    assert source.writes == 0


def test_comparing_writes_nothing(source: MemoryCluster, target: MemoryCluster) -> None:
    entries = Guard(FLOW, source, target).compare(Ledger(TOPIC, target, None, 1))
    assert entries == {(Entry.CLUSTER_ID, ("a",)): "id-of-a", (Entry.CLUSTER_ID, ("b",)): "id-of-b"}
    assert target.writes == 0


def test_silent_cluster_pins_nothing(source: MemoryCluster, target: MemoryCluster) -> None:
    source.reachable = False
    with pytest.raises(ClusterUnreachable):
        Guard(FLOW, source, target).check(opened(target))
    assert target.writes == 0
