"""What Spark says of its queries: a listener that hands each finished batch to the metrics.

Spark calls it in a thread of its own after a batch was committed, so that nothing here delays one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import orjson
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    JStreamingQueryListener,
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from sinks.engine.metrics import Metrics

QUERY_PREFIX = "lockstep-"
"""Prefix of the names that `QueryPlan.name` gives. The target follows."""

FROM_KAFKA = "Kafka"
"""How Spark describes a source that read MM2's topics; the clock is another one, and its row a batch says nothing."""


class QueryProgress(StreamingQueryListener):
    """A `StreamingQueryListener` for the queries of this job. It ignores other queries of the session."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._targets: dict[str, str] = {}

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Called before `start` returns."""
        if event.name and event.name.startswith(QUERY_PREFIX):
            target = self._targets[str(event.runId)] = event.name.removeprefix(QUERY_PREFIX)
            self._metrics.query_runs(target, True)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        """Called after each batch, for listeners that want pyspark's objects; here `progressed` is."""

    def progressed(self, progress: Mapping[str, Any]) -> None:
        """A batch was committed. `progress`: Spark's StreamingQueryProgress, as its JSON has it."""
        if (target := self._targets.get(progress["runId"])) is not None:
            from_kafka = (one for one in progress["sources"] if one["description"].startswith(FROM_KAFKA))
            rows = sum(one["numInputRows"] for one in from_kafka)
            self._metrics.query_batch(target, progress["batchId"], rows, progress["batchDuration"] / 1000)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's name
        """The clock has something new at every trigger, so no query of ours is idle."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        if (target := self._targets.pop(str(event.runId), None)) is not None:
            self._metrics.query_runs(target, target in self._targets.values())

    @property
    def _jlistener(self) -> Any:
        # pyspark's own asks the JVM for each field of a progress, which takes 10 ms of CPU a batch; this takes 0.3.
        if not hasattr(self, "_jlistenerobj"):
            assert self.spark is not None
            self._jlistenerobj = self.spark._jvm.PythonStreamingQueryListenerWrapper(_InOneCall(self))
        return self._jlistenerobj


class _InOneCall(JStreamingQueryListener):
    """The listener that Spark's JVM calls. It reads a progress as one document."""

    pylistener: QueryProgress

    def onQueryProgress(self, jevent: Any) -> None:  # noqa: N802 - Spark's name
        self.pylistener.progressed(orjson.loads(jevent.progress().json()))


@contextmanager
def listening(spark: SparkSession, metrics: Metrics) -> Iterator[None]:
    """Listens to the session's queries for the length of a `with` block."""
    listener = QueryProgress(metrics)
    listener.spark = spark
    spark.streams.addListener(listener)
    try:
        yield
    finally:
        spark.streams.removeListener(listener)
