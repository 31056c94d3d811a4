"""Where the logs of many partitions begin and end, through the driver's own JVM.

librdkafka's Python client makes a future with a lock of its own for each partition, which costs ten times what the
question does. Source: `Admin.listOffsets`.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, TypeVar

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

QUESTIONS = 4
"""Partitions that were asked for together lately and are remembered with their answer: the same ones are asked about
again and again, and seldom has any of them moved."""

T = TypeVar("T")
Ends = Observed[TopicPartition, LogRange]
Latest = Observed[TopicPartition, int]
Offsets = Mapping[TopicPartition, int]
Others = Callable[[Collection[TopicPartition]], Ends]
LatestOthers = Callable[[Collection[TopicPartition]], Latest]
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
        return self._with_others(partitions, others, lambda client, some: client.ranges(some, committed))

    def latest(self, partitions: Collection[TopicPartition], others: LatestOthers) -> Latest:
        """The end alone, for half of what `of` costs; else as there."""
        return self._with_others(partitions, others, _Client.latest)

    def _with_others(
        self,
        partitions: Collection[TopicPartition],
        others: Callable[[Collection[TopicPartition]], Observed[TopicPartition, T]],
        ask: Callable[[_Client, Collection[TopicPartition]], Mapping[TopicPartition, T]],
    ) -> Observed[TopicPartition, T]:
        if len(partitions) < FEW:
            return others(partitions)
        known = self._told([one for one in partitions if one not in self._troubled], ask)
        left = [one for one in partitions if one not in known]
        if not left:
            return Observed(known)
        # librdkafka has another word for partitions that are gone where it is asked for no other one.
        seen = others([*left, *list(known)[:1]])
        # One that is gone must not cost the others their answer the next time.
        with self._lock:
            self._troubled = self._troubled.difference(seen.items).union(seen.errors)
        return Observed({**known, **seen.items}, seen.errors)

    def _told(
        self,
        partitions: Collection[TopicPartition],
        ask: Callable[[_Client, Collection[TopicPartition]], Mapping[TopicPartition, T]],
    ) -> Mapping[TopicPartition, T]:
        """Of all of these, or of none; the same answer as before is the same object."""
        try:
            found = ask(self._opened(), partitions) if partitions else {}
        except Py4JJavaError as error:
            self._count(self._alias, API, cause_of(error))
            return {}
        except (Py4JError, ValueError, KeyError, TypeError):
            # Spark's connector, or Kafka's client, is of another version.
            return {}
        self._count(self._alias, API, "ok")
        return found

    @property
    def admin(self) -> Any:
        """Its Java `Admin`, opened when it is needed first. Raises RightsMissing, Py4JError."""
        return self._opened().admin

    def _opened(self) -> _Client:
        with self._lock:
            if self._client is None:
                self._client = _Client(self._alias, self._gateway.jvm, self._properties)
            return self._client

    def close(self) -> None:
        """Lets go of the client."""
        # With the job's JVM its clients are gone.
        with suppress(Py4JError):
            if self._client is not None:
                self._client.close()


class _Question:
    """Partitions that are asked for together, and what was answered last. Of more than one thread the slower one may
    overwrite what the other found: an answer goes with its text."""

    def __init__(self, partitions: Collection[TopicPartition], asked: Any) -> None:
        """`asked`: the same in the JVM."""
        self.asked = asked
        self._by_name = {f"{one.topic}-{one.partition}": one for one in partitions}
        self._answers: dict[str, tuple[str, Offsets]] = {}
        self._ranges: tuple[Offsets, Offsets, Mapping[TopicPartition, LogRange]] | None = None

    def offsets(self, kind: str, text: str) -> Offsets:
        """Of an answer as JSON; the same object where it is the last one's. Raises KeyError where one is missing."""
        known = self._answers.get(kind)
        if known is not None and known[0] == text:
            return known[1]
        found = orjson.loads(text)
        offsets = {one: int(found[name]["offset"]) for name, one in self._by_name.items()}
        self._answers[kind] = (text, offsets)
        return offsets

    def ranges(self, starts: Offsets, ends: Offsets) -> Mapping[TopicPartition, LogRange]:
        """The same object where both are the last ones."""
        known = self._ranges
        if known is not None and known[0] is starts and known[1] is ends:
            return known[2]
        found = {one: LogRange(start, ends[one]) for one, start in starts.items()}
        self._ranges = (starts, ends, found)
        return found


