"""Offset commits from bytes to rows, in Spark's own column expressions, and the last of each group and partition.

Spark 4 is ANSI by default and fails a query at the first bad cast, so every expression here is total, as in
`streaming.decode`. The bytes' layout and the verdicts are `commit_record`'s.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's own guides use
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from streaming.commits.commit_record import (
    COMMIT_KEYS,
    LAST_OTHER_KEY,
    LAST_VALUE,
    LENGTH,
    OFFSET,
    PARTITION,
    SHORTEST_KEY,
    SHORTEST_VALUE,
    VERSION,
    Seen,
)
from streaming.mm2.records import MAX_INT32, MAX_STRING_BYTES

COMMIT_SCHEMA = StructType(
    [
        StructField("seen", StringType()),
        StructField("group", StringType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("committed", LongType()),
        StructField("position", LongType()),
    ]
)
"""A record that was read. `seen`: a `Seen`; of COMMIT and UNKNOWN_VALUE the group and the partition are there.

`committed`: DELETED where the offset was deleted. `position`: the record's offset in `__consumer_offsets`; all records
of a group lie in one partition of it.
"""

DELETED = -1


def _unsigned(data: str, at: Column | int, size: int) -> Column:
    """The big-endian integer of `size` bytes, at most 8, from byte `at`: two's complement if they are eight."""
    start = F.lit(at + 1) if isinstance(at, int) else at + 1
    return F.conv(F.hex(F.substring(F.col(data), start, F.lit(size))), 16, -10).cast(LongType())


def _length(at: Column | int) -> Column:
    return F.coalesce(_unsigned("key", at, LENGTH), F.lit(0)).cast(IntegerType())


def _version_up_to(data: str, last: int) -> Column:
    """Whether a key or a value begins with a version from 0 to this one: bytes are compared as unsigned numbers are."""
    return F.substring(F.col(data), F.lit(1), F.lit(VERSION)) <= F.lit(last.to_bytes(VERSION, "big"))


def _text(at: Column | int, length: str) -> Column:
    start = F.lit(at + 1) if isinstance(at, int) else at + 1
    return F.substring(F.col("key"), start, F.col(length)).cast(StringType())


def _placed(frame: DataFrame) -> DataFrame:
    """Adds the fields as they stand there, sound or not."""
    return (
        frame.select("key", "value", F.col("offset").alias("position"))
        .withColumn("_group", _length(VERSION))
        .withColumn("_group_end", F.col("_group") + VERSION + LENGTH)
        .withColumn("_topic", _length(F.col("_group_end")))
        .withColumn("_topic_end", F.col("_group_end") + F.col("_topic") + LENGTH)
        .withColumns(
            {
                "group": _text(VERSION + LENGTH, "_group"),
                "topic": _text(F.col("_group_end") + LENGTH, "_topic"),
                "partition": _unsigned("key", F.col("_topic_end"), PARTITION),
                "committed": F.when(F.col("value").isNull(), DELETED).otherwise(_unsigned("value", VERSION, OFFSET)),
            }
        )
    )


def _seen() -> Column:
    """What the record is, in the order in which `commit_record.read_record` looks."""
    size, value_size = F.length("key"), F.length("value")
    malformed = F.lit(Seen.MALFORMED.value)
    known_type = _version_up_to("key", LAST_OTHER_KEY)
    sound_key = (
        (size >= SHORTEST_KEY)
        & (size == F.col("_topic_end") + PARTITION)
        & (F.greatest("_group", "_topic") <= MAX_STRING_BYTES)
        & (F.col("partition") <= MAX_INT32)
        & F.is_valid_utf8("group")
        & F.is_valid_utf8("topic")
    )
    return (
        F.when(F.col("key").isNull() | (size < VERSION), malformed)
        .when(~known_type, Seen.UNKNOWN_TYPE.value)
        .when(~_version_up_to("key", COMMIT_KEYS[-1]), Seen.OTHER.value)
        .when(~sound_key, malformed)
        .when(F.col("value").isNull(), Seen.COMMIT.value)
        .when(value_size < SHORTEST_VALUE, malformed)
        .when(~_version_up_to("value", LAST_VALUE), Seen.UNKNOWN_VALUE.value)
        .when(F.col("committed") < 0, malformed)
        .otherwise(Seen.COMMIT.value)
    )


def decode_commits(frame: DataFrame) -> DataFrame:
    """Rows of `COMMIT_SCHEMA`, one for one, of records of Spark's Kafka source."""
    rows = _placed(frame).withColumn("seen", _seen())
    of_group = F.col("seen").isin(Seen.COMMIT.value, Seen.UNKNOWN_VALUE.value)
    columns = {
        "seen": F.col("seen"),
        "position": F.col("position"),
        **{name: F.when(of_group, F.col(name)) for name in ("group", "topic", "partition")},
        "committed": F.when(F.col("seen") == Seen.COMMIT.value, F.col("committed")),
    }
    return rows.select(*[columns[field.name].cast(field.dataType).alias(field.name) for field in COMMIT_SCHEMA])


def last_commits(rows: DataFrame) -> DataFrame:
    """One row for each group, topic and verdict: how many records, and partition and last offset of each, flat.

    What a record of no commit says is counted alone.
    """
    each = rows.groupBy("seen", "group", "topic", "partition").agg(
        F.max_by("committed", "position").alias("committed"), F.count("*").alias("rows")
    )
    pair = F.when(F.col("partition").isNotNull(), F.array(F.col("partition").cast(LongType()), F.col("committed")))
    return each.groupBy("seen", "group", "topic").agg(
        F.sum("rows").alias("rows"), F.flatten(F.collect_list(pair)).alias("numbers")
    )
