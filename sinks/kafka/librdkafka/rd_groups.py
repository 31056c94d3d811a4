"""Consumer groups and the ends of logs: what the sink asks for, and Kafka's through librdkafka.

What goes to the coordinators of groups leaves from another process, see `group_process`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import confluent_kafka as rd

from sinks.faults import ItemFault, Observed
from sinks.kafka.librdkafka.admin import Admin
from sinks.kafka.librdkafka.group_process import GroupProcess
from sinks.kafka.librdkafka.group_requests import GROUPS_UNDER_WAY, batches
from sinks.kafka.librdkafka.rd_offsets import COMMITTED, EARLIEST, LATEST, UNCOMMITTED, offsets_of
from sinks.kafka.ports.groups import GroupFaults, LogRange, Offsets
from streaming.mm2.records import TopicPartition

NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""What a topic has where the cluster gives none."""


class KafkaGroups:
    """A cluster's groups through an admin client that is shared; those requests go to brokers, not to coordinators.

    What only coordinators know raises CoordinatorUnavailable where none of them answered.
    """

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._process = GroupProcess(admin)

    def names(self) -> set[str]:
        names: set[str] = self._process.call("names")
        return names

    def committed(self, groups: Collection[str]) -> Observed[str, Offsets]:
        items: dict[str, Offsets] = {}
        errors: dict[str, ItemFault] = {}
        for batch in batches(sorted(groups)):
            seen: Observed[str, Offsets] = self._process.call("committed", batch)
            items |= seen.items
            errors |= seen.errors
        return Observed(items, errors)

    def members(self, groups: Collection[str]) -> Observed[str, int]:
        # One call however many they are: it lists all groups of the cluster.
        seen: Observed[str, int] = self._process.call("members", sorted(groups)) if groups else Observed({})
        return seen

    def commit(self, offsets: Mapping[str, Offsets]) -> GroupFaults:
        faults: GroupFaults = {}
        for batch in batches(sorted(offsets)):
            done: GroupFaults = self._process.call("commit", {group: dict(offsets[group]) for group in batch})
            faults |= done
        return faults

    def close(self) -> None:
        """Ends the process that asks coordinators."""
        self._process.close()

    def ends(
        self, partitions: Collection[TopicPartition], committed: bool = False
    ) -> Observed[TopicPartition, LogRange]:
        starts = offsets_of(self._admin, partitions, EARLIEST)
        latest = offsets_of(self._admin, partitions, LATEST, COMMITTED if committed else UNCOMMITTED)
        both = starts.items.keys() & latest.items.keys()
        items = {where: LogRange(starts.items[where], latest.items[where]) for where in both}
        return Observed(items, {**starts.errors, **latest.errors})

    def latest(self, partitions: Collection[TopicPartition]) -> Observed[TopicPartition, int]:
        return offsets_of(self._admin, partitions, LATEST)

    def partition_count(self, topic: str) -> int | None:
        """Of one topic; None where it is not there, or may not be seen."""
        asked = rd.TopicCollection([topic])
        futures = self._admin.client.describe_topics(asked, request_timeout=self._admin.timeout)
        found, error = self._admin.settle("DescribeTopics", futures)[topic]
        return len(found.partitions) if error is None else None

    def topic_ids(self, topics: Collection[str]) -> dict[str, str]:
        names = sorted(topics)
        ids: dict[str, str] = {}
        for start in range(0, len(names), GROUPS_UNDER_WAY):
            asked = rd.TopicCollection(names[start : start + GROUPS_UNDER_WAY])
            futures = self._admin.client.describe_topics(asked, request_timeout=self._admin.timeout)
            for name, (found, error) in self._admin.settle("DescribeTopics", futures).items():
                if error is None:
                    ids[name] = "" if str(found.topic_id) == NO_ID else str(found.topic_id)
        return ids
