"""What a query reads: one Kafka source for each cluster, and a clock.

The sources are subscribed by a pattern of quoted names. So a missing topic is no error, and is read from its first
record on as soon as it appears.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's own guides use
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType, TimestampType

from streaming.mm2.internal_topic_names import TopicRole
from streaming.mm2.records import RecordKind
from streaming.query_plan import ClusterSource, QueryPlan

ROLE = StructType(
    [
        StructField("kind", IntegerType()),
        StructField("source", StringType()),
        StructField("target", StringType()),
    ]
)
"""Role of a topic: `kind` is an index of RecordKind; the aliases are null where each record names its own."""

RAW = StructType(
    [
        StructField("cluster", StringType()),
        StructField("topic", StringType()),
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("timestamp", TimestampType()),
        StructField("offset", LongType()),
        StructField("role", ROLE),
    ]
)
"""A record as it was read: columns of Spark's Kafka source, the alias of the cluster, the role of the topic there."""

RECORD_KINDS = tuple(RecordKind)

MAX_OFFSETS = 300_000
"""Most records of a source in one batch. The driver gets their summary in one piece."""

SOURCE_OPTIONS: Mapping[str, str] = {
    "startingOffsets": "earliest",
    "failOnDataLoss": "false",
    "kafka.fetch.max.wait.ms": "20",
    "kafka.default.api.timeout.ms": "10000",
    "kafka.request.timeout.ms": "8000",
    "fetchOffset.numRetries": "2",
    "fetchOffset.retryIntervalMs": "200",
}
"""Options of every source. The cluster's own client properties override them.

`failOnDataLoss`: MM2's topics are compacted and may be recreated; a hint lost is found by the next comparison.
`fetch.max.wait.ms`: a task that reads to a known end must not wait 500 ms for more. The timeouts: a cluster that does
not answer ends the query in about 20 s, with its reason, instead of three minutes. `numRetries` counts the first try. A
second one is needed if a topic is deleted after it was listed.
"""

SPARKS_OWN = frozenset(
    {
        "auto.offset.reset",
        "enable.auto.commit",
        "group.id",
        "interceptor.classes",
        "key.deserializer",
        "value.deserializer",
    }
)
"""Consumer settings that Spark's Kafka source sets itself and refuses to be given."""


def role_of_topic(topics: Mapping[str, TopicRole]) -> Column:
    """Returns the role (`ROLE`) of the row's topic on one cluster; null for other topics."""
    pairs: list[Column] = []
    for topic, role in topics.items():
        aliases = (role.flow.source, role.flow.target) if role.flow else (None, None)
        fields = zip((RECORD_KINDS.index(role.record), *aliases), ROLE, strict=True)
        struct = F.struct(*[F.lit(field).cast(part.dataType).alias(part.name) for field, part in fields])
        pairs += [F.lit(topic), struct]
    return F.try_element_at(F.create_map(*pairs), F.col("topic"))


def source_options(source: ClusterSource) -> dict[str, str]:
    """Returns the options of Spark's Kafka source for one cluster."""
    client = {f"kafka.{name}": value for name, value in source.options.items() if name not in SPARKS_OWN}
    own = {"maxOffsetsPerTrigger": str(MAX_OFFSETS), "subscribePattern": source.pattern}
    return {**SOURCE_OPTIONS, **client, **own}


def read_cluster(spark: SparkSession, source: ClusterSource) -> DataFrame:
    """The rows (`RAW`) of one cluster's internal topics, as a stream."""
    frame = spark.readStream.format("kafka").options(**source_options(source)).load()
    return frame.select(
        F.lit(source.alias).alias("cluster"),
        "topic",
        "key",
        "value",
        "timestamp",
        "offset",
        role_of_topic(source.topics).alias("role"),
    )


def clock(spark: SparkSession) -> DataFrame:
    """Returns a stream that advances at every trigger and has no row, so that no task is spent on it.

    `rate-micro-batch` advances with each trigger, whatever the interval, and makes one batch of `availableNow`. The
    offsets of `rate` are whole seconds, so a second trigger within one second would find nothing new.
    """
    ticks = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).option("numPartitions", 1).load()
    return ticks.where(F.lit(False)).select(*[F.lit(None).cast(field.dataType).alias(field.name) for field in RAW])


def read_all(spark: SparkSession, plan: QueryPlan) -> DataFrame:
    """Returns the rows (`RAW`) of all clusters of a query, and its clock. The checkpoint's offsets have this order."""
    clusters = [read_cluster(spark, source) for source in plan.sources]
    return reduce(DataFrame.unionByName, clusters, clock(spark))
