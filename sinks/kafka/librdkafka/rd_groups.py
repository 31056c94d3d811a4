"""Consumer groups and the ends of logs: what the sink asks for, and Kafka's through librdkafka.

librdkafka asks for one group's offsets in a request; the requests of many groups leave together.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import confluent_kafka as rd
from confluent_kafka.admin import OffsetSpec

from sinks.faults import ItemFault, Observed
from sinks.kafka.librdkafka.admin import TIMEOUT, Admin
from sinks.kafka.librdkafka.error_codes import item_fault, raised
from sinks.kafka.ports.groups import GroupFaults, LogRange, Offsets
from streaming.mm2.records import TopicPartition

# The package's own types leave these two out.
EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]

GROUPS_UNDER_WAY = 1000
"""Groups whose requests are under way together: a broker queues 500 requests by default (`queued.max.requests`)."""

NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""What a topic has where the cluster gives none."""


class KafkaGroups:
    """A cluster's groups through an admin client that is shared."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    def names(self) -> set[str]:
        future = self._admin.client.list_consumer_groups(request_timeout=TIMEOUT)
        listed, error = self._admin.settle("ListGroups", {"": future})[""]
        if error is not None:
            raise raised(self._admin.alias, "ListGroups", error)
        return {found.group_id for found in listed.valid}

    def committed(self, groups: Collection[str]) -> Observed[str, Offsets]:
        items: dict[str, Offsets] = {}
        errors: dict[str, ItemFault] = {}
        for batch in _batches(sorted(groups)):
            futures = {
                group: self._admin.client.list_consumer_group_offsets(
                    [rd.ConsumerGroupTopicPartitions(group)], request_timeout=TIMEOUT
                )[group]
                for group in batch
            }
            for group, (found, error) in self._admin.settle("OffsetFetch", futures).items():
                if error is not None:
                    errors[group] = item_fault(error)
                else:
                    items[group] = {_from_rd(one): one.offset for one in found.topic_partitions if one.offset >= 0}
        return Observed(items, errors)

    def members(self, groups: Collection[str]) -> Observed[str, int]:
        items: dict[str, int] = {}
        errors: dict[str, ItemFault] = {}
        for batch in _batches(sorted(groups)):
            futures = self._admin.client.describe_consumer_groups(list(batch), request_timeout=TIMEOUT)
            for group, (found, error) in self._admin.settle("DescribeGroups", futures).items():
                if error is None:
                    items[group] = len(found.members)
                elif error.code() == rd.KafkaError.GROUP_ID_NOT_FOUND:
                    # Since KIP-1043 a broker says so; older ones show a group without members.
                    items[group] = 0
                else:
                    errors[group] = item_fault(error)
        return Observed(items, errors)

    def ends(self, partitions: Collection[TopicPartition]) -> Observed[TopicPartition, LogRange]:
        starts, errors = self._offsets(partitions, EARLIEST)
        latest, more = self._offsets(partitions, LATEST)
        items = {
            where: LogRange(starts[where], latest[where]) for where in partitions if {where} <= starts.keys() & latest
        }
        return Observed(items, errors | more)

    def topic_ids(self, topics: Collection[str]) -> dict[str, str]:
        names = sorted(topics)
        ids: dict[str, str] = {}
        for start in range(0, len(names), GROUPS_UNDER_WAY):
            asked = rd.TopicCollection(names[start : start + GROUPS_UNDER_WAY])
            futures = self._admin.client.describe_topics(asked, request_timeout=TIMEOUT)
            for name, (found, error) in self._admin.settle("DescribeTopics", futures).items():
                if error is None:
                    ids[name] = "" if str(found.topic_id) == NO_ID else str(found.topic_id)
        return ids

    def _offsets(
        self, partitions: Collection[TopicPartition], spec: OffsetSpec
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, ItemFault]]:
        offsets: dict[TopicPartition, int] = {}
        errors: dict[TopicPartition, ItemFault] = {}
        if not partitions:
            return offsets, errors
        asked = {_to_rd(where): where for where in partitions}
        futures = self._admin.client.list_offsets(dict.fromkeys(asked, spec), request_timeout=TIMEOUT)
        for one, (found, error) in self._admin.settle("ListOffsets", futures).items():
            if error is None:
                offsets[asked[one]] = found.offset
            else:
                errors[asked[one]] = item_fault(error)
        return offsets, errors

    def commit(self, offsets: Mapping[str, Offsets]) -> GroupFaults:
        faults: GroupFaults = {}
        for batch in _batches(sorted(offsets)):
            futures = {
                group: self._admin.client.alter_consumer_group_offsets(
                    [
                        rd.ConsumerGroupTopicPartitions(
                            group, [_to_rd(where, offset) for where, offset in offsets[group].items()]
                        )
                    ],
                    request_timeout=TIMEOUT,
                )[group]
                for group in batch
            }
            for group, (found, error) in self._admin.settle("OffsetCommit", futures).items():
                if error is not None:
                    faults[group] = dict.fromkeys(offsets[group], item_fault(error))
                else:
                    faults[group] = {
                        _from_rd(one): item_fault(one.error) if one.error else None for one in found.topic_partitions
                    }
        return faults


def _batches(groups: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(groups), GROUPS_UNDER_WAY):
        yield groups[start : start + GROUPS_UNDER_WAY]


def _to_rd(where: TopicPartition, offset: int = rd.OFFSET_INVALID) -> rd.TopicPartition:
    return rd.TopicPartition(where.topic, where.partition, offset)


def _from_rd(one: rd.TopicPartition) -> TopicPartition:
    return TopicPartition(one.topic, one.partition)
