"""The columns against the codec: the same verdict and the same record for the same bytes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's own guides use
from pyspark_test import assert_pyspark_df_equal

from streaming.decode import DECODED_SCHEMA, decode
from streaming.errors import MalformedRecord
from streaming.flow import Flow
from streaming.mm2 import codec
from streaming.mm2.codec import REASONS
from streaming.mm2.internal_topic_names import TopicRole
from streaming.mm2.records import MAX_INT32, MAX_INT64, Checkpoint, Heartbeat, OffsetSync, RecordKind, TopicPartition
from streaming.source import RAW, RECORD_KINDS, role_of_topic

pytestmark = pytest.mark.spark

FLOW = Flow("a", "b")
APPENDED_MS = 1_700_000_000_123
POSITION = 4711
APPENDED = datetime.fromtimestamp(APPENDED_MS / 1000, tz=timezone.utc)
LETTERS = "abc.-_Z09é漢😀\0"

Input = tuple[RecordKind, bytes | None, bytes | None]


def text(dice: random.Random) -> str:
    size = dice.choice((0, 1, 5, 5, 20, 200, 300, 300, 600))
    return "".join(dice.choice(LETTERS) for _ in range(size))


def number(dice: random.Random, most: int) -> int:
    return dice.choice((0, 1, dice.randint(0, 10**6) % (most + 1), dice.randint(0, most), most))


def sound(dice: random.Random) -> Input:
    on = TopicPartition(text(dice), number(dice, MAX_INT32))
    up, down = number(dice, MAX_INT64), number(dice, MAX_INT64)
    kind = dice.choice(RECORD_KINDS)
    if kind is RecordKind.HEARTBEAT:
        return kind, *codec.encode_record(Heartbeat(text(dice), text(dice), up))
    if kind is RecordKind.CHECKPOINT:
        return kind, *codec.encode_record(Checkpoint(text(dice), on, up, down, text(dice)))
    return kind, *codec.encode_record(OffsetSync(on, up, down))


def mangled(dice: random.Random, data: bytes) -> bytes | None:
    at = dice.randrange(len(data))
    byte = bytes([dice.choice((0, 1, 2, 0x7F, 0x80, 0xFF, dice.randrange(256)))])
    return dice.choice(
        (
            None,
            b"",
            data[:at],
            data + byte,
            data + dice.randbytes(40_000),
            data[:at] + byte + data[at + 1 :],
            byte + data[1:],
            data[:at] + data[at + 1 :],
            dice.randbytes(at),
        )
    )


def inputs(seed: int, count: int) -> Iterator[Input]:
    dice = random.Random(seed)
    for _ in range(count):
        kind, key, value = sound(dice)
        assert key is not None
        assert value is not None
        what = dice.randrange(5)
        yield (
            dice.choice(RECORD_KINDS) if what == 4 else kind,
            mangled(dice, key) if what in (1, 3) else key,
            mangled(dice, value) if what in (2, 3) else value,
        )


def expected_row(topic: str, record: Input, replicated: bool) -> dict[str, Any]:
    kind, key, value = record
    row: dict[str, Any] = dict.fromkeys(DECODED_SCHEMA.fieldNames())
    of_topic = replicated or kind is not RecordKind.HEARTBEAT
    flow = (FLOW.source, FLOW.target) if of_topic else (None, None)
    row.update(cluster="b", topic=topic, record=kind.value, source=flow[0], target=flow[1])
    row.update(appended_ms=APPENDED_MS, position=POSITION, replicated=replicated and kind is RecordKind.HEARTBEAT)
    try:
        row.update(decoded_by_codec(kind, key, value, of_topic))
    except MalformedRecord as malformed:
        row["error"] = malformed.reason
    return row


def decoded_by_codec(kind: RecordKind, key: bytes | None, value: bytes | None, of_topic: bool) -> dict[str, Any]:
    if kind is RecordKind.HEARTBEAT:
        beat = codec.decode_heartbeat(key, value)
        aliases = {} if of_topic else {"source": beat.source, "target": beat.target}
        return {"timestamp_ms": beat.timestamp, **aliases}
    record: Checkpoint | OffsetSync = (
        codec.decode_checkpoint(key, value) if kind is RecordKind.CHECKPOINT else codec.decode_offset_sync(key, value)
    )
    fields: dict[str, Any] = {
        "subject_topic": record.topic_partition.topic,
        "subject_partition": record.topic_partition.partition,
        "upstream_offset": record.upstream_offset,
        "downstream_offset": record.downstream_offset,
    }
    if isinstance(record, Checkpoint):
        fields |= {"group": record.group, "metadata": record.metadata}
    return fields


def frame_of(spark: SparkSession, rows: list[tuple[str, Input, bool]]) -> DataFrame:
    raw = []
    for topic, (kind, key, value), by_topic in rows:
        aliases = (FLOW.source, FLOW.target) if by_topic else (None, None)
        raw.append(("b", topic, key, value, APPENDED, POSITION, (RECORD_KINDS.index(kind), *aliases)))
    return spark.createDataFrame(raw, RAW)


def test_codec_and_columns_agree_on_thousands_of_records_sound_and_mangled(spark: SparkSession) -> None:
    rows = []
    for index, record in enumerate(inputs(seed=20_240_401, count=6_000)):
        by_topic = record[0] is not RecordKind.HEARTBEAT or index % 2 == 0
        rows.append((f"topic-{index}", record, by_topic))
    expected = [expected_row(topic, record, by_topic) for topic, record, by_topic in rows]
    seen = {row["error"] for row in expected}
    assert seen == {None, *REASONS}, "the generated bytes leave a verdict out"
    wanted = spark.createDataFrame([tuple(row.values()) for row in expected], DECODED_SCHEMA)
    decoded = decode(frame_of(spark, rows)).cache()
    assert_pyspark_df_equal(decoded, wanted, check_columns_in_order=True, order_by=["topic"])


def test_one_record_of_each_kind_and_one_that_is_none(spark: SparkSession) -> None:
    topics = {
        "heartbeats": TopicRole(RecordKind.HEARTBEAT),
        "a.heartbeats": TopicRole(RecordKind.HEARTBEAT, FLOW),
        "a.checkpoints.internal": TopicRole(RecordKind.CHECKPOINT, FLOW),
        "mm2-offset-syncs.b.internal": TopicRole(RecordKind.OFFSET_SYNC, FLOW),
    }
    on = TopicPartition("orders", 3)
    records = [
        ("heartbeats", *codec.encode_record(Heartbeat("x", "b", 11))),
        ("a.heartbeats", *codec.encode_record(Heartbeat("b", "a", 12))),
        ("a.checkpoints.internal", *codec.encode_record(Checkpoint("g", on, 20, 10, "m"))),
        ("mm2-offset-syncs.b.internal", *codec.encode_record(OffsetSync(on, 21, 12))),
        ("a.checkpoints.internal", b"key", None),
    ]
    raw = [("b", topic, key, value, APPENDED) for topic, key, value in records]
    columns = "cluster string, topic string, key binary, value binary, timestamp timestamp"
    frame = spark.createDataFrame(raw, columns).withColumn("offset", F.lit(POSITION))
    decoded = decode(frame.withColumn("role", role_of_topic(topics)))
    at = APPENDED_MS
    none = (None,) * 7
    expected = [
        ("b", "heartbeats", "heartbeat", "x", "b", False, *none[:5], 11, None, at, POSITION, None),
        ("b", "a.heartbeats", "heartbeat", "a", "b", True, *none[:5], 12, None, at, POSITION, None),
        (
            "b",
            "a.checkpoints.internal",
            "checkpoint",
            "a",
            "b",
            False,
            "g",
            "orders",
            3,
            20,
            10,
            None,
            "m",
            at,
            POSITION,
            None,
        ),
        (
            "b",
            "mm2-offset-syncs.b.internal",
            "offset-sync",
            "a",
            "b",
            False,
            None,
            "orders",
            3,
            21,
            12,
            *none[:2],
            at,
            POSITION,
            None,
        ),
        ("b", "a.checkpoints.internal", "checkpoint", "a", "b", False, *none, at, POSITION, codec.TOMBSTONE),
    ]
    assert_pyspark_df_equal(decoded, spark.createDataFrame(expected, DECODED_SCHEMA), check_columns_in_order=True)


def test_ansi_mode_is_on_so_that_these_tests_mean_something(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"


def test_no_python_sees_a_record(spark: SparkSession) -> None:
    plan = decode(frame_of(spark, []))._jdf.queryExecution().toString()
    assert "Python" not in plan
    assert "ArrowEval" not in plan
