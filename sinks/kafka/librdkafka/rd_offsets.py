"""Offsets by ListOffsets through librdkafka, which keeps two things to itself (2.16, at a broker's restart).

While the broker is away it answers with OFFSET_INVALID (-1001) and no error: taken for the end of a log, every position
would be behind it. When the broker is back it asks with the leader's epoch of before, in vain, until it fetches
metadata by itself minutes later.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import confluent_kafka as rd
from confluent_kafka import KafkaError
from confluent_kafka.admin import OffsetSpec

from sinks.faults import ItemFault
from sinks.kafka.librdkafka.admin import Admin
from sinks.kafka.librdkafka.error_codes import item_fault

OUTDATED = frozenset({KafkaError.FENCED_LEADER_EPOCH, KafkaError.UNKNOWN_LEADER_EPOCH})
NOT_SHOWN = ItemFault("LEADER_NOT_AVAILABLE", "no broker told its offset", retriable=True)

Answers = dict[rd.TopicPartition, tuple[Any, KafkaError | None]]


def list_offsets(
    admin: Admin, specs: Mapping[rd.TopicPartition, OffsetSpec], isolation: rd.IsolationLevel
) -> dict[rd.TopicPartition, int | ItemFault]:
    """The offset of each partition, or why it is not known. Raises ClusterUnreachable, RightsMissing."""
    answers = _ask(admin, specs, isolation)
    outdated = {
        one: specs[one] for one, (_, error) in answers.items() if error is not None and error.code() in OUTDATED
    }
    if outdated:
        admin.call("Metadata", lambda: admin.client.list_topics(timeout=admin.timeout))
        answers |= _ask(admin, outdated, isolation)
    return {one: told(found, error) for one, (found, error) in answers.items()}


def told(found: Any, error: KafkaError | None) -> int | ItemFault:
    """An answer's offset (-1 where none has the timestamp that was asked for), or why it is not known."""
    if error is not None:
        return item_fault(error)
    offset: int = found.offset
    return NOT_SHOWN if offset == rd.OFFSET_INVALID else offset


def _ask(admin: Admin, specs: Mapping[rd.TopicPartition, OffsetSpec], isolation: rd.IsolationLevel) -> Answers:
    futures = admin.client.list_offsets(dict(specs), isolation_level=isolation, request_timeout=admin.timeout)
    return admin.settle("ListOffsets", futures)
