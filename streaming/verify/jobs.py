"""The Spark jobs of a comparison, which read both sides and bring plain rows to the driver."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

from pyspark.sql import Column, DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's own guides use

from streaming.mm2.records import MAX_INT64
from streaming.source import SPARKS_OWN
from streaming.verify.rows import (
    SOURCE,
    TARGET,
    ContentRow,
    DifferingRecord,
    Digest,
    DigestRow,
    Fields,
    KeyRow,
    KeySums,
    LastRecord,
    PairSums,
    PartitionRead,
    RecordRows,
    RunRow,
    SoughtRecord,
    Surplus,
)

# Reading records of known offsets on two clusters, once and in bounded jobs: Spark's Kafka source as a batch.

READ_OPTIONS: Mapping[str, str] = {
    "includeHeaders": "true",
    "failOnDataLoss": "false",
    "kafka.fetch.max.wait.ms": "20",
    "kafka.max.poll.records": "10000",
    "kafka.max.partition.fetch.bytes": str(4 * 1024 * 1024),
    "kafka.default.api.timeout.ms": "30000",
    "kafkaConsumer.pollTimeoutMs": "60000",
}
"""Options of every read. The cluster's own client properties override them.

`failOnDataLoss`: retention may delete records meanwhile, so the caller checks the logs' starts again afterwards.
`max.poll.records`, `max.partition.fetch.bytes`: one partition after the other is read at length.
"""

BOUNDS = "topic string, partition int, id int, bounds array<bigint>"
"""Schema of partitions. `bounds`: offsets at which the cells begin, ascending, padded to a power of two."""


@dataclass(frozen=True, slots=True)
class SideRead:
    """How one cluster is read: Java client properties (perhaps secret), and MM2's `isolation.level`."""

    options: Mapping[str, str] = field(repr=False)
    isolation: str = "read_uncommitted"


def read_options(side: SideRead, partitions: Sequence[PartitionRead], tasks: int) -> dict[str, str]:
    """Returns the options of Spark's Kafka source for these partitions, split into at least `tasks` tasks. No partition
    may be empty."""
    client = {f"kafka.{name}": value for name, value in side.options.items() if name not in SPARKS_OWN}
    assigned: dict[str, list[int]] = {}
    starts: dict[str, dict[str, int]] = {}
    ends: dict[str, dict[str, int]] = {}
    for one in partitions:
        assigned.setdefault(one.topic, []).append(one.partition)
        starts.setdefault(one.topic, {})[str(one.partition)] = one.bounds[0]
        ends.setdefault(one.topic, {})[str(one.partition)] = one.bounds[-1]
    return {
        **READ_OPTIONS,
        **client,
        "kafka.isolation.level": side.isolation,
        "assign": json.dumps(assigned),
        "startingOffsets": json.dumps(starts),
        "endingOffsets": json.dumps(ends),
        "minPartitions": str(tasks),
    }


def read_cells(
    spark: SparkSession, side: SideRead, partitions: Sequence[PartitionRead], tasks: int
) -> DataFrame | None:
    """Returns the records of these partitions from Spark's Kafka source, with their cells (`with_cells`). None if all
    partitions are empty on this side."""
    filled = [one for one in partitions if one.bounds[-1] > one.bounds[0]]
    if not filled:
        return None
    frame = spark.read.format("kafka").options(**read_options(side, filled, tasks)).load()
    return with_cells(frame, filled)


def with_cells(frame: DataFrame, partitions: Sequence[PartitionRead]) -> DataFrame:
    """Adds `id`, `cell` and `base`, the offset at which the cell begins, to records of these partitions."""
    most = max(len(one.bounds) - 1 for one in partitions)
    size = 1 << max(0, most - 1).bit_length()
    rows = [
        (one.topic, one.partition, one.id, [*one.bounds[:-1], *[MAX_INT64] * (size - len(one.bounds) + 1)])
        for one in partitions
    ]
    bounds = frame.sparkSession.createDataFrame(rows, BOUNDS).select(_partition_hash(), "id", "bounds")
    return _with_cell(
        frame.withColumn("partition_hash", _partition_hash())
        .join(F.broadcast(bounds), "partition_hash")
        .drop("partition_hash"),
        size,
    )


