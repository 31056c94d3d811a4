"""Groups on a cluster in memory whose commits a stream brings when a test says so."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from sinks.faults import Observed, RightsMissing
from sinks.kafka.memory.memory_groups import MemoryGroups
from sinks.kafka.ports.groups import LogRange, Offsets
from sinks.kafka.ports.watches import PlainGroupWatch
from sinks.kinds.offsets.commit_feed import CommitFeed
from sinks.kinds.offsets.followed_groups import FollowedGroups
from sinks.kinds.offsets.group_polls import POLL_LEAST
from streaming.commits.commit_record import COMMITS_TOPIC, CommitBatch, commit_partition
from streaming.mm2.records import TopicPartition
from tests.sinks.builders import flow_settings

X, Y = TopicPartition("x", 0), TopicPartition("y", 0)


class CountedGroups(MemoryGroups):
    """Counts the groups whose offsets were asked for."""

    asked = 0

    def committed(self, groups: Collection[str]) -> Observed[str, Offsets]:
        self.asked += len(groups)
        return super().committed(groups)


@dataclass
class Stage:
    """A cluster whose commits also go into a log, which a stream delivers later."""

    groups: CountedGroups = field(default_factory=lambda: CountedGroups("a"))
    feed: CommitFeed = field(default_factory=CommitFeed)
    log: list[tuple[str, TopicPartition, int | None]] = field(default_factory=list)
    now: float = 0.0
    compared: dict[str, Offsets] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.followed = FollowedGroups(
            flow_settings(), self.groups, PlainGroupWatch(self.groups), self.feed, lambda: self.now
        )

    def commit(self, group: str, where: TopicPartition, offset: int | None) -> None:
        offsets = self.groups.offsets.setdefault(group, {})
        if offset is None:
            offsets.pop(where, None)
        else:
            offsets[where] = offset
        self.log.append((group, where, offset))

    def begin(self) -> None:
        self.log.clear()
        self.feed.begin()
        self.feed.put(CommitBatch())

    def deliver(self, count: int | None = None) -> None:
        taken = self.log[:count]
        del self.log[: len(taken)]
        batch: dict[str, dict[TopicPartition, int | None]] = {}
        for group, where, offset in taken:
            batch.setdefault(group, {})[where] = offset
        self.feed.put(CommitBatch(batch))

    def poll(self, everything: bool = False, after: float = 0.0) -> set[str]:
        """The groups that moved, whose offsets are then read, as a comparison reads them."""
        self.now += after
        moved = self.followed.poll(self.now, everything)
        self.compared |= self.followed.committed(moved.committed).items
        return set(moved.committed)


def streamed(**offsets: int) -> Stage:
    """Groups that a stream has served for a while."""
    stage = Stage()
    for group, offset in offsets.items():
        stage.commit(group, X, offset)
    stage.begin()
    assert stage.poll(everything=True) == set(offsets)
    stage.groups.asked = 0
    return stage


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
    """Groups of which each committed once, and all are known."""

    def __init__(self, groups: LoggedGroups) -> None:
        self.groups, self.now, self.partitions = groups, 0.0, PARTITIONS
        self.followed = FollowedGroups(flow_settings(), groups, PlainGroupWatch(groups), CommitFeed(), lambda: self.now)

    def poll(self, everything: bool = False) -> set[str]:
        self.now += POLL_LEAST
        return set(self.followed.poll(self.now, everything, self.partitions).committed)

    def asked_at_rest(self) -> int:
        """For how many groups polls ask while nobody commits."""
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
