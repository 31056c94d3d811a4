"""One suite for every cluster: what `sinks.kafka.ports.cluster` promises of topics and configs."""

from __future__ import annotations

import pytest

from app.local.waiting import wait_for
from sinks.faults import ItemFault
from sinks.kafka.ports.cluster import Cluster, Origin, TopicSpec

pytestmark = pytest.mark.filterwarnings("ignore:alter_configs has been deprecated")
"""The old API is what `use.incremental.alter.configs=never` asks for."""


SOON = 180.0
"""Seconds until what was written must be visible."""


def made(cluster: Cluster, *topics: str, partitions: int = 1, **configs: str) -> None:
    """Topics that are there and visible; underscores in config names stand for dots."""
    spec = TopicSpec(partitions, 1, tuple((name.replace("_", "."), value) for name, value in configs.items()))
    assert cluster.create_topics(dict.fromkeys(topics, spec)) == dict.fromkeys(topics)
    wait_for(lambda: set(topics) <= cluster.list_topics().keys(), SOON, f"{topics} to be listed")
    for topic in topics:
        shows(cluster, topic, **configs)


def overrides(cluster: Cluster, topic: str) -> dict[str, str | None] | None:
    """What is set on the topic itself; None while it is not there."""
    seen = cluster.describe_topic_configs([topic]).items.get(topic)
    return None if seen is None else {name: entry.value for name, entry in seen.items() if entry.is_override}


def shows(cluster: Cluster, topic: str, **configs: str) -> None:
    """Waits until exactly these are set on the topic."""
    wanted = {name.replace("_", "."): value for name, value in configs.items()}
    wait_for(lambda: overrides(cluster, topic) == wanted, SOON, f"{topic} to have {wanted}")


def fault_of(faults: dict[str, ItemFault | None], topic: str) -> ItemFault:
    """The fault of one topic."""
    fault = faults[topic]
    assert fault is not None
    return fault


def test_cluster_answers_with_one_id(cluster: Cluster) -> None:
    assert cluster.cluster_id() == cluster.cluster_id() != ""


def test_topics_are_listed_with_their_partition_counts(cluster: Cluster, unique: str) -> None:
    made(cluster, unique, partitions=3)
    assert cluster.list_topics()[unique] == 3
    assert cluster.find_topic(unique) == (3, cluster.topic_ids([unique])[unique])
    assert cluster.find_topic(f"{unique}-none") is None


def test_created_topic_has_its_overrides_and_every_other_config_at_a_default(cluster: Cluster, unique: str) -> None:
    made(cluster, unique, retention_ms="1000", cleanup_policy="compact")
    seen = cluster.describe_topic_configs([unique]).items[unique]
    assert {name for name, entry in seen.items() if entry.origin is Origin.TOPIC} == {"retention.ms", "cleanup.policy"}
    assert seen["retention.bytes"].value == "-1"
    assert not seen["retention.bytes"].is_override
    assert not any(entry.sensitive or entry.read_only for entry in seen.values())


def test_topic_that_exists_is_a_fault_of_its_own_and_stays_as_it_is(cluster: Cluster, unique: str) -> None:
    made(cluster, unique, partitions=2, retention_ms="1000")
    faults = cluster.create_topics({unique: TopicSpec(5, 1), f"{unique}-new": TopicSpec(1, 1)})
    assert fault_of(faults, unique).code == "TOPIC_ALREADY_EXISTS"
    assert not fault_of(faults, unique).retriable
    assert faults[f"{unique}-new"] is None
    assert cluster.list_topics()[unique] == 2
    assert overrides(cluster, unique) == {"retention.ms": "1000"}


def test_topic_with_an_unknown_config_is_refused_and_not_made_but_its_neighbour_is(
    cluster: Cluster, unique: str
) -> None:
    wrong = TopicSpec(1, 1, (("no.such.config", "1"), ("retention.ms", "1000")))
    faults = cluster.create_topics({unique: wrong, f"{unique}-new": TopicSpec(1, 1)})
    assert fault_of(faults, unique).code == "INVALID_CONFIG"
    assert "no.such.config" in fault_of(faults, unique).message
    assert not fault_of(faults, unique).retriable
    wait_for(lambda: f"{unique}-new" in cluster.list_topics(), SOON, "the neighbour to be listed")
    assert unique not in cluster.list_topics()


def test_topics_grow_and_what_is_as_large_already_is_no_fault(cluster: Cluster, unique: str) -> None:
    made(cluster, unique, f"{unique}-same", partitions=2)
    faults = cluster.create_partitions({unique: 4, f"{unique}-same": 2})
    assert faults == {unique: None, f"{unique}-same": None}
    wait_for(lambda: cluster.list_topics()[unique] == 4, SOON, "4 partitions")
    assert cluster.list_topics()[f"{unique}-same"] == 2


def test_growing_to_fewer_shrinks_nothing(cluster: Cluster, unique: str) -> None:
    made(cluster, unique, partitions=3)
    assert cluster.create_partitions({unique: 1}) == {unique: None}
    assert cluster.list_topics()[unique] == 3


def test_growing_a_missing_topic_is_a_fault_of_its_own(cluster: Cluster, unique: str) -> None:
    made(cluster, unique)
    faults = cluster.create_partitions({f"{unique}-missing": 2, unique: 2})
    assert fault_of(faults, f"{unique}-missing").retriable
    assert faults[unique] is None
    wait_for(lambda: cluster.list_topics()[unique] == 2, SOON, "2 partitions")


def test_deleted_topic_is_gone_and_one_that_is_gone_already_is_no_fault(cluster: Cluster, unique: str) -> None:
    made(cluster, unique)
    assert cluster.delete_topics([unique, f"{unique}-missing"]) == {unique: None, f"{unique}-missing": None}
    wait_for(lambda: unique not in cluster.list_topics(), SOON, "the topic to be gone")


