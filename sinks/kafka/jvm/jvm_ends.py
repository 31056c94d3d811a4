"""Where the logs of many partitions begin and end, and which offset has a timestamp. Source: `Admin.listOffsets`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import Any

import orjson

from sinks.faults import ItemFault, Observed
from sinks.kafka.jvm.java_admin import JavaAdmin, Settled
from sinks.kafka.jvm.java_rows import TOPIC_PARTITION, Make
from sinks.kafka.jvm.jvm_topics import JvmTopics
from sinks.kafka.ports.groups import LogRange
from sinks.kafka.ports.record_reader import PartitionTime
from streaming.mm2.records import TopicPartition

API = "ListOffsets"
ADMIN = "org.apache.kafka.clients.admin."
RESULT = ADMIN + "ListOffsetsResult"
LEFT_OUT = {RESULT + "$ListOffsetsResultInfo": ("timestamp", "leaderEpoch")}
AT_TIME = Make(ADMIN + "OffsetSpec", ("long",), by="forTimestamp")

WITHIN = 5.0
"""Seconds that an answer may take. Java's client asks for a partition without a leader until its time is over."""

QUESTIONS = 4
"""Partitions that were asked for together lately and are remembered with their answer: the same ones are asked about
again and again, and seldom has any of them moved."""

Offsets = Mapping[TopicPartition, int]


class _Question:
    """Partitions that are asked for together, and the last answer. Each answer is kept with its text, because threads
    may overwrite each other's."""

    def __init__(self, partitions: Sequence[TopicPartition], asked: Any) -> None:
        """`asked`: the same in the JVM."""
        self.partitions, self.asked = partitions, asked
        self._answers: dict[str, tuple[str, Offsets]] = {}
        self._ranges: tuple[Offsets, Offsets, Mapping[TopicPartition, LogRange]] | None = None

    def offsets(self, kind: str, text: str) -> Offsets:
        """Parse an answer's JSON. Returns the same object if it is the last answer's."""
        known = self._answers.get(kind)
        if known is not None and known[0] == text:
            return known[1]
        found = zip(self.partitions, orjson.loads(text), strict=True)
        offsets = {one: int(answer["offset"]) for one, answer in found if answer is not None}
        self._answers[kind] = (text, offsets)
        return offsets

    def ranges(self, starts: Offsets, ends: Offsets) -> Mapping[TopicPartition, LogRange]:
        """The same object where both are the last ones."""
        known = self._ranges
        if known is not None and known[0] is starts and known[1] is ends:
            return known[2]
        found = {one: LogRange(start, ends[one]) for one, start in starts.items() if one in ends}
        self._ranges = (starts, ends, found)
        return found


