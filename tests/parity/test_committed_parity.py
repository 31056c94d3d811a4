"""Committed offsets come out of a JVM as Kafka's client has them there, whatever their groups and metadata are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sinks.kafka.jvm.jvm_groups import LEFT_OUT, offsets_of
from streaming.mm2.records import MAX_INT64, TopicPartition
from tests.parity.kafka_classes import Kafka

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=20)
PLACES = st.builds(TopicPartition, st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True), st.integers(0, 999))
COMMITTED = st.dictionaries(
    TEXTS, st.dictionaries(PLACES, st.one_of(st.none(), st.integers(-1, MAX_INT64)), max_size=3), max_size=4
)


def answer_of(kafka: Kafka, committed: Mapping[str, Mapping[TopicPartition, int | None]], metadata: str) -> Any:
    """What `listConsumerGroupOffsets(...).all()` comes to."""
    answer, optional = kafka.jvm.java.util.HashMap(), kafka.jvm.java.util.Optional
    for group, offsets in committed.items():
        of_group = kafka.jvm.java.util.HashMap()
        for where, offset in offsets.items():
            key = kafka.jvm.org.apache.kafka.common.TopicPartition(where.topic, where.partition)
            of_group.put(key, None if offset is None else made(kafka, max(offset, 0), optional.of(7), metadata))
        answer.put(group, of_group)
    return answer


def made(kafka: Kafka, offset: int, epoch: Any, metadata: str) -> Any:
    long = kafka.jvm.java.lang.Long.valueOf(str(offset))
    return kafka.jvm.org.apache.kafka.clients.consumer.OffsetAndMetadata(long, epoch, metadata)


@settings(max_examples=60, deadline=None)
@given(COMMITTED, TEXTS)
@example({"g": {TopicPartition("t-1", 0): 5}}, 'it\'s {at} [noon], "here"\n')
@example({"}}, {": {TopicPartition("t", 0): MAX_INT64}, "'": {}}, "'}}, {t-1=OffsetAndMetadata{offset=9")
def test_offsets_are_those_of_kafkas_map(
    kafka: Kafka, committed: dict[str, dict[TopicPartition, int | None]], metadata: str
) -> None:
    expected = {
        group: {where: max(offset, 0) for where, offset in offsets.items() if offset is not None}
        for group, offsets in committed.items()
    }
    assert offsets_of(kafka.rows.read(answer_of(kafka, committed, metadata), LEFT_OUT)) == expected


def test_metadata_stays_in_the_jvm(kafka: Kafka) -> None:
    written = kafka.rows.text(answer_of(kafka, {"g": {TopicPartition("t", 0): 5}}, "m" * 4096), LEFT_OUT)
    assert written == '{"g":{"t-0":{"offset":5}}}'


def test_group_whose_offsets_have_another_shape_alone_is_left_out() -> None:
    others = '"h":{"t-0":{"position":5}},"i":{"t":{"offset":1}},"j":null,"k":{"t-0":{"offset":1.5}}'
    text = '{"g":{"t-0":{"offset":5},"t-1":null,"t-2":{"offset":-1}},' + others + "}"
    assert offsets_of(orjson.loads(text)) == {"g": {TopicPartition("t", 0): 5}}
