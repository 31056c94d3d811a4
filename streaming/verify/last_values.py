"""Compacted topics: the last record of each key on both sides, brought together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's own guides use

from streaming.verify.record_digests import APPEND_TIME, field_digests, with_digests
from streaming.verify.rows import SOURCE, TARGET, KeyRow, LastRecord

_LAST = ("offset", "value_digest", "headers_digest", "ms", "tombstone", "older")
"""Of a key on one side: the offset comes first, so that the greatest of these is the last record."""


def last_of_each(sides: Iterable[tuple[int, DataFrame]]) -> DataFrame:
    """A row for each key: its last record on both sides (`ours`, `theirs`), and whether they agree.

    A tombstone agrees with nothing at all: either side deletes it when it likes. Timestamps count, unless the target's
    broker gave one. Of the target's records in the first of two cells only those count whose key the source deletes.
    """
    records = reduce(DataFrame.unionByName, [_records(frame, side) for side, frame in sides])
    return _last_of_each(records).withColumn("agrees", _agrees())


def key_sums(keys: DataFrame) -> DataFrame:
    """Of each partition, the columns of `KeySums`."""
    return keys.groupBy("id").agg(*_sums())


def key_row(row: Row) -> KeyRow:
    """Of `id`, `ours`, `theirs`."""
    return KeyRow(row[0], _record(row[1]), _record(row[2]))


def _record(row: Sequence[int] | None) -> LastRecord | None:
    return None if row is None else LastRecord(row[0], row[1], row[2], row[3], bool(row[4]))


def _records(frame: DataFrame, side: int) -> DataFrame:
    fields = field_digests()
    return with_digests(frame).select(
        "id",
        F.lit(side).alias("side"),
        fields["key_digest"].alias("key_digest"),
        F.xxhash64(F.lit(2), F.length("key"), "key").alias("key_digest_2"),
        "offset",
        "ms",
        fields["value_digest"].alias("value_digest"),
        fields["headers_digest"].alias("headers_digest"),
        F.col("value").isNull().alias("tombstone"),
        ((F.col("cell") == 0) & F.lit(side == TARGET)).alias("older"),
        ((F.col("timestampType") == APPEND_TIME) & F.lit(side == TARGET)).alias("appended"),
    )


def _last_of_each(records: DataFrame) -> DataFrame:
    last = F.struct(*_LAST)
    keys = records.groupBy("id", "key_digest", "key_digest_2").agg(
        F.max(F.when(F.col("side") == SOURCE, last)).alias("ours"),
        F.max(F.when(F.col("side") == TARGET, last)).alias("theirs"),
        F.max("appended").alias("appended"),
    )
    counts = ~F.col("theirs.older") | F.col("ours.tombstone")
    counted = keys.withColumn("theirs", F.when(counts, F.col("theirs")))
    return counted.where(F.col("ours").isNotNull() | F.col("theirs").isNotNull())


def _agrees() -> Column:
    ours_gone = F.col("ours").isNull() | F.col("ours.tombstone")
    theirs_gone = F.col("theirs").isNull() | F.col("theirs.tombstone")
    same = (
        (F.col("ours.value_digest") == F.col("theirs.value_digest"))
        & (F.col("ours.headers_digest") == F.col("theirs.headers_digest"))
        & (F.col("appended") | (F.col("ours.ms") == F.col("theirs.ms")))
    )
    return (ours_gone & theirs_gone) | F.coalesce(same, F.lit(False))


def _sums() -> list[Column]:
    both = F.col("agrees") & F.col("ours").isNotNull() & F.col("theirs").isNotNull()
    return [
        F.count(F.lit(1)),
        F.count(F.when(~F.col("agrees"), 1)),
        F.max(F.when(both & ~F.col("appended"), F.col("ours.offset"))),
        F.count(F.when(F.col("appended"), 1)),
        F.max("ours.ms"),
        F.min(F.when(F.col("ours.tombstone") & F.col("theirs").isNull(), F.col("ours.offset"))),
    ]