class JvmEnds:
    """The ends of one cluster's logs. Thread-safe."""

    def __init__(self, admin: JavaAdmin) -> None:
        self._admin, self._topics = admin, JvmTopics(admin)
        self._troubled: frozenset[TopicPartition] = frozenset()
        self._question = lru_cache(QUESTIONS)(self._new_question)
        self._options = lru_cache(self._new_options)

    def ends(
        self, partitions: Collection[TopicPartition], committed: bool = False
    ) -> Observed[TopicPartition, LogRange]:
        """Returns start and end of each log. `committed`: the end for a reader of committed records."""
        left, faults = self._without_troubled(partitions)
        if not left:
            return Observed({}, faults)
        question = self._question(tuple(left))
        starts, early = self._asked(question, "start", committed=False)
        ends, late = self._asked(question, "end", committed=committed)
        self._remember(faults := {**faults, **early, **late})
        return Observed(question.ranges(starts, ends), faults)

    def latest(self, partitions: Collection[TopicPartition]) -> Observed[TopicPartition, int]:
        left, faults = self._without_troubled(partitions)
        if not left:
            return Observed({}, faults)
        found, late = self._asked(self._question(tuple(left)), "end", committed=False)
        self._remember(faults := {**faults, **late})
        return Observed(found, faults)

    def for_times(self, times: Collection[PartitionTime]) -> Observed[PartitionTime, int | None]:
        found: dict[PartitionTime, int | None] = {}
        faults: dict[PartitionTime, ItemFault] = {}
        left = set(times)
        while left:
            # A request has a partition once.
            once = [next(group) for _, group in groupby(sorted(left), attrgetter("where"))]
            left -= set(once)
            settled = self._settled_times(once)
            answers = self._admin.answers(settled, LEFT_OUT)
            found |= {one: at["offset"] if at["offset"] >= 0 else None for one, at in answers.items()}
            faults |= settled.faults
        return Observed(found, faults)

    def _settled_times(self, times: Sequence[PartitionTime]) -> Settled[PartitionTime]:
        rows = self._admin.rows
        words = [[one.where.topic, str(one.where.partition), str(one.timestamp)] for one in times]
        request = rows.pairs(TOPIC_PARTITION, AT_TIME, words)
        asked = rows.made(TOPIC_PARTITION, (row[:2] for row in words))
        return self._admin.settle(
            API,
            times,
            lambda client: self._listed(client.listOffsets(request, self._options()), asked),
            lambda slow: self._slow_times(slow),
        )

    def _slow_times(self, slow: Sequence[PartitionTime]) -> dict[PartitionTime, ItemFault]:
        troubles = self._topics.troubles([one.where for one in slow])
        return {one: troubles[one.where] for one in slow if one.where in troubles}

    def _new_question(self, partitions: tuple[TopicPartition, ...]) -> _Question:
        words = ([one.topic, str(one.partition)] for one in partitions)
        return _Question(partitions, self._admin.rows.made(TOPIC_PARTITION, words))

    def _without_troubled(
        self, partitions: Collection[TopicPartition]
    ) -> tuple[Collection[TopicPartition], dict[TopicPartition, ItemFault]]:
        """Leave out partitions that are gone. Otherwise each request would wait a moment for them."""
        again = [one for one in partitions if one in self._troubled] if self._troubled else []
        faults = self._topics.troubles(again) if again else {}
        return ([one for one in partitions if one not in faults] if faults else partitions), faults

    def _remember(self, faults: Mapping[TopicPartition, ItemFault]) -> None:
        if self._troubled != faults.keys():
            self._troubled = frozenset(faults)

    def _asked(
        self, question: _Question, kind: str, *, committed: bool
    ) -> tuple[Offsets, dict[TopicPartition, ItemFault]]:
        spec = self._admin.jvm.org.apache.kafka.clients.admin.OffsetSpec
        request = self._admin.jvm.java.util.concurrent.ConcurrentHashMap()
        # A set that is a view of a map puts the same value to every key: a few calls for any number of partitions.
        request.keySet(spec.earliest() if kind == "start" else spec.latest()).addAll(question.asked)
        options = self._options(committed)
        settled = self._admin.settle(
            API,
            question.partitions,
            lambda client: self._listed(client.listOffsets(request, options), question.asked),
            self._topics.troubles,
        )
        text = self._admin.rows.text(settled.answers, LEFT_OUT)
        return question.offsets(f"{kind} {committed}", text), dict(settled.faults)

    def _listed(self, result: Any, asked: Any) -> Any:
        return self._admin.rows.by(result, RESULT, "partitionResult", asked, TOPIC_PARTITION.type)

    def _new_options(self, committed: bool = False) -> Any:
        kafka = self._admin.jvm.org.apache.kafka
        isolation = kafka.common.IsolationLevel
        options = kafka.clients.admin.ListOffsetsOptions(
            isolation.READ_COMMITTED if committed else isolation.READ_UNCOMMITTED
        )
        within = int(min(WITHIN, self._admin.timeout) * 1000)
        return options.timeoutMs(self._admin.jvm.java.lang.Integer.valueOf(within))
