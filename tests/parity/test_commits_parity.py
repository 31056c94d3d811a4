"""Offset commits in the bytes that Kafka's own group coordinator writes."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from bench.commit_log import LAST_OTHER_KEY, LAST_VALUE, Commit, Seen, read_record
from sinks.kinds.offsets.commit_ends import commit_partition
from streaming.mm2.records import MAX_INT32, MAX_INT64, TopicPartition
from tests.parity.kafka_classes import Kafka

NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=40)
VERSIONS = st.sampled_from(range(LAST_VALUE + 1))


def key_of(kafka: Kafka, legacy: bool, group: str, topic: str, partition: int) -> bytes:
    generated = kafka.jvm.org.apache.kafka.coordinator.group.generated
    key = (generated.LegacyOffsetCommitKey if legacy else generated.OffsetCommitKey)()
    key = key.setGroup(group).setTopic(topic).setPartition(partition)
    return bytes(kafka.jvm.org.apache.kafka.common.protocol.MessageUtil.toCoordinatorTypePrefixedBytes(key))


def value_of(kafka: Kafka, version: int, offset: int, metadata: str) -> bytes:
    value = kafka.jvm.org.apache.kafka.coordinator.group.generated.OffsetCommitValue()
    value = value.setOffset(offset).setMetadata(metadata)
    if version == 4:
        value = value.setTopicId(kafka.jvm.org.apache.kafka.common.Uuid.randomUuid())
    return bytes(kafka.jvm.org.apache.kafka.common.protocol.MessageUtil.toVersionPrefixedBytes(version, value))


@settings(max_examples=150, deadline=None)
@given(NAMES, NAMES, st.integers(0, MAX_INT32), st.integers(0, MAX_INT64), VERSIONS, NAMES, st.booleans())
@example("g", "t", 0, 0, 4, "", False)
def test_what_kafka_writes_of_a_commit_is_read_as_that_commit(
    kafka: Kafka, group: str, topic: str, partition: int, offset: int, version: int, metadata: str, legacy: bool
) -> None:
    key, value = key_of(kafka, legacy, group, topic, partition), value_of(kafka, version, offset, metadata)
    where = TopicPartition(topic, partition)
    assert read_record(key, value) == (Seen.COMMIT, Commit(group, where, offset))
    assert read_record(key, None) == (Seen.COMMIT, Commit(group, where, None))


def test_every_other_type_of_record_that_kafka_has_is_known_as_one(kafka: Kafka) -> None:
    types = kafka.jvm.org.apache.kafka.coordinator.group.generated.CoordinatorRecordType
    others = {one.id() for one in types.values()} - {0, 1}
    assert others
    assert max(others) == LAST_OTHER_KEY
    assert {read_record(number.to_bytes(2, "big") + b"\0\0", b"")[0] for number in others} == {Seen.OTHER}
    value = kafka.jvm.org.apache.kafka.coordinator.group.generated.OffsetCommitValue
    assert value.HIGHEST_SUPPORTED_VERSION == LAST_VALUE


@settings(max_examples=150, deadline=None)
@given(NAMES, st.integers(1, 200))
@example("polygenelubricants", 50)
def test_a_group_has_the_partition_that_kafka_computes(kafka: Kafka, group: str, partitions: int) -> None:
    """The example has the hash code -2147483648, of which there is no absolute value."""
    utils = kafka.jvm.org.apache.kafka.common.utils.Utils
    code = kafka.jvm.java.util.Objects.hashCode(group)
    assert commit_partition(group, partitions) == utils.abs(code) % partitions
