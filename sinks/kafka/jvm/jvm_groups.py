"""Consumer groups and the ends of logs of one cluster through Java's Admin, which asks a coordinator for hundreds of
groups in one request (KIP-709). Source of the ends: `Admin.listOffsets`.

Java's client of Kafka 3.9, which Spark brings, knows groups of consumers alone, not share groups (KIP-932) nor streams
groups (KIP-1071). It takes one of those for a group that is not there. A broker refuses a commit for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import Any, TypeVar

import orjson

from sinks.faults import ClusterUnreachable, CoordinatorUnavailable, ItemFault, Observed
from sinks.kafka.jvm.java_admin import JavaAdmin, Settled
from sinks.kafka.jvm.java_errors import java_error
from sinks.kafka.jvm.java_rows import TEXT, TOPIC_PARTITION, WORD, Make
from sinks.kafka.jvm.jvm_topics import NODE, JvmTopics
from sinks.kafka.ports.cluster import chunks
from sinks.kafka.ports.groups import GroupFaults, LogRange, Offsets
from sinks.kafka.ports.permitted import ask_again
from sinks.kafka.ports.record_reader import PartitionTime
from streaming.mm2.records import MAX_INT64, TopicPartition

ADMIN = "org.apache.kafka.clients.admin."
OFFSET = Make("org.apache.kafka.clients.consumer.OffsetAndMetadata", ("long",))
OFFSETS_RESULT = ADMIN + "ListConsumerGroupOffsetsResult"
COMMIT_RESULT = ADMIN + "AlterConsumerGroupOffsetsResult"
LISTED = {ADMIN + "ConsumerGroupListing": ("isSimpleConsumerGroup", "state", "groupState", "type")}
DESCRIBED = NODE | {
    ADMIN + "ConsumerGroupDescription": ("groupId", "isSimpleConsumerGroup", "partitionAssignor", "coordinator"),
    ADMIN + "MemberDescription": (
        *("memberId", "groupInstanceId", "clientId", "host", "assignment", "targetAssignment"),
        *("memberEpoch", "upgraded", "rackId"),
    ),
}
LEFT_OUT = {"org.apache.kafka.clients.consumer.OffsetAndMetadata": ("metadata", "leaderEpoch")}
"""Fields of an answer that stay in the JVM, by class. The metadata beside an offset is any text of up to 4 KB."""

GROUPS_IN_A_REQUEST = 500
"""Most groups that are asked for together; their answers come in one text."""

GROUPS_OF_A_CONNECTION, MOST_CONNECTIONS = 50, 8
"""Groups for each connection that commits, and the most connections."""

ONE_BY_ONE = 20
"""Most groups that are described without first listing those that are empty."""

NOT_THERE = "GROUP_ID_NOT_FOUND"
"""Error of brokers for a group that does not exist, since KIP-1043. Older brokers show a dead group without members."""

NOT_UNDERSTOOD = ItemFault("UNKNOWN", "Java's client returns offsets in a form that this version does not know")

LIST_OFFSETS = "ListOffsets"
OFFSETS_LISTED = ADMIN + "ListOffsetsResult"
OFFSETS_ALONE = {OFFSETS_LISTED + "$ListOffsetsResultInfo": ("timestamp", "leaderEpoch")}
AT_TIME = Make(ADMIN + "OffsetSpec", ("long",), by="forTimestamp")

ENDS_WITHIN = 5.0
"""Seconds that an answer may take. Java's client retries a partition without a leader until its time is over."""

QUESTIONS = 4
"""Sets of partitions that are remembered with their last answers. The same sets are asked about again and again, and
seldom has any partition moved."""

T = TypeVar("T")


def about_groups(ask: Callable[[], T]) -> T:
    """Returns the result of a request that only coordinators answer. Raises CoordinatorUnavailable if none of them
    answers."""
    try:
        return ask()
    except CoordinatorUnavailable:
        raise
    except ClusterUnreachable as error:
        raise CoordinatorUnavailable(str(error)) from error


def in_requests(groups: Collection[str]) -> list[Sequence[str]]:
    """Returns the groups sorted, in lists of as many as one request asks for."""
    names = sorted(group for group in groups if group)
    return list(chunks(names, GROUPS_IN_A_REQUEST))


def of_all_partitions(admin: JavaAdmin, names: Any) -> Any:
    """Returns a Java map that asks for the offsets of all partitions of each group."""
    request = admin.jvm.java.util.concurrent.ConcurrentHashMap()
    # A set that is a view of a map puts the same value to every key: a few calls for any number of groups.
    request.keySet(admin.jvm.org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec()).addAll(names)
    return request


def offsets_by_group(admin: JavaAdmin, result: Any, names: Any) -> Any:
    """Returns a Java list of the futures of each group's offsets."""
    return admin.rows.by(result, OFFSETS_RESULT, "partitionsToOffsetAndMetadata", names, TEXT)


