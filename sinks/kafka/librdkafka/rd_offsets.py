"""Offsets by ListOffsets through librdkafka, which keeps two things to itself (2.16, at a broker's restart).

While the broker is away it answers with OFFSET_INVALID (-1001) and no error: taken for the end of a log, every position
would be behind it. When the broker is back it asks with the leader's epoch of before, in vain, until it fetches
metadata by itself minutes later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

import confluent_kafka as rd
from confluent_kafka import KafkaError
from confluent_kafka.admin import OffsetSpec

from sinks.faults import ItemFault, Observed
from sinks.kafka.librdkafka.admin import Admin
from sinks.kafka.librdkafka.error_codes import item_fault
from streaming.mm2.records import TopicPartition

K = TypeVar("K", bound=Hashable)

OUTDATED = frozenset({KafkaError.FENCED_LEADER_EPOCH, KafkaError.UNKNOWN_LEADER_EPOCH})
NOT_SHOWN = ItemFault("LEADER_NOT_AVAILABLE", "no broker told its offset", retriable=True)
# The package's own types leave these two out.
EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
UNCOMMITTED, COMMITTED = rd.IsolationLevel.READ_UNCOMMITTED, rd.IsolationLevel.READ_COMMITTED

Asked = tuple[TopicPartition, OffsetSpec]


def offsets_of(
    admin: Admin, partitions: Collection[TopicPartition], spec: OffsetSpec, isolation: rd.IsolationLevel = UNCOMMITTED
) -> Observed[TopicPartition, int]:
    """One offset of each partition. Raises ClusterUnreachable, RightsMissing."""
    return list_offsets(admin, {where: (where, spec) for where in partitions}, isolation)


def list_offsets(
    admin: Admin, asked: Mapping[K, Asked], isolation: rd.IsolationLevel = UNCOMMITTED
) -> Observed[K, int]:
    """The offset that each asks for; -1 where no record has the timestamp, or a later one.

    Raises ClusterUnreachable, RightsMissing.
    """
    if not asked:
        return Observed({})
    answers = _ask(admin, asked, isolation)
    outdated = {one for one, (_, error) in answers.items() if error is not None and error.code() in OUTDATED}
    if outdated:
        admin.call("Metadata", lambda: admin.client.list_topics(timeout=admin.timeout))
        answers |= _ask(admin, {one: asked[one] for one in outdated}, isolation)
    told = {one: _told(found, error) for one, (found, error) in answers.items()}
    return Observed(
        {one: offset for one, offset in told.items() if not isinstance(offset, ItemFault)},
        {one: offset for one, offset in told.items() if isinstance(offset, ItemFault)},
    )


def _told(found: Any, error: KafkaError | None) -> int | ItemFault:
    if error is not None:
        return item_fault(error)
    offset: int = found.offset
    return NOT_SHOWN if offset == rd.OFFSET_INVALID else offset


def _ask(
    admin: Admin, asked: Mapping[K, Asked], isolation: rd.IsolationLevel
) -> dict[K, tuple[Any, KafkaError | None]]:
    futures: dict[K, Future[Any]] = {}
    for request in _requests(asked):
        specs = {rd.TopicPartition(where.topic, where.partition): asked[one][1] for where, one in request.items()}
        sent = admin.client.list_offsets(specs, isolation_level=isolation, request_timeout=admin.timeout)
        futures |= {request[TopicPartition(at.topic, at.partition)]: future for at, future in sent.items()}
    return admin.settle("ListOffsets", futures)


def _requests(asked: Mapping[K, Asked]) -> list[dict[TopicPartition, K]]:
    """A request has a partition once: so many leave together as one partition is asked for."""
    requests: list[dict[TopicPartition, K]] = []
    counts: Counter[TopicPartition] = Counter()
    for one, (where, _) in asked.items():
        if counts[where] == len(requests):
            requests.append({})
        requests[counts[where]][where] = one
        counts[where] += 1
    return requests