class _Client:
    def __init__(self, alias: str, jvm: Any, properties: Mapping[str, str]) -> None:
        # First, for it raises where the client is of another version; nobody would close one that was opened by then.
        self._json, self._unit = FieldJson(jvm, LEFT_OUT), jvm.java.util.concurrent.TimeUnit.MILLISECONDS
        self._jvm, self.admin = jvm, java_admin(alias, jvm, properties)
        self._within = min(WITHIN_MS, timeout_ms(alias, properties))
        kafka = jvm.org.apache.kafka
        self._spec, self._options = kafka.clients.admin.OffsetSpec, kafka.clients.admin.ListOffsetsOptions
        self._isolation = kafka.common.IsolationLevel
        self._spark = jvm.org.apache.spark.sql.kafka010.JsonUtils
        self._java = jvm.scala.jdk.javaapi.CollectionConverters
        self._map = jvm.java.util.concurrent.ConcurrentHashMap
        self._question = lru_cache(QUESTIONS)(self._new_question)

    def _new_question(self, partitions: tuple[TopicPartition, ...]) -> _Question:
        by_topic: dict[str, dict[str, int]] = defaultdict(dict)
        for one in partitions:
            by_topic[one.topic][str(one.partition)] = 0
        # As Spark's option `startingOffsets` has it: any number of partitions by one call.
        asked = self._spark.partitionOffsets(orjson.dumps(by_topic).decode()).keySet()
        return _Question(partitions, self._java.asJavaCollection(asked))

    def ranges(self, partitions: Collection[TopicPartition], committed: bool) -> Mapping[TopicPartition, LogRange]:
        """Raises Py4JJavaError where one of them has none, ValueError, KeyError and TypeError for what is not
        understood."""
        question = self._question(tuple(partitions))
        starts = self._asked(question, self._spec.earliest(), committed=False)
        ends = self._asked(question, self._spec.latest(), committed=committed)
        first = question.offsets("start", self._text(starts))
        return question.ranges(first, question.offsets(f"end {committed}", self._text(ends)))

    def latest(self, partitions: Collection[TopicPartition]) -> Offsets:
        """Raises as `ranges` does."""
        question = self._question(tuple(partitions))
        return question.offsets("end False", self._text(self._asked(question, self._spec.latest(), committed=False)))

    def _asked(self, question: _Question, spec: Any, *, committed: bool) -> Any:
        request = self._map()
        # A set that is a view of a map puts the same value to every key: a few calls for any number of partitions.
        request.keySet(spec).addAll(question.asked)
        options = self._options(self._isolation.READ_COMMITTED if committed else self._isolation.READ_UNCOMMITTED)
        options.timeoutMs(self._jvm.java.lang.Integer.valueOf(self._within))
        return self.admin.listOffsets(request, options)

    def _text(self, result: Any) -> str:
        return self._json.text_of(result.all().get(self._within, self._unit))

    def close(self) -> None:
        self.admin.close(self._jvm.java.time.Duration.ofMillis(CLOSES_WITHIN_MS))


class JvmRecords(RecordReaderAround):
    """A `RecordReader` that asks for the ends of many logs through the JVM, and reads as it did."""

    def __init__(self, records: RecordReader, ends: JvmEnds, isolation: str) -> None:
        """`isolation`: as the other reads."""
        super().__init__(records)
        self._ends, self._isolation = ends, isolation

    def ends(self, partitions: Collection[TopicPartition]) -> Ends:
        return self._ends.of(partitions, self._records.ends)

    def latest(self, partitions: Collection[TopicPartition]) -> Latest:
        return self._ends.latest(partitions, self._records.latest)

    def readable(self, partitions: Collection[TopicPartition]) -> Ends:
        return self._ends.of(partitions, self._records.readable, committed=self._isolation == "read_committed")