def _partition_hash() -> Column:
    """Returns a hash of the row's topic and partition. A join by one number costs a fraction of a join by a text and a
    number."""
    return F.xxhash64("topic", "partition").alias("partition_hash")


def _with_cell(frame: DataFrame, size: int) -> DataFrame:
    """Add the number of the last cell that begins at or before the offset, by binary search with one column a step."""
    cell: Column = F.lit(0)
    frame = frame.withColumn("cell", cell)
    step = size // 2
    while step:
        reached = F.col("offset") >= F.get("bounds", F.col("cell") + step)
        frame = frame.withColumn("cell", F.col("cell") + F.when(reached, step).otherwise(0))
        step //= 2
    return frame.withColumn("base", F.get("bounds", F.col("cell")))


# Digests of records and of cells, in Spark's own column expressions: no Python sees a record.
#
# Every field comes with its length, and null has a length of its own. So two different records look alike to the digest
# only by chance: about 1 in 2^64 for each of two digests.


LENGTH_OF_NULL = -1
"""Stands for the length of null in a digest."""

LOW = 0xFFFFFFFF

APPEND_TIME = 1
"""`timestampType` of a record whose timestamp the broker gave (LogAppendTime)."""


def _measured(bytes_: Column) -> list[Column]:
    return [F.coalesce(F.length(bytes_), F.lit(LENGTH_OF_NULL)), bytes_]


def _headers() -> list[Column]:
    """Returns the headers as JSON, in which no two lists of headers look alike: a value is in base64, and a null one is
    left out.

    Spark generates no code for its functions over elements, so they would cost each record more than all the rest.
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
    """Returns a row for each cell: `id`, `cell`, `side`, and the sums of a `Digest`. `frame`: from `read_cells`."""
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
        .select("id", "cell", F.lit(side).alias("side"), *Digest._fields)
    )


def _size() -> Column:
    """Returns the size of a record: bytes of key and value, and an estimate for headers."""
    lengths = (F.length("key"), F.length("value"), F.when(F.col("headers").isNotNull(), F.length(F.to_json("headers"))))
    key, value, headers = (F.coalesce(one, F.lit(0)) for one in lengths)
    return key + value + headers


def _halves(name: str, called: str) -> list[Column]:
    """Returns sums of the upper and of the lower half of a digest. Sums of whole digests would overflow, which is an
    error in Spark 4.

    `name`: the digest's column. `called`: how the names of the sums begin.
    """
    return [
        F.sum(F.shiftright(name, 32)).alias(f"{called}_high"),
        F.sum(F.col(name).bitwiseAND(F.lit(LOW))).alias(f"{called}_low"),
    ]


Session = SparkSession
"""Spark's session, for modules that only hand it on."""

TASKS_PER_CORE = 4
"""Most tasks for each core. Several tasks read a long partition, so that no core waits for the last one."""

OFFSETS_A_TASK = 100_000
"""Least offsets of a task. A task costs as much as reading some ten thousand records."""

SOUGHT = "id int, key_digest bigint, value_digest bigint, headers_digest bigint, wanted_ms bigint"


def own_session(spark: SparkSession) -> SparkSession:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    return session


