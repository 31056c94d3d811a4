"""Committed offsets of many groups through the driver's own JVM: Java's Admin asks a coordinator for hundreds in one
request (KIP-709), librdkafka for one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError

from sinks.faults import Observed
from sinks.kafka.jvm.committed_json import CommittedJson
from sinks.kafka.jvm.java_admin import CLOSES_WITHIN_MS, cause_of, java_admin, timeout_ms
from sinks.kafka.jvm.jvm_ends import WITHIN_MS, JvmEnds
from sinks.kafka.jvm.jvm_groups import CommittedRequests, in_requests
from sinks.kafka.jvm.jvm_topic_ids import JvmTopicIds
from sinks.kafka.ports.cluster import CountRequest
from sinks.kafka.ports.group_reader_around import GroupReaderAround
from sinks.kafka.ports.groups import GroupFaults, Groups, LogRange, Offsets
from streaming.mm2.records import TopicPartition

FEW = 20
"""Groups that are as soon asked for one by one."""


class JvmCommitted:
    """Reads committed offsets of one cluster, through `Admin` in the JVM behind `gateway` (py4j)."""

    def __init__(self, alias: str, gateway: Any, properties: Mapping[str, str], count_request: CountRequest) -> None:
        self._alias, self._jvm, self._count = alias, gateway.jvm, count_request
        self._admin, self._timeout = java_admin(alias, self._jvm, properties), timeout_ms(alias, properties)
        self._unit = self._jvm.java.util.concurrent.TimeUnit.MILLISECONDS
        self._json, self._requests = CommittedJson(self._jvm), CommittedRequests(self._jvm)
        self._map = self._jvm.java.util.HashMap

    def committed(self, groups: Sequence[str]) -> dict[str, Offsets]:
        """Of as many of these groups as were answered and understood. All requests leave before the first answer."""
        results = [self._admin.listConsumerGroupOffsets(self._requests.of(some)) for some in in_requests(groups)]
        # All in one text: py4j sends without TCP_NODELAY, and one of some tens of kilobytes takes as many milliseconds.
        together = self._map()
        for result in results:
            if (answer := self._answer(result)) is not None:
                together.putAll(answer)
        return self._json.read(together)

    def _answer(self, result: Any) -> Any:
        """None where it is an error: whoever asks for these groups one by one learns which of them it is about."""
        try:
            answer = result.all().get(self._timeout, self._unit)
        except Py4JJavaError as error:
            self._count(self._alias, "OffsetFetch", cause_of(error))
            return None
        self._count(self._alias, "OffsetFetch", "ok")
        return answer

    def close(self) -> None:
        """Lets go of the client."""
        self._admin.close(self._jvm.java.time.Duration.ofMillis(CLOSES_WITHIN_MS))


class BulkGroups(GroupReaderAround):
    """`Groups` that read the offsets of many groups, the ends of many logs and the ids of many topics through the JVM,
    and everything else as they did."""

    def __init__(
        self, groups: Groups, ends: JvmEnds, alias: str, gateway: Any, client: Mapping[str, str], count: CountRequest
    ) -> None:
        super().__init__(groups)
        self._written, self._ends, self._made_of = groups, ends, (alias, gateway, client, count)
        self._ids = JvmTopicIds(alias, gateway, lambda: ends.admin, min(WITHIN_MS, timeout_ms(alias, client)), count)

    @cached_property
    def _bulk(self) -> JvmCommitted:
        return JvmCommitted(*self._made_of)

    def committed(self, groups: Collection[str]) -> Observed[str, Offsets]:
        """As `GroupReader` has it."""
        if len(groups) < FEW:
            return self._groups.committed(groups)
        return self._with_others(self._bulk.committed(sorted(groups)), groups)

    def ends(self, partitions: Collection[TopicPartition]) -> Observed[TopicPartition, LogRange]:
        """As `GroupReader` has it."""
        return self._ends.of(partitions, self._groups.ends)

    def latest(self, partitions: Collection[TopicPartition]) -> Observed[TopicPartition, int]:
        """As `GroupReader` has it."""
        return self._ends.latest(partitions, self._groups.latest)

    def topic_ids(self, topics: Collection[str]) -> dict[str, str]:
        """As `GroupReader` has it."""
        return self._ids.of(topics, self._groups.topic_ids)

    def commit(self, offsets: Mapping[str, Offsets]) -> GroupFaults:
        return self._written.commit(offsets)

    def close(self) -> None:
        """Lets go of the JVM's client, if there is one; the groups are the cluster's."""
        # With the job's JVM its clients are gone.
        with suppress(Py4JError):
            if "_bulk" in self.__dict__:
                self._bulk.close()
