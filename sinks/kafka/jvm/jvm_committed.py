"""Committed offsets of many groups through the driver's own JVM: Java's Admin asks a coordinator for hundreds in one
request (KIP-709), librdkafka for one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

from py4j.java_gateway import JavaMember
from py4j.protocol import Py4JJavaError

from sinks.faults import Observed
from sinks.kafka.jvm.committed_text import names_of, offsets_of
from sinks.kafka.jvm.java_admin import CLOSES_WITHIN_MS, cause_of, java_admin, timeout_ms
from sinks.kafka.jvm.jvm_groups import GROUPS_IN_A_REQUEST
from sinks.kafka.ports.cluster import CountRequest
from sinks.kafka.ports.group_reader_around import GroupReaderAround
from sinks.kafka.ports.groups import GroupFaults, Groups, Offsets

FEW = 20
"""Groups that are as soon asked for one by one."""

GROUP_SEPARATOR = "\n"
"""Between names on their way to the JVM; a group with it in its name is asked for by itself."""


class JvmCommitted:
    """Reads committed offsets of one cluster, through `Admin` in the JVM behind `gateway` (py4j)."""

    def __init__(self, alias: str, gateway: Any, properties: Mapping[str, str], count_request: CountRequest) -> None:
        self._alias, self._jvm, self._count = alias, gateway.jvm, count_request
        self._admin, self._timeout = java_admin(alias, self._jvm, properties), timeout_ms(alias, properties)
        self._unit = self._jvm.java.util.concurrent.TimeUnit.MILLISECONDS
        self._every = self._jvm.org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec()
        self._lines = self._jvm.java.util.regex.Pattern.compile(GROUP_SEPARATOR)

    def committed(self, groups: Sequence[str]) -> dict[str, Offsets]:
        """Of as many of these groups as were answered and understood. All requests leave before the first answer."""
        plain = [group for group in groups if group and GROUP_SEPARATOR not in group]
        chunks = [plain[start : start + GROUPS_IN_A_REQUEST] for start in range(0, len(plain), GROUPS_IN_A_REQUEST)]
        requests = [(chunk, self._admin.listConsumerGroupOffsets(self._request(chunk))) for chunk in chunks]
        found: dict[str, Offsets] = {}
        for chunk, result in requests:
            found |= self._answer(chunk, result)
        return found

    def _request(self, groups: Sequence[str]) -> Any:
        # A set that is a view of a map puts the same value to every key: a few calls for any number of groups.
        request = self._jvm.java.util.concurrent.ConcurrentHashMap()
        request.keySet(self._every).addAll(self._lines.splitAsStream(GROUP_SEPARATOR.join(groups)).toList())
        return request

    def _answer(self, groups: Sequence[str], result: Any) -> dict[str, Offsets]:
        try:
            answer = result.all().get(self._timeout, self._unit)
        except Py4JJavaError as error:
            # Whoever asks for them one by one learns which group it is about.
            self._count(self._alias, "OffsetFetch", cause_of(error))
            return {}
        self._count(self._alias, "OffsetFetch", "ok")
        names = names_of(answer.keySet().toString(), frozenset(groups))
        # To py4j `values` is what Python's mappings have, and makes an object of each.
        values = JavaMember("values", answer, answer._target_id, answer._gateway_client)()
        offsets = offsets_of(values.toString(), len(groups))
        return {} if names is None or offsets is None else dict(zip(names, offsets, strict=True))

    def close(self) -> None:
        """Lets go of the client."""
        self._admin.close(self._jvm.java.time.Duration.ofMillis(CLOSES_WITHIN_MS))


class BulkGroups(GroupReaderAround):
    """`Groups` that read the offsets of many groups through the JVM, and everything else as they did."""

    def __init__(
        self, groups: Groups, alias: str, gateway: Any, client: Mapping[str, str], count: CountRequest
    ) -> None:
        super().__init__(groups)
        self._written, self._made_of = groups, (alias, gateway, client, count)

    @cached_property
    def _bulk(self) -> JvmCommitted:
        return JvmCommitted(*self._made_of)

    def committed(self, groups: Collection[str]) -> Observed[str, Offsets]:
        """As `GroupReader` has it."""
        if len(groups) < FEW:
            return self._groups.committed(groups)
        return self._with_others(self._bulk.committed(sorted(groups)), groups)

    def commit(self, offsets: Mapping[str, Offsets]) -> GroupFaults:
        return self._written.commit(offsets)

    def close(self) -> None:
        """Lets go of the JVM's client, if there is one; the groups are the cluster's."""
        if "_bulk" in self.__dict__:
            self._bulk.close()
