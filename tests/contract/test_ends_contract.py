"""The ends of many logs: of those that are there, of one that is gone, and an answer that has not changed."""

from __future__ import annotations

import time

import confluent_kafka as rd
import pytest

from app.local.waiting import wait_for
from sinks.kafka.jvm import jvm_groups
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.kafka.ports.cluster import TopicSpec
from sinks.kafka.ports.groups import LogRange, ends_of
from streaming.mm2.records import TopicPartition

pytestmark = pytest.mark.kafka
SOON = 180.0
MANY = 50


@pytest.fixture
def many(kafka_cluster: KafkaCluster, unique: str, request: pytest.FixtureRequest) -> list[TopicPartition]:
    """The partitions of a topic, three records in the last."""
    assert kafka_cluster.create_topics({unique: TopicSpec(MANY, 1)}) == {unique: None}
    wait_for(lambda: kafka_cluster.list_topics().get(unique) == MANY, SOON, f"{unique} to be listed")
    producer = rd.Producer({"bootstrap.servers": request.getfixturevalue("clusters").b.bootstrap, "acks": "all"})
    for _ in range(3):
        producer.produce(unique, b"x", partition=MANY - 1)
    assert producer.flush(SOON) == 0
    partitions = [TopicPartition(unique, number) for number in range(MANY)]
    wait_for(lambda: kafka_cluster.groups.ends(partitions).items.keys() == {*partitions}, SOON, "each to have a leader")
    return partitions


def test_the_ends_are_those_of_the_logs(kafka_cluster: KafkaCluster, many: list[TopicPartition]) -> None:
    seen = kafka_cluster.groups.ends(many)
    assert seen.items == {one: LogRange(0, 3 if one.partition == MANY - 1 else 0) for one in many}
    assert not seen.errors
    assert kafka_cluster.groups.latest(many) == ends_of(seen)


def test_partitions_that_are_gone_are_errors_and_cost_the_others_little(
    kafka_cluster: KafkaCluster, many: list[TopicPartition], unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A wait for them would last this long.
    monkeypatch.setattr(jvm_groups, "ENDS_WITHIN", kafka_cluster.admin.timeout)
    gone = [TopicPartition(f"{unique}-none", 0), TopicPartition(unique, MANY)]
    for _ in range(2):
        began = time.monotonic()
        seen = kafka_cluster.groups.ends([*many, *gone])
        assert time.monotonic() - began < kafka_cluster.admin.timeout
        assert seen.items.keys() == {*many}
        assert {where: fault.code for where, fault in seen.errors.items()} == dict.fromkeys(
            gone, "UNKNOWN_TOPIC_OR_PART"
        )


def test_an_answer_that_has_not_changed_is_the_same_object(
    kafka_cluster: KafkaCluster, many: list[TopicPartition], request: pytest.FixtureRequest
) -> None:
    groups = kafka_cluster.groups
    before, logs = groups.latest(many).items, groups.ends(many).items
    assert groups.latest(list(many)).items is before
    assert groups.ends(list(many)).items is logs
    producer = rd.Producer({"bootstrap.servers": request.getfixturevalue("clusters").b.bootstrap, "acks": "all"})
    producer.produce(many[0].topic, b"x", partition=0)
    assert producer.flush(SOON) == 0
    wait_for(lambda: groups.latest(many).items == {**before, many[0]: 1}, SOON, "the record to show")
    assert groups.ends(many).items == {**logs, many[0]: LogRange(0, 1)}