@dataclass(frozen=True)
class SparkJobs:
    """`sinks.verify.record_jobs.RecordJobs` on Spark. `spark`: a session of its own. `source`, `target`: how they are
    read."""

    spark: SparkSession
    source: SideRead
    target: SideRead

    def cells(self, side: int, partitions: Sequence[PartitionRead]) -> DataFrame | None:
        """Returns the records of these partitions of one side, as `read_cells` does."""
        read = self.source if side == SOURCE else self.target
        return read_cells(self.spark, read, partitions, self._tasks(partitions))

    def digests(self, source: Sequence[PartitionRead], target: Sequence[PartitionRead]) -> Iterator[DigestRow]:
        frames = [digest_cells(frame, side) for side, frame in self._both(source, target)]
        if not frames:
            return
        self._begin("digests of both sides", 1)
        # In one partition, so that both sides are read in one job, and none waits for the other.
        for row in reduce(DataFrame.unionByName, frames).coalesce(1).toLocalIterator():
            yield DigestRow(row.id, row.cell, row.side, Digest(*row[3:]))

    def pairs(
        self, source: Sequence[PartitionRead], target: Sequence[PartitionRead], times: bool, most: int
    ) -> RecordRows:
        """Pair the records of the even cells (0, 2, …) of both sides."""
        frames = [
            identified(frame.where(F.col("cell") % 2 == 0), side, times) for side, frame in self._both(source, target)
        ]
        if not frames:
            return RecordRows([], [], [], [])
        self._begin("records of windows that differ", self._tasks([*source, *target]))
        contents = by_content(reduce(DataFrame.unionByName, frames)).persist()
        equal = runs(contents).persist()
        try:
            first = F.coalesce(F.get("upstreams", F.lit(0)), F.get("downstreams", F.lit(0)))
            digests = ("key_digest", "value_digest", "headers_digest", "ms", "appended")
            # As many of both sides, so that the original of a changed record is among them.
            odd = first_of_each(unequal(contents), ["id", "cell", F.size("upstreams") > 0], first, most)
            rows = odd.select("id", "cell", "upstreams", "downstreams", *digests).collect()
            found = equal.select("id", "cell", "upstream", "downstream", "length")
            return RecordRows(
                [PairSums(*row) for row in run_sums(equal).collect()],
                _surplus(contents) if len(rows) == most else [],
                [_content(row, times) for row in rows],
                [RunRow(*row) for row in first_of_each(found, ["id", "cell"], "upstream", most).collect()],
            )
        finally:
            equal.unpersist()
            contents.unpersist()

    def find_on_source(
        self, partitions: Sequence[PartitionRead], wanted: Sequence[SoughtRecord]
    ) -> dict[SoughtRecord, int]:
        frame = self.cells(SOURCE, partitions)
        if frame is None or not wanted:
            return {}
        self._begin("records of the target that the source may have elsewhere", 1)
        digests = [column.alias(name) for name, column in field_digests().items()]
        rows = frame.select("id", "offset", F.unix_millis("timestamp").alias("ms"), *digests)
        sought = F.broadcast(self.spark.createDataFrame([(one.id, *one.fields) for one in wanted], SOUGHT))
        names = ["id", "key_digest", "value_digest", "headers_digest"]
        same_time = F.col("wanted_ms").isNull() | (F.col("wanted_ms") == F.col("ms"))
        found = rows.join(sought, names).where(same_time).groupBy(*names, "wanted_ms").agg(F.min("offset"))
        return {SoughtRecord(row[0], Fields(*row[1:5])): row[5] for row in found.collect()}

    def last_values(
        self, source: Sequence[PartitionRead], target: Sequence[PartitionRead], most: int
    ) -> tuple[list[KeySums], list[KeyRow]]:
        both = list(self._both(source, target))
        if not both:
            return [], []
        self._begin("the last record of each key of compacted topics", self._tasks([*source, *target]))
        keys = last_of_each(both).persist()
        try:
            offset = F.coalesce("ours.offset", "theirs.offset")
            odd = first_of_each(keys.where(~F.col("agrees")), ["id"], offset, most)
            return (
                [KeySums(*row) for row in key_sums(keys).collect()],
                [key_row(row) for row in odd.select("id", "ours", "theirs").collect()],
            )
        finally:
            keys.unpersist()

    def _both(
        self, source: Sequence[PartitionRead], target: Sequence[PartitionRead]
    ) -> Iterator[tuple[int, DataFrame]]:
        for side, partitions in ((SOURCE, source), (TARGET, target)):
            frame = self.cells(side, partitions)
            if frame is not None:
                yield side, frame

    def _tasks(self, partitions: Sequence[PartitionRead]) -> int:
        """Returns the least number of tasks that reading these partitions is split into."""
        offsets = sum(one.bounds[-1] - one.bounds[0] for one in partitions)
        return max(1, min(TASKS_PER_CORE * self.spark.sparkContext.defaultParallelism, offsets // OFFSETS_A_TASK))

    def _begin(self, what: str, shuffled_into: int) -> None:
        """Set the description that the Spark UI shows for the next jobs, and the number of tasks after a shuffle."""
        self.spark.conf.set("spark.sql.shuffle.partitions", str(shuffled_into))
        self.spark.sparkContext.setJobDescription(f"lockstep verify: {what}")


def _content(row: Row, times: bool) -> ContentRow:
    fields = Fields(row.key_digest, row.value_digest, row.headers_digest, row.ms if times else None)
    return ContentRow(row.id, row.cell, row.upstreams, row.downstreams, fields, row.appended)


def _surplus(contents: DataFrame) -> list[Surplus]:
    ours, theirs = F.size("upstreams"), F.size("downstreams")
    sums = unequal(contents).groupBy("id", "cell")
    found = sums.agg(
        F.sum(F.greatest(ours - theirs, F.lit(0))), F.sum(F.greatest(theirs - ours, F.lit(0))), F.count(F.lit(1))
    )
    return [Surplus(*row) for row in found.collect()]


# Records of two sides brought together by content: which are equal, in which runs, and which have no counterpart.


def identified(frame: DataFrame, side: int, times: bool) -> DataFrame:
    """Returns digests of the records of `read_cells`. `times`: timestamps count."""
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
    """Returns a row for each content of each cell: its rising offsets on both sides, and the digests of its fields."""
    ours = F.when(F.col("side") == SOURCE, F.col("offset"))
    theirs = F.when(F.col("side") == TARGET, F.col("offset"))
    return records.groupBy("id", "cell", "content", "identity").agg(
        F.sort_array(F.collect_list(ours)).alias("upstreams"),
        F.sort_array(F.collect_list(theirs)).alias("downstreams"),
        F.max("appended").alias("appended"),
        *[F.first(name).alias(name) for name in ("key_digest", "value_digest", "headers_digest", "ms")],
    )


def unequal(contents: DataFrame) -> DataFrame:
    return contents.where(F.size("upstreams") != F.size("downstreams"))


def runs(contents: DataFrame) -> DataFrame:
    """Returns the equal rows of `by_content` as runs: `id`, `cell`, `upstream`, `downstream`, `length`, `last_ms`,
    `descends`.

    Records of one content are paired in their order. A run goes on while both offsets rise by one.
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
    """Returns the columns of `PairSums` for each cell. `found`: from `runs`."""
    to_last = F.col("length") - 1
    return found.groupBy("id", "cell").agg(
        *(F.sum("length"), F.sum("descends"), F.max("last_ms"), F.min("upstream"), F.min_by("downstream", "upstream")),
        *(F.max(F.col("upstream") + to_last), F.max_by(F.col("downstream") + to_last, "upstream")),
    )


def first_of_each(rows: DataFrame, of: Sequence[str | Column], by: str | Column, most: int) -> DataFrame:
    """Returns at most `most` rows: the first rows of each group (`of`), the same number from each. Otherwise one large
    group would leave none of the others."""
    rank = F.row_number().over(Window.partitionBy(*of).orderBy(by))
    return rows.withColumn("rank", rank).where(F.col("rank") <= most).orderBy("rank").limit(most).drop("rank")


# Compacted topics: the last record of each key on both sides, brought together.


_LAST = ("offset", "value_digest", "headers_digest", "ms", "tombstone", "older")
"""What is kept of a key's record on one side. The offset comes first, so that the greatest of these is the last
record."""


def last_of_each(sides: Iterable[tuple[int, DataFrame]]) -> DataFrame:
    """Returns a row for each key: its last record on both sides (`ours`, `theirs`), and whether they agree.

    A tombstone agrees with a missing record, because either side may delete it at any time. Timestamps count, unless
    the target's broker set one. In the first of two cells, the target's records count only if the source deletes their
    key.
    """
    records = reduce(DataFrame.unionByName, [_records(frame, side) for side, frame in sides])
    last = F.struct(*_LAST)
    keys = records.groupBy("id", "key_digest", "key_digest_2").agg(
        F.max(F.when(F.col("side") == SOURCE, last)).alias("ours"),
        F.max(F.when(F.col("side") == TARGET, last)).alias("theirs"),
        F.max("appended").alias("appended"),
    )
    counts = ~F.col("theirs.older") | F.col("ours.tombstone")
    counted = keys.withColumn("theirs", F.when(counts, F.col("theirs")))
    known = counted.where(F.col("ours").isNotNull() | F.col("theirs").isNotNull())
    return known.withColumn("agrees", _agrees())


def key_sums(keys: DataFrame) -> DataFrame:
    """Returns the columns of `KeySums` for each partition. `keys`: from `last_of_each`."""
    both = F.col("agrees") & F.col("ours").isNotNull() & F.col("theirs").isNotNull()
    return keys.groupBy("id").agg(
        F.count(F.lit(1)),
        F.count(F.when(~F.col("agrees"), 1)),
        F.max(F.when(both & ~F.col("appended"), F.col("ours.offset"))),
        F.count(F.when(F.col("appended"), 1)),
        F.max("ours.ms"),
        F.min(F.when(F.col("ours.tombstone") & F.col("theirs").isNull(), F.col("ours.offset"))),
    )


def key_row(row: Row) -> KeyRow:
    """Returns a KeyRow. `row`: `id`, `ours`, `theirs`."""
    ours, theirs = (None if one is None else LastRecord(*one[:5]) for one in row[1:])
    return KeyRow(row[0], ours, theirs)


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


def _agrees() -> Column:
    ours_gone = F.col("ours").isNull() | F.col("ours.tombstone")
    theirs_gone = F.col("theirs").isNull() | F.col("theirs.tombstone")
    same = (
        (F.col("ours.value_digest") == F.col("theirs.value_digest"))
        & (F.col("ours.headers_digest") == F.col("theirs.headers_digest"))
        & (F.col("appended") | (F.col("ours.ms") == F.col("theirs.ms")))
    )
    return (ours_gone & theirs_gone) | F.coalesce(same, F.lit(False))


DIFFERENCE_COLUMNS = "id int, offset bigint, difference string, fields string"


def write_differing(
    jobs: SparkJobs, sides: Sequence[tuple[int, Sequence[PartitionRead], Sequence[DifferingRecord]]], folder: str
) -> None:
    """Write a row for each differing record and side that has it. `sides`: source or target, how it is read, and the
    records.

    Raises what Spark raises, also if the folder exists already. The folder around it decides who may read the files,
    because Spark gives them ordinary modes.
    """
    frames = [frame for side, reads, found in sides if (frame := _rows(jobs, side, reads, found)) is not None]
    if frames:
        jobs.spark.sparkContext.setJobDescription("lockstep verify: records that differ")
        reduce(DataFrame.unionByName, frames).coalesce(1).write.mode("error").parquet(folder)


def _rows(
    jobs: SparkJobs, side: int, reads: Sequence[PartitionRead], found: Sequence[DifferingRecord]
) -> DataFrame | None:
    frame = jobs.cells(side, reads)
    if frame is None:
        return None
    named = F.broadcast(jobs.spark.createDataFrame([tuple(one) for one in found], DIFFERENCE_COLUMNS))
    content = ("partition", "offset", "timestamp", "key", "value", "headers")
    side_name = {SOURCE: "source", TARGET: "target"}[side]
    return frame.join(named, ["id", "offset"]).select(
        "difference", "fields", F.lit(side_name).alias("side"), "topic", *content
    )
