"""Digests of records and of cells, in Spark's own column expressions: no Python sees a record.

Every field comes with its length, and null has a length of its own. So two different records look alike to the digest
only by chance: about 1 in 2^64 for each of two digests.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's own guides use

LENGTH_OF_NULL = -1
"""The length of what is null."""

LOW = 0xFFFFFFFF

APPEND_TIME = 1
"""`timestampType` of a record whose timestamp the broker gave (LogAppendTime)."""


DIGEST_COLUMNS = (
    *("id", "cell", "side", "records", "content_high", "content_low", "mixed", "time_high", "time_low"),
    *("distance_high", "distance_low", "appended", "first_ms", "last_ms", "size"),
)
"""Of `digest_cells`."""


def _measured(bytes_: Column) -> list[Column]:
    return [F.coalesce(F.length(bytes_), F.lit(LENGTH_OF_NULL)), bytes_]


def _headers() -> list[Column]:
    """As JSON, in which no two lists of headers look alike: a value is in base64, and a null one is left out.

    A function of Spark's over the elements would cost every record more than all the rest, for no code is generated
    for those.
    """
    return [F.when(F.col("headers").isNotNull(), F.to_json("headers"))]


def field_digests() -> dict[str, Column]:
    """Returns a digest of each field: `key_digest`, `value_digest` (0 for null), `headers_digest`."""
    return {
        "key_digest": F.when(F.col("key").isNull(), F.lit(0)).otherwise(F.xxhash64(*_measured(F.col("key")))),
        "value_digest": F.when(F.col("value").isNull(), F.lit(0)).otherwise(F.xxhash64(*_measured(F.col("value")))),
        "headers_digest": F.xxhash64(*_headers()),
    }


def content_digest(salt: int) -> Column:
    """Returns a digest of key, value and headers, different for each salt."""
    return F.xxhash64(F.lit(salt), *_measured(F.col("key")), *_measured(F.col("value")), *_headers())


def with_digests(frame: DataFrame) -> DataFrame:
    """Adds `content`, `mixed` (two digests of key, value and headers) and `ms`, the timestamp."""
    return frame.withColumns(
        {"content": content_digest(1), "mixed": content_digest(2), "ms": F.unix_millis("timestamp")}
    )


def digest_cells(frame: DataFrame, side: int) -> DataFrame:
    """One row for each cell of `bounded_read.read_cells`: `id`, `cell`, `side`, and the sums of a `Digest`."""
    rows = with_digests(frame).select(
        "id",
        "cell",
        "content",
        "mixed",
        "ms",
        F.xxhash64("content", "ms").alias("timed"),
        F.xxhash64("content", F.col("offset") - F.col("base")).alias("placed"),
        F.col("timestampType").alias("stamp"),
        _size().alias("size"),
    )
    return (
        rows.groupBy("id", "cell")
        .agg(
            F.count(F.lit(1)).alias("records"),
            *_halves("content", "content"),
            F.bit_xor("mixed").alias("mixed"),
            *_halves("timed", "time"),
            *_halves("placed", "distance"),
            F.count(F.when(F.col("stamp") == APPEND_TIME, 1)).alias("appended"),
            F.min("ms").alias("first_ms"),
            F.max("ms").alias("last_ms"),
            F.sum("size").alias("size"),
        )
        .select(*(F.lit(side).alias("side") if name == "side" else F.col(name) for name in DIGEST_COLUMNS))
    )


def _size() -> Column:
    """Bytes of key and value, and of headers about."""
    lengths = (F.length("key"), F.length("value"), F.when(F.col("headers").isNotNull(), F.length(F.to_json("headers"))))
    key, value, headers = (F.coalesce(one, F.lit(0)) for one in lengths)
    return key + value + headers


def _halves(name: str, called: str) -> list[Column]:
    """Sums of the upper and of the lower half: a sum of whole digests would overflow, which is an error in Spark 4."""
    return [
        F.sum(F.shiftright(name, 32)).alias(f"{called}_high"),
        F.sum(F.col(name).bitwiseAND(F.lit(LOW))).alias(f"{called}_low"),
    ]
