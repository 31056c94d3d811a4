"""The ends of many logs are the same through the JVM as through librdkafka, which is asked for what the JVM lacks."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import closing

import confluent_kafka as rd
import pytest

from app.local.waiting import wait_for
from sinks.kafka.jvm.jvm_ends import FEW, Ends, JvmEnds, JvmRecords, Latest
from sinks.kafka.librdkafka.kafka_cluster import KafkaCluster
from sinks.kafka.librdkafka.rd_records import KafkaRecords
from sinks.kafka.ports.cluster import TopicSpec
from sinks.kafka.ports.groups import LogRange, ends_of
from streaming.mm2.records import TopicPartition

pytestmark = [pytest.mark.kafka, pytest.mark.spark]
SOON = 30.0


@pytest.fixture
def many(kafka_cluster: KafkaCluster, unique: str, request: pytest.FixtureRequest) -> list[TopicPartition]:
    """The partitions of a topic, three records in the last."""
    assert kafka_cluster.create_topics({unique: TopicSpec(FEW, 1)}) == {unique: None}
    wait_for(lambda: kafka_cluster.list_topics().get(unique) == FEW, SOON, f"{unique} to be listed")
    producer = rd.Producer({"bootstrap.servers": request.getfixturevalue("clusters").b.bootstrap, "acks": "all"})
    for _ in range(3):
        producer.produce(unique, b"x", partition=FEW - 1)
    assert producer.flush(SOON) == 0
    partitions = [TopicPartition(unique, number) for number in range(FEW)]
    wait_for(lambda: kafka_cluster.groups.ends(partitions).items.keys() == {*partitions}, SOON, "each to have a leader")
    return partitions


@pytest.fixture
def ends(request: pytest.FixtureRequest) -> Iterator[JvmEnds]:
    properties = {"bootstrap.servers": request.getfixturevalue("clusters").b.bootstrap}
    gateway = request.getfixturevalue("spark").sparkContext._gateway
    with closing(JvmEnds("b", gateway, properties, lambda alias, api, result: None)) as made:
        yield made


def nobody(partitions: Collection[TopicPartition]) -> Ends:
    """Must not be asked."""
    raise AssertionError(f"asked for {partitions}")


@pytest.mark.parametrize("committed", [False, True])
def test_the_jvm_alone_tells_the_ends_of_logs_that_are_there(
    ends: JvmEnds, many: list[TopicPartition], committed: bool
) -> None:
    seen = ends.of(many, nobody, committed=committed)
    assert seen.items == {one: LogRange(0, 3 if one.partition == FEW - 1 else 0) for one in many}
    assert not seen.errors


def test_a_partition_that_is_gone_is_an_error_and_costs_the_others_no_second_question(
    ends: JvmEnds, many: list[TopicPartition], kafka_cluster: KafkaCluster, unique: str
) -> None:
    asked = [*many, gone := TopicPartition(f"{unique}-none", 0)]
    expected = kafka_cluster.groups.ends(asked)
    assert ends.of(asked, kafka_cluster.groups.ends) == expected
    assert {where: fault.code for where, fault in expected.errors.items()} == {gone: "UNKNOWN_TOPIC_OR_PART"}

    def only_gone(partitions: Collection[TopicPartition]) -> Ends:
        assert gone in partitions
        assert len(partitions) == 2
        return kafka_cluster.groups.ends(partitions)

    assert ends.of(asked, only_gone) == expected


def test_the_ends_alone_are_those_of_the_logs(
    ends: JvmEnds, many: list[TopicPartition], kafka_cluster: KafkaCluster, unique: str
) -> None:
    asked = [*many, TopicPartition(f"{unique}-none", 0)]
    expected = ends_of(kafka_cluster.groups.ends(asked))
    assert kafka_cluster.groups.latest(asked) == expected
    for _ in range(2):
        assert ends.latest(asked, kafka_cluster.groups.latest) == expected


def test_an_answer_that_has_not_changed_is_the_same_object(
    ends: JvmEnds, many: list[TopicPartition], request: pytest.FixtureRequest
) -> None:
    def none(partitions: Collection[TopicPartition]) -> Latest:
        raise AssertionError(f"asked for {partitions}")

    before, logs = ends.latest(many, none).items, ends.of(many, nobody).items
    assert ends.latest(list(many), none).items is before
    assert ends.of(list(many), nobody).items is logs
    producer = rd.Producer({"bootstrap.servers": request.getfixturevalue("clusters").b.bootstrap, "acks": "all"})
    producer.produce(many[0].topic, b"x", partition=0)
    assert producer.flush(SOON) == 0
    wait_for(lambda: ends.latest(many, none).items == {**before, many[0]: 1}, SOON, "the record to show")
    assert ends.of(many, nobody).items == {**logs, many[0]: LogRange(0, 1)}


def test_a_reader_of_records_in_a_job_tells_the_same_ends(
    ends: JvmEnds, many: list[TopicPartition], kafka_cluster: KafkaCluster
) -> None:
    for isolation in ("read_committed", "read_uncommitted"):
        plain: KafkaRecords = kafka_cluster.records(isolation)
        through_jvm = JvmRecords(kafka_cluster.records(isolation), ends, isolation)
        assert through_jvm.ends(many) == plain.ends(many)
        assert through_jvm.readable(many) == plain.readable(many)
        plain.close()
        through_jvm.close()
