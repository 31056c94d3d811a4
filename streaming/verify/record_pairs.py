"""Records of two sides brought together by content: which are equal, in which runs, and which have no counterpart."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's own guides use

from streaming.verify.record_digests import APPEND_TIME, field_digests, with_digests
from streaming.verify.rows import SOURCE, TARGET


def identified(frame: DataFrame, side: int, times: bool) -> DataFrame:
    """The records of `bounded_read.read_cells` as digests alone. `times`: timestamps count."""
    stamp = F.col("ms") if times else F.lit(None).cast("long")
    return with_digests(frame).select(
        "id",
        "cell",
        F.lit(side).alias("side"),
        "offset",
        "content",
        F.xxhash64("mixed", stamp).alias("identity"),
        F.col("ms").alias("ms"),
        ((F.col("timestampType") == APPEND_TIME) & F.lit(side == TARGET)).alias("appended"),
        *[column.alias(name) for name, column in field_digests().items()],
    )


def by_content(records: DataFrame) -> DataFrame:
    """A row for each content of each cell: its offsets on both sides, rising, and the digests of its fields."""
    ours = F.when(F.col("side") == SOURCE, F.col("offset"))
    theirs = F.when(F.col("side") == TARGET, F.col("offset"))
    return records.groupBy("id", "cell", "content", "identity").agg(
        F.sort_array(F.collect_list(ours)).alias("upstreams"),
        F.sort_array(F.collect_list(theirs)).alias("downstreams"),
        F.max("appended").alias("appended"),
        *[F.first(name).alias(name) for name in ("key_digest", "value_digest", "headers_digest", "ms")],
    )


def unequal(contents: DataFrame) -> DataFrame:
    """Those of `by_content` that are not as often on one side as on the other."""
    return contents.where(F.size("upstreams") != F.size("downstreams"))


def runs(contents: DataFrame) -> DataFrame:
    """The others of `by_content` as runs: `id`, `cell`, `upstream`, `downstream`, `length`, `last_ms`, `descends`.

    Records of one content are paired in their order. A run goes on while both offsets go up by one.
    """
    pairs = contents.where(F.size("upstreams") == F.size("downstreams")).select(
        "id", "cell", "ms", F.inline(F.arrays_zip("upstreams", "downstreams")).alias("upstream", "downstream")
    )
    by_offset = Window.partitionBy("id", "cell").orderBy("upstream")
    goes_on = (F.col("upstream") == F.lag("upstream").over(by_offset) + 1) & (
        F.col("downstream") == F.lag("downstream").over(by_offset) + 1
    )
    begins = F.when(goes_on, 0).otherwise(1)
    descends = F.when(F.col("downstream") < F.lag("downstream").over(by_offset), 1).otherwise(0)
    marked = pairs.withColumns({"begins": begins, "descends": descends})
    numbered = marked.withColumn("run", F.sum("begins").over(by_offset))
    return numbered.groupBy("id", "cell", "run").agg(
        F.min("upstream").alias("upstream"),
        F.min("downstream").alias("downstream"),
        F.count(F.lit(1)).alias("length"),
        F.max("ms").alias("last_ms"),
        F.sum("descends").alias("descends"),
    )


def run_sums(found: DataFrame) -> DataFrame:
    """Of `runs`, the columns of `PairSums` of each cell."""
    to_last = F.col("length") - 1
    return found.groupBy("id", "cell").agg(
        *(F.sum("length"), F.sum("descends"), F.max("last_ms"), F.min("upstream"), F.min_by("downstream", "upstream")),
        *(F.max(F.col("upstream") + to_last), F.max_by(F.col("downstream") + to_last, "upstream")),
    )


def first_of_each(rows: DataFrame, of: Sequence[str | Column], by: str | Column, most: int) -> DataFrame:
    """So many rows at most: the first ones of each group (`of`), and of all groups as many, as far as they have them.

    Were they the first of all, one large group would leave nothing of the others.
    """
    rank = F.row_number().over(Window.partitionBy(*of).orderBy(by))
    return rows.withColumn("rank", rank).where(F.col("rank") <= most).orderBy("rank").limit(most).drop("rank")
