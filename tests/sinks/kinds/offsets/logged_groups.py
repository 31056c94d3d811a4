"""Groups on a cluster in memory whose commits are records of a log, and polls of them."""

from __future__ import annotations

from collections.abc import Collection

from sinks.faults import Observed, RightsMissing
from sinks.kafka.ports.groups import LogRange, Offsets
from sinks.kinds.offsets.polled_groups import COMMITS_TOPIC, POLL_LEAST, PolledGroups, commit_partition
from streaming.mm2.records import TopicPartition
from tests.memory.memory_groups import MemoryGroups, PlainGroupWatch
from tests.sinks.builders import flow_settings

X = TopicPartition("x", 0)


class CountedGroups(MemoryGroups):
    """Counts the groups whose offsets were asked for."""

    asked = 0

    def committed(self, groups: Collection[str]) -> Observed[str, Offsets]:
        self.asked += len(groups)
        return super().committed(groups)


PARTITIONS = 5
NAMES = [f"group-{number}" for number in range(40)]


class LoggedGroups(CountedGroups):
    """Each commit is a record of the commits' topic; `beside`: so many partitions from the one that is Kafka's."""

    listed = beside = 0

    def begin(self) -> None:
        for number in range(PARTITIONS):
            self.logs[TopicPartition(COMMITS_TOPIC, number)] = LogRange(0, 0)

    def commit_to(self, group: str, offset: int) -> None:
        where = TopicPartition(COMMITS_TOPIC, (commit_partition(group, PARTITIONS) + self.beside) % PARTITIONS)
        if where in self.logs:
            self.logs[where] = LogRange(0, self.logs[where].end + 1)
        self.offsets[group] = {X: offset}

    def names(self) -> set[str]:
        self.listed += 1
        return super().names()


class Polled:
    """Groups that have each committed once, and are all known."""

    def __init__(self, groups: LoggedGroups) -> None:
        self.groups, self.now, self.partitions = groups, 0.0, PARTITIONS
        self.of = PolledGroups(flow_settings(), groups, PlainGroupWatch(groups), lambda: self.now)

    def poll(self, everything: bool = False) -> set[str]:
        self.now += POLL_LEAST
        return set(self.of.poll(self.now, everything, self.partitions).committed)

    def asked_at_rest(self) -> int:
        """How many groups the polls ask for while no group commits."""
        for _ in range(3):
            self.poll()
        self.groups.asked = 0
        self.poll()
        return self.groups.asked


class Fails(LoggedGroups):
    """Answers for no group's offsets while `fails`, and lists none while `hides`."""

    fails = hides = False

    def names(self) -> set[str]:
        if self.hides:
            raise RightsMissing("cluster a: ListGroups: not every broker answered")
        return super().names()

    def committed(self, groups: Collection[str]) -> Observed[str, Offsets]:
        if self.fails:
            raise RightsMissing("cluster a: OffsetFetch: for a moment")
        return super().committed(groups)