def described(admin: JavaAdmin, groups: Sequence[str], *, operations: bool = False) -> Settled[str]:
    """Returns the groups' descriptions, which stay in the JVM. `operations`: with the allowed operations."""
    rows, options = admin.rows, admin.jvm.org.apache.kafka.clients.admin.DescribeConsumerGroupsOptions()
    names, options = rows.texts(groups), options.includeAuthorizedOperations(operations)
    return admin.settle(
        "DescribeGroups",
        groups,
        lambda client: rows.of_map(client.describeConsumerGroups(names, options).describedGroups(), names),
    )


class _Question:
    """A set of partitions that is asked about, and its last answers. Each answer is kept with its text, because threads
    may overwrite each other's."""

    def __init__(self, partitions: Sequence[TopicPartition], asked: Any) -> None:
        """`asked`: the same partitions as Java objects."""
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
        """Returns start and end of each log; the same object as before if both answers are the last ones."""
        known = self._ranges
        if known is not None and known[0] is starts and known[1] is ends:
            return known[2]
        found = {one: LogRange(start, ends[one]) for one, start in starts.items() if one in ends}
        self._ranges = (starts, ends, found)
        return found


class JvmGroups:
    """`Groups` of one cluster. Thread-safe."""

    def __init__(self, admin: JavaAdmin) -> None:
        self._admin, self._topics = admin, JvmTopics(admin)
        self._troubled: frozenset[TopicPartition] = frozenset()
        self._question = lru_cache(QUESTIONS)(self._new_question)
        self._options = lru_cache(self._new_options)

    def topic_ids(self, topics: Collection[str]) -> dict[str, str]:
        return self._topics.topic_ids(topics)

    def names(self) -> set[str]:
        # Fails as a whole if one broker fails: the groups of that broker still exist.
        return about_groups(lambda: self._names(self._listing()))

    def _listing(self) -> Any:
        return self._admin.jvm.org.apache.kafka.clients.admin.ListConsumerGroupsOptions()

    def _names(self, options: Any) -> set[str]:
        found = self._admin.call("ListGroups", lambda client: client.listConsumerGroups(options).all())
        return {one["groupId"] for one in self._admin.rows.read(found, LISTED)}

    def committed(self, groups: Collection[str]) -> Observed[str, Offsets]:
        items: dict[str, Offsets] = {}
        errors: dict[str, ItemFault] = {}
        for some in in_requests(groups):
            settled = about_groups(lambda names=some: self._committed(names))  # type: ignore[misc]
            errors |= settled.faults
            found = self._admin.answers(settled, LEFT_OUT)
            read = offsets_of(found)
            items |= read
            errors |= dict.fromkeys(found.keys() - read.keys(), NOT_UNDERSTOOD)
        # A client may not ask for a group without a name.
        return Observed(items | {group: {} for group in groups if not group}, errors)

    def _committed(self, groups: Sequence[str]) -> Settled[str]:
        """Returns the committed offsets of these groups, which stay in the JVM."""
        names = self._admin.rows.texts(groups)
        request = of_all_partitions(self._admin, names)
        return self._admin.settle(
            "OffsetFetch",
            groups,
            lambda client: offsets_by_group(self._admin, client.listConsumerGroupOffsets(request), names),
        )

    def members(self, groups: Collection[str]) -> Observed[str, int]:
        """Returns the number of members. Most groups have none, and one listing for all of them says which
        (KIP-518)."""
        empty: set[str] = set()
        if len(groups) > ONE_BY_ONE:
            empty = about_groups(self._empty) & set(groups)
        items, errors = dict.fromkeys(empty, 0), dict[str, ItemFault]()
        for some in in_requests(set(groups) - empty):
            settled = about_groups(lambda names=some: described(self._admin, names))  # type: ignore[misc]
            items |= {group: len(one["members"]) for group, one in self._admin.answers(settled, DESCRIBED).items()}
            for group, fault in settled.faults.items():
                if fault.code == NOT_THERE:
                    items[group] = 0
                else:
                    errors[group] = fault
        return Observed(items, errors)

    def _empty(self) -> set[str]:
        state = self._admin.jvm.org.apache.kafka.common.ConsumerGroupState.EMPTY
        return self._names(self._listing().inStates(self._admin.jvm.java.util.Collections.singleton(state)))

    def commit(self, offsets: Mapping[str, Offsets]) -> GroupFaults:
        faults: GroupFaults = {group: dict.fromkeys(of_group) for group, of_group in offsets.items()}
        for some in in_requests({group for group, of_group in offsets.items() if of_group}):
            ask_again()
            words = [
                [group, where.topic, str(where.partition), str(offset)]
                for group in some
                for where, offset in offsets[group].items()
            ]
            for group, fault in about_groups(lambda rows=words, names=some: self._committing(names, rows)).items():  # type: ignore[misc]
                faults[group] |= fault
        return faults

    def _committing(self, groups: Sequence[str], words: Sequence[Sequence[str]]) -> GroupFaults:
        """Commit offsets (`words`). Returns the faults of those groups in which a partition has one."""
        rows, sent = self._admin.rows, list[Any]()
        requests = rows.maps(WORD, TOPIC_PARTITION, OFFSET, words)
        # A broker answers the requests of a connection one by one, and each commit once it is in the log.
        clients = self._admin.writers(min(MOST_CONNECTIONS, 1 + len(groups) // GROUPS_OF_A_CONNECTION))
        ordered = [group for at in range(len(clients)) for group in groups[at :: len(clients)]]

        def send(_: Any) -> Any:
            results = self._admin.jvm.java.util.ArrayList()
            sent[:] = [results]
            for at, client in enumerate(clients):
                names = rows.texts(groups[at :: len(clients)])
                results.addAll(rows.by_pairs(client, ADMIN + "Admin", "alterConsumerGroupOffsets", names, requests))
            return rows.each(results, COMMIT_RESULT, "all")

        settled = self._admin.write("OffsetCommit", ordered, send)
        return {
            group: self._of_partitions(sent[0][ordered.index(group)], [row for row in words if row[0] == group], fault)
            for group, fault in settled.faults.items()
        }

    def _of_partitions(
        self, result: Any, words: Sequence[Sequence[str]], whole: ItemFault
    ) -> dict[TopicPartition, ItemFault | None]:
        """Returns the result of each partition of one group. `whole`: the group's fault, for partitions without an
        answer."""
        rows, where = self._admin.rows, [TopicPartition(row[1], int(row[2])) for row in words]
        futures = rows.by(
            *(result, COMMIT_RESULT, "partitionResult", rows.made(TOPIC_PARTITION, [row[1:3] for row in words])),
            TOPIC_PARTITION.type,
        )
        told = zip(where, rows.errors(futures), rows.done(futures), strict=True)
        return {one: java_error(text) if text is not None else None if done else whole for one, text, done in told}

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
            answers = self._admin.answers(settled, OFFSETS_ALONE)
            found |= {one: at["offset"] if at["offset"] >= 0 else None for one, at in answers.items()}
            faults |= settled.faults
        return Observed(found, faults)

    def _settled_times(self, times: Sequence[PartitionTime]) -> Settled[PartitionTime]:
        rows = self._admin.rows
        words = [[one.where.topic, str(one.where.partition), str(one.timestamp)] for one in times]
        request = rows.pairs(TOPIC_PARTITION, AT_TIME, words)
        asked = rows.made(TOPIC_PARTITION, (row[:2] for row in words))
        return self._admin.settle(
            LIST_OFFSETS,
            times,
            lambda client: self._listed(client.listOffsets(request, self._options()), asked),
            self._slow_times,
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
        """Returns the partitions that are still there, and faults of the others. Otherwise each request would wait a
        moment for them."""
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
            LIST_OFFSETS,
            question.partitions,
            lambda client: self._listed(client.listOffsets(request, options), question.asked),
            self._topics.troubles,
        )
        text = self._admin.rows.text(settled.answers, OFFSETS_ALONE)
        return question.offsets(f"{kind} {committed}", text), dict(settled.faults)

    def _listed(self, result: Any, asked: Any) -> Any:
        return self._admin.rows.by(result, OFFSETS_LISTED, "partitionResult", asked, TOPIC_PARTITION.type)

    def _new_options(self, committed: bool = False) -> Any:
        kafka = self._admin.jvm.org.apache.kafka
        isolation = kafka.common.IsolationLevel
        options = kafka.clients.admin.ListOffsetsOptions(
            isolation.READ_COMMITTED if committed else isolation.READ_UNCOMMITTED
        )
        within = int(min(ENDS_WITHIN, self._admin.timeout) * 1000)
        return options.timeoutMs(self._admin.jvm.java.lang.Integer.valueOf(within))


def offsets_of(committed: Mapping[str, Any]) -> dict[str, Offsets]:
    """Returns offsets by group, from `{"topic-partition": {"offset": …}}` of each; null is a partition without an
    offset.

    A group whose offsets have another shape is left out.
    """
    places: dict[str, TopicPartition] = {}
    found: dict[str, Offsets] = {}
    for group, entries in committed.items():
        offsets: dict[TopicPartition, int] = {}
        try:
            for name, entry in entries.items():
                if entry is not None and 0 <= (offset := _whole(entry["offset"])) <= MAX_INT64:
                    # Groups share partitions, and checking each name once more would take longer than all the rest.
                    where = places.get(name)
                    if where is None:
                        topic, _, partition = name.rpartition("-")
                        where = places[name] = TopicPartition(topic, int(partition))
                    offsets[where] = offset
        except (AttributeError, KeyError, TypeError, ValueError):
            continue  # of another version of Kafka's client
        found[group] = offsets
    return found


def _whole(value: object) -> int:
    if type(value) is not int:
        raise ValueError(value)
    return value
