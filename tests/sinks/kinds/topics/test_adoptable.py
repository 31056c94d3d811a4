"""A topic that is adopted may be deleted with its records: so it is certainly a copy, whole, and known by its id."""

from __future__ import annotations

import pytest

from sinks.flow_settings import FlowSettings
from sinks.kinds.shared_listings import list_both
from sinks.kinds.topics.survey import INTERNAL, NO_ID, OTHERS_WRITE, adoptable_topics
from sinks.ledger.adoption import Alike
from tests.memory.memory_cluster import MemoryCluster
from tests.sinks.builders import flow_settings, put_topic
from tests.sinks.kinds.acls.acl_builders import identity


def adoptable(source: dict[str, int], target: dict[str, int], settings: FlowSettings | None = None) -> Alike:
    a, b = MemoryCluster("a", "id-of-a"), MemoryCluster("b", "id-of-b")
    for cluster, topics in ((a, source), (b, target)):
        for topic, partitions in topics.items():
            put_topic(cluster, topic, partitions)
    chosen = settings or flow_settings()
    return adoptable_topics(chosen, list_both(chosen, a, b), b.topic_ids)


def test_a_copy_with_as_many_partitions_is_adopted_by_its_id() -> None:
    found = adoptable({"x": 3}, {"a.x": 3})
    assert list(found.items) == [("a.x",)]
    assert found.items["a.x",]


@pytest.mark.parametrize(
    ("source", "target"),
    [
        pytest.param({"x": 3}, {"a.x": 2}, id="fewer partitions"),
        pytest.param({"x": 3}, {"a.x": 4}, id="more partitions"),
        pytest.param({"x": 3}, {"x": 3}, id="no copy"),
        pytest.param({"y": 3}, {"a.x": 3}, id="not on the source"),
        pytest.param({"x.replica": 1}, {"a.x.replica": 1}, id="not replicated"),
        pytest.param({"lockstep-ledger.c.internal": 1}, {"a.lockstep-ledger.c.internal": 1}, id="Lockstep's own"),
    ],
)
def test_what_is_no_copy_of_a_replicated_topic_is_left_alone(source: dict[str, int], target: dict[str, int]) -> None:
    assert adoptable(source, target) == Alike()


def test_under_the_identity_policy_none_is_adopted_and_it_is_said_why() -> None:
    found = adoptable({"x": 1}, {"x": 1}, flow_settings(policy=identity()))
    assert (found.items, found.refused) == ({}, {("x",): OTHERS_WRITE})


def test_mm2s_heartbeats_are_not_adopted() -> None:
    assert adoptable({"heartbeats": 1}, {"a.heartbeats": 1}).refused == {("a.heartbeats",): INTERNAL}


def test_without_an_id_none_is_adopted() -> None:
    a, b, settings = MemoryCluster("a", "id-of-a"), MemoryCluster("b", "id-of-b"), flow_settings()
    put_topic(a, "x")
    put_topic(b, "a.x")
    found = adoptable_topics(settings, list_both(settings, a, b), lambda names: dict.fromkeys(names, ""))
    assert (found.items, found.refused) == ({}, {("a.x",): NO_ID})
