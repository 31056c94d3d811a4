"""The ids of many topics are the same through the JVM as through librdkafka, which is asked where one is gone."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import closing
from typing import Any

import pytest

from app.local.waiting import wait_for
from sinks.faults import RightsMissing
from sinks.kafka.jvm.jvm_committed import BulkGroups
from sinks.kafka.jvm.jvm_ends import JvmEnds
from sinks.kafka.jvm.jvm_topic_ids import FEW, JvmTopicIds
from sinks.kafka.librdkafka.kafka_cluster import KafkaCluster
from sinks.kafka.ports.cluster import TopicSpec

pytestmark = [pytest.mark.kafka, pytest.mark.spark]
SOON = 30.0


@pytest.fixture
def many(kafka_cluster: KafkaCluster, unique: str) -> list[str]:
    names = [f"{unique}-{number}" for number in range(FEW)]
    assert not [fault for fault in kafka_cluster.create_topics(dict.fromkeys(names, TopicSpec(1, 1))).values() if fault]
    wait_for(lambda: kafka_cluster.list_topics().keys() >= {*names}, SOON, "the topics to be listed")
    return names


@pytest.fixture
def groups(request: pytest.FixtureRequest, kafka_cluster: KafkaCluster) -> Iterator[BulkGroups]:
    properties = {"bootstrap.servers": request.getfixturevalue("clusters").b.bootstrap}
    made_of = ("b", request.getfixturevalue("spark").sparkContext._gateway, properties, lambda alias, api, result: None)
    with closing(JvmEnds(*made_of)) as ends, closing(BulkGroups(kafka_cluster.groups, ends, *made_of)) as made:
        yield made


def test_the_jvm_alone_tells_the_ids_of_many_topics(
    groups: BulkGroups, kafka_cluster: KafkaCluster, many: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = kafka_cluster.topic_ids(many)
    assert len({*expected.values()}) == len(many)

    def nobody(topics: Collection[str]) -> dict[str, str]:
        raise AssertionError(f"asked for {topics}")

    monkeypatch.setattr(kafka_cluster.groups, "topic_ids", nobody)
    assert groups.topic_ids(many) == expected


def test_a_topic_that_is_gone_has_none_and_the_others_have_theirs(
    groups: BulkGroups, kafka_cluster: KafkaCluster, many: list[str], unique: str
) -> None:
    assert groups.topic_ids([*many, f"{unique}-none"]) == kafka_cluster.topic_ids(many)


def test_where_javas_client_cannot_log_in_the_others_are_asked(
    kafka_cluster: KafkaCluster, many: list[str], request: pytest.FixtureRequest
) -> None:
    def refused() -> Any:
        raise RightsMissing("cluster b: Java's client cannot be made")

    gateway = request.getfixturevalue("spark").sparkContext._gateway
    ids = JvmTopicIds("b", gateway, refused, 5000, lambda alias, api, result: None)
    expected = kafka_cluster.topic_ids(many)
    assert ids.of(many, kafka_cluster.topic_ids) == expected
    assert len({*expected.values()}) == len(many)