def test_topic_that_has_another_id_by_now_is_not_deleted(cluster: Cluster, unique: str) -> None:
    made(cluster, unique)
    others = f"{unique}-other"
    made(cluster, others)
    (former, now) = (cluster.topic_ids([name])[name] for name in (unique, others))
    wait_for(lambda: {unique, others} <= cluster.list_topics().keys(), SOON, "both topics to be listed")
    assert (cluster.listed_ids[unique], cluster.listed_ids[others]) == (former, now)
    assert cluster.delete_topics([unique], {unique: former}) == {unique: None}
    wait_for(lambda: unique not in cluster.list_topics(), SOON, "the topic to be gone")
    made(cluster, unique)
    assert cluster.delete_topics([unique, others], {unique: former, others: now}) == {unique: None, others: None}
    wait_for(lambda: others not in cluster.list_topics(), SOON, "the other topic to be gone")
    assert unique in cluster.list_topics()


def test_missing_topic_is_a_retriable_error_beside_the_others_configs(cluster: Cluster, unique: str) -> None:
    made(cluster, unique)
    seen = cluster.describe_topic_configs([unique, f"{unique}-missing"])
    assert seen.items.keys() == {unique}
    assert seen.errors.keys() == {f"{unique}-missing"}
    assert seen.errors[f"{unique}-missing"].code == "UNKNOWN_TOPIC_OR_PART"
    assert seen.errors[f"{unique}-missing"].retriable


def test_topic_asked_for_twice_is_answered_once(cluster: Cluster, unique: str) -> None:
    made(cluster, unique)
    seen = cluster.describe_topic_configs([unique, unique])
    assert list(seen.items) == [unique]
    assert not seen.errors


def test_altering_sets_and_deletes_and_leaves_other_keys_alone(cluster: Cluster, unique: str) -> None:
    made(cluster, unique, retention_ms="1000", retention_bytes="7", min_insync_replicas="1")
    faults = cluster.alter_topic_configs(
        {unique: {"retention.ms": "2000", "retention.bytes": None, "segment.bytes": "2097152"}}
    )
    assert faults == {unique: None}
    shows(cluster, unique, retention_ms="2000", segment_bytes="2097152", min_insync_replicas="1")


def test_deleting_what_is_not_set_is_no_fault(cluster: Cluster, unique: str) -> None:
    made(cluster, unique, retention_ms="1000")
    assert cluster.alter_topic_configs({unique: {"retention.bytes": None}}) == {unique: None}
    assert overrides(cluster, unique) == {"retention.ms": "1000"}


def test_altering_is_all_or_nothing_per_topic(cluster: Cluster, unique: str) -> None:
    made(cluster, unique, f"{unique}-other", retention_ms="1000")
    faults = cluster.alter_topic_configs(
        {unique: {"retention.ms": "2000", "no.such.config": "1"}, f"{unique}-other": {"retention.ms": "2000"}}
    )
    assert fault_of(faults, unique).code == "INVALID_CONFIG"
    assert "no.such.config" in fault_of(faults, unique).message
    assert not fault_of(faults, unique).retriable
    assert faults[f"{unique}-other"] is None
    shows(cluster, f"{unique}-other", retention_ms="2000")
    assert overrides(cluster, unique) == {"retention.ms": "1000"}


def test_altering_a_missing_topic_is_a_retriable_fault(cluster: Cluster, unique: str) -> None:
    made(cluster, unique)
    faults = cluster.alter_topic_configs({f"{unique}-missing": {"retention.ms": "1"}, unique: {"retention.ms": "1000"}})
    assert fault_of(faults, f"{unique}-missing").retriable
    assert faults[unique] is None


def test_replacing_keeps_exactly_what_it_is_given(cluster: Cluster, unique: str) -> None:
    made(cluster, unique, f"{unique}-bare", retention_ms="1000", retention_bytes="7")
    faults = cluster.replace_topic_configs(
        {unique: {"retention.ms": "2000", "segment.bytes": "2097152"}, f"{unique}-bare": {}}
    )
    assert faults == {unique: None, f"{unique}-bare": None}
    shows(cluster, unique, retention_ms="2000", segment_bytes="2097152")
    shows(cluster, f"{unique}-bare")


def test_replacing_is_all_or_nothing_per_topic(cluster: Cluster, unique: str) -> None:
    made(cluster, unique, f"{unique}-other", retention_ms="1000")
    faults = cluster.replace_topic_configs(
        {unique: {"retention.bytes": "7", "no.such.config": "1"}, f"{unique}-other": {"retention.ms": "2000"}}
    )
    assert fault_of(faults, unique).code == "INVALID_CONFIG"
    assert faults[f"{unique}-other"] is None
    shows(cluster, f"{unique}-other", retention_ms="2000")
    assert overrides(cluster, unique) == {"retention.ms": "1000"}


def test_replacing_on_a_missing_topic_is_a_retriable_fault(cluster: Cluster, unique: str) -> None:
    faults = cluster.replace_topic_configs({f"{unique}-missing": {"retention.ms": "1"}})
    assert fault_of(faults, f"{unique}-missing").retriable


def test_asking_for_nothing_answers_with_nothing(cluster: Cluster) -> None:
    assert cluster.describe_topic_configs([]).items == {}
    assert cluster.create_topics({}) == {}
    assert cluster.create_partitions({}) == {}
    assert cluster.delete_topics([]) == {}
    assert cluster.alter_topic_configs({}) == {}
    assert cluster.replace_topic_configs({}) == {}
