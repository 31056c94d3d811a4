"""The requests about groups through librdkafka, each of which goes to a coordinator; in a process of their own.

librdkafka asks for one group's offsets in a request; the requests of many groups leave together. It describes groups
of consumers alone (classic ones, and those of KIP-848), not share groups (KIP-932) nor streams groups (KIP-1071).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import cycle
from typing import Any

import confluent_kafka as rd

from sinks.faults import CoordinatorUnavailable, ItemFault, Observed
from sinks.kafka.librdkafka.admin import Admin
from sinks.kafka.librdkafka.error_codes import item_fault, raised
from sinks.kafka.ports.groups import GroupFaults, Offsets
from streaming.mm2.records import TopicPartition

AT_LEAST_ONE = 1
"""Members of a group that is listed but not described: it is of a type that librdkafka does not know."""

GROUPS_UNDER_WAY = 1000
"""Groups whose requests are under way together: a broker queues 500 requests by default (`queued.max.requests`)."""

GROUPS_OF_A_CONNECTION, MOST_CONNECTIONS = 50, 8
"""Groups from whose number on one more connection commits, and how many connections do at the most."""

ONE_BY_ONE = 20
"""Groups that are looked for in a request each."""


class GroupRequests:
    """Everything that is asked of a cluster's groups. Names and shapes are those of `ports.groups`."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._others: list[Admin] = []

    def names(self) -> set[str]:
        """Raises CoordinatorUnavailable where a broker did not answer: its groups are not gone."""
        return {found.group_id for found in self._list()}

    def _list(self) -> list[Any]:
        future = self._admin.client.list_consumer_groups(request_timeout=self._admin.timeout)
        listed, error = self._admin.settle("ListGroups", {"": future})[""]
        if error is not None:
            raise raised(self._admin.alias, "ListGroups", error)
        if listed.errors:
            errors: list[rd.KafkaError] = list(listed.errors)
            self._admin.mind(errors)
            reasons, alias = ", ".join(sorted({_text(one) for one in errors})), self._admin.alias
            raise CoordinatorUnavailable(
                f"cluster {alias}: ListGroups: not every broker answered: {reasons}; "
                f"is {alias}.bootstrap.servers right, and are its brokers up?"
            )
        return list(listed.valid)

    def committed(self, groups: Sequence[str]) -> Observed[str, Offsets]:
        futures = {
            group: self._admin.client.list_consumer_group_offsets(
                [rd.ConsumerGroupTopicPartitions(group)], request_timeout=self._admin.timeout
            )[group]
            for group in groups
        }
        items: dict[str, Offsets] = {}
        errors: dict[str, ItemFault] = {}
        for group, (found, error) in self._admin.settle("OffsetFetch", futures).items():
            if error is not None:
                errors[group] = item_fault(error)
            else:
                items[group] = {_from_rd(one): one.offset for one in found.topic_partitions if one.offset >= 0}
        return Observed(items, errors)

    def members(self, groups: Sequence[str]) -> Observed[str, int]:
        """Of many groups most have no member, and one listing for all of them says which (KIP-518)."""
        if len(groups) <= ONE_BY_ONE:
            return self._described(groups)
        asked, listed = set(groups), {one.group_id: one for one in self._list()}
        empty = {group for group in asked & listed.keys() if _is_empty(listed[group])}
        unlisted = asked - listed.keys()
        there = self._listed(sorted(unlisted)) if unlisted else set()
        items = dict.fromkeys(empty, 0) | {group: AT_LEAST_ONE if group in there else 0 for group in unlisted}
        errors: dict[str, ItemFault] = {}
        for some in batches(sorted(asked - empty - unlisted)):
            others = self._described(some)
            items |= others.items
            errors |= others.errors
        return Observed(items, errors)

    def _described(self, groups: Sequence[str]) -> Observed[str, int]:
        items: dict[str, int] = {}
        if not groups:
            return Observed(items)
        errors: dict[str, ItemFault] = {}
        missing: list[str] = []
        futures = self._admin.client.describe_consumer_groups(list(groups), request_timeout=self._admin.timeout)
        for group, (found, error) in self._admin.settle("DescribeGroups", futures).items():
            if error is None and found.state is not rd.ConsumerGroupState.DEAD:
                items[group] = len(found.members)
            elif error is None or error.code() == rd.KafkaError.GROUP_ID_NOT_FOUND:
                # Since KIP-1043 a broker says so, older ones show a dead group: there is none, or none of this type.
                missing.append(group)
            else:
                errors[group] = item_fault(error)
        there = self._listed(missing)
        return Observed(items | {group: AT_LEAST_ONE if group in there else 0 for group in missing}, errors)

    def commit(self, offsets: Mapping[str, Offsets]) -> GroupFaults:
        clients = self._clients(len(offsets))
        futures = {
            group: client.alter_consumer_group_offsets(
                [
                    rd.ConsumerGroupTopicPartitions(
                        group, [_to_rd(where, offset) for where, offset in offsets[group].items()]
                    )
                ],
                request_timeout=self._admin.timeout,
            )[group]
            for group, client in zip(sorted(offsets), cycle(clients), strict=False)
        }
        faults: GroupFaults = {}
        for group, (found, error) in self._admin.settle("OffsetCommit", futures).items():
            if error is not None:
                faults[group] = dict.fromkeys(offsets[group], item_fault(error))
            else:
                faults[group] = {
                    _from_rd(one): item_fault(one.error) if one.error else None for one in found.topic_partitions
                }
        return faults

    def _clients(self, groups: int) -> list[Any]:
        """A broker answers the requests of a connection one by one, and each commit once it is in the log."""
        wanted = min(MOST_CONNECTIONS, 1 + groups // GROUPS_OF_A_CONNECTION)
        while len(self._others) < wanted - 1:
            self._others.append(Admin(self._admin.alias, self._admin.properties))
        return [self._admin.client, *(other.client for other in self._others[: wanted - 1])]

    def allowed(self, groups: Sequence[str]) -> dict[str, frozenset[str] | str]:
        """The operations that are allowed on each (KIP-430), or the error's name."""
        futures = self._admin.client.describe_consumer_groups(
            list(groups), include_authorized_operations=True, request_timeout=self._admin.timeout
        )
        return {
            group: item_fault(error).code if error else frozenset(one.name for one in found.authorized_operations or ())
            for group, (found, error) in self._admin.settle("DescribeGroups", futures).items()
        }

    def _listed(self, groups: Sequence[str]) -> set[str]:
        """Those of them that are there, whatever their type. The one request that lists them all describes them, too:
        so a few are asked for one by one.
        """
        found: set[str] = set()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # what replaces it lists groups of consumers alone
            for asked in [None] if len(groups) > ONE_BY_ONE else groups:
                found |= {one.id for one in self._admin.call("ListGroups", partial(self._list_any, asked))}
        return found

    def _list_any(self, group: str | None) -> list[Any]:
        chosen = {} if group is None else {"group": group}
        return list(self._admin.client.list_groups(timeout=self._admin.timeout, **chosen))


def batches(groups: Sequence[str]) -> Iterator[Sequence[str]]:
    """As many at a time as may be under way."""
    for start in range(0, len(groups), GROUPS_UNDER_WAY):
        yield groups[start : start + GROUPS_UNDER_WAY]


def _is_empty(listed: Any) -> bool:
    """Of a group in a listing; of a type that is not known here nothing is."""
    return listed.state is rd.ConsumerGroupState.EMPTY and listed.type is not rd.ConsumerGroupType.UNKNOWN


def _text(error: rd.KafkaError) -> str:
    return f"{error.name()}: {error.str()}"


def _to_rd(where: TopicPartition, offset: int) -> rd.TopicPartition:
    return rd.TopicPartition(where.topic, where.partition, offset)


def _from_rd(one: rd.TopicPartition) -> TopicPartition:
    return TopicPartition(one.topic, one.partition)
