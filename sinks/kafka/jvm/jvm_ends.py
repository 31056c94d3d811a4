"""Where the logs of many partitions begin and end, through the driver's own JVM.

librdkafka's Python client makes a future with a lock of its own for each partition, which costs ten times what the
question does. Source: `Admin.listOffsets`.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from typing import Any

import orjson
from py4j.protocol import Py4JError, Py4JJavaError

from sinks.faults import Observed
from sinks.kafka.jvm.field_json import FieldJson
from sinks.kafka.jvm.java_admin import CLOSES_WITHIN_MS, cause_of, java_admin, timeout_ms
from sinks.kafka.ports.cluster import CountRequest
from sinks.kafka.ports.groups import LogRange
from sinks.kafka.ports.record_reader import RecordReader
from sinks.kafka.ports.record_reader_around import RecordReaderAround
from streaming.mm2.records import TopicPartition

API = "ListOffsets"
LEFT_OUT = {"org.apache.kafka.clients.admin.ListOffsetsResult$ListOffsetsResultInfo": ("timestamp", "leaderEpoch")}

FEW = 50
"""Partitions that are as soon asked for through librdkafka."""

WITHIN_MS = 5000
"""How long an answer may take. Java's client asks for a topic that is gone until its time is over."""

Ends = Observed[TopicPartition, LogRange]
Others = Callable[[Collection[TopicPartition]], Ends]
"""Who knows what is wrong with each partition."""


class JvmEnds:
    """The ends of one cluster's logs, through `Admin` in the JVM behind `gateway` (py4j). Opened when it is needed
    first; may be called from any thread."""

    def __init__(self, alias: str, gateway: Any, properties: Mapping[str, str], count_request: CountRequest) -> None:
        self._alias, self._gateway, self._properties, self._count = alias, gateway, properties, count_request
        self._lock = threading.Lock()
        self._client: _Client | None = None
        self._troubled: frozenset[TopicPartition] = frozenset()

    def of(self, partitions: Collection[TopicPartition], others: Others, *, committed: bool = False) -> Ends:
        """Start and end of each log; `committed`: for who reads committed records alone. What the JVM does not tell
        the others are asked for, of few partitions all. Raises what they raise."""
        if len(partitions) < FEW:
            return others(partitions)
        known = self._told([one for one in partitions if one not in self._troubled], committed)
        left = [one for one in partitions if one not in known]
        if not left:
            return Observed(known)
        # librdkafka has another word for partitions that are gone where it is asked for no other one.
        seen = others([*left, *list(known)[:1]])
        # One that is gone must not cost the others their answer the next time.
        with self._lock:
            self._troubled = self._troubled.difference(seen.items).union(seen.errors)
        return Observed({**known, **seen.items}, seen.errors)

    def _told(self, partitions: Collection[TopicPartition], committed: bool) -> dict[TopicPartition, LogRange]:
        """Of all of these, or of none."""
        try:
            found = self._opened().ranges(partitions, committed) if partitions else {}
        except Py4JJavaError as error:
            self._count(self._alias, API, cause_of(error))
            return {}
        except (Py4JError, ValueError, KeyError, TypeError):
            # Spark's connector, or Kafka's client, is of another version.
            return {}
        self._count(self._alias, API, "ok")
        return found

    def _opened(self) -> _Client:
        with self._lock:
            if self._client is None:
                self._client = _Client(self._alias, self._gateway.jvm, self._properties)
            return self._client

    def close(self) -> None:
        """Lets go of the client."""
        if self._client is not None:
            self._client.close()


class _Client:
    def __init__(self, alias: str, jvm: Any, properties: Mapping[str, str]) -> None:
        # First, for it raises where the client is of another version; nobody would close one that was opened by then.
        self._json, self._unit = FieldJson(jvm, LEFT_OUT), jvm.java.util.concurrent.TimeUnit.MILLISECONDS
        self._jvm, self._admin = jvm, java_admin(alias, jvm, properties)
        self._within = min(WITHIN_MS, timeout_ms(alias, properties))
        kafka = jvm.org.apache.kafka
        self._spec, self._options = kafka.clients.admin.OffsetSpec, kafka.clients.admin.ListOffsetsOptions
        self._isolation = kafka.common.IsolationLevel
        self._spark = jvm.org.apache.spark.sql.kafka010.JsonUtils
        self._java = jvm.scala.jdk.javaapi.CollectionConverters
        self._map = jvm.java.util.concurrent.ConcurrentHashMap

    def ranges(self, partitions: Collection[TopicPartition], committed: bool) -> dict[TopicPartition, LogRange]:
        """Raises Py4JJavaError where one of them has none, ValueError, KeyError and TypeError for what is not
        understood."""
        by_topic: dict[str, dict[str, int]] = defaultdict(dict)
        for one in partitions:
            by_topic[one.topic][str(one.partition)] = 0
        # As Spark's option `startingOffsets` has it: any number of partitions by one call.
        asked = self._java.asJavaCollection(self._spark.partitionOffsets(orjson.dumps(by_topic).decode()).keySet())
        level = self._isolation.READ_COMMITTED if committed else self._isolation.READ_UNCOMMITTED
        starts = self._asked(asked, self._spec.earliest(), self._isolation.READ_UNCOMMITTED)
        ends = self._asked(asked, self._spec.latest(), level)
        first, last = self._offsets(starts), self._offsets(ends)
        names = {one: f"{one.topic}-{one.partition}" for one in partitions}
        return {one: LogRange(first[name], last[name]) for one, name in names.items()}

    def _asked(self, partitions: Any, spec: Any, level: Any) -> Any:
        request = self._map()
        # A set that is a view of a map puts the same value to every key: a few calls for any number of partitions.
        request.keySet(spec).addAll(partitions)
        options = self._options(level)
        options.timeoutMs(self._jvm.java.lang.Integer.valueOf(self._within))
        return self._admin.listOffsets(request, options)

    def _offsets(self, result: Any) -> dict[str, int]:
        answer = result.all().get(self._within, self._unit)
        return {name: int(found["offset"]) for name, found in orjson.loads(self._json.text_of(answer)).items()}

    def close(self) -> None:
        self._admin.close(self._jvm.java.time.Duration.ofMillis(CLOSES_WITHIN_MS))


class JvmRecords(RecordReaderAround):
    """A `RecordReader` that asks for the ends of many logs through the JVM, and reads as it did."""

    def __init__(self, records: RecordReader, ends: JvmEnds, isolation: str) -> None:
        """`isolation`: as the other reads."""
        super().__init__(records)
        self._ends, self._isolation = ends, isolation

    def ends(self, partitions: Collection[TopicPartition]) -> Ends:
        return self._ends.of(partitions, self._records.ends)

    def readable(self, partitions: Collection[TopicPartition]) -> Ends:
        return self._ends.of(partitions, self._records.readable, committed=self._isolation == "read_committed")
