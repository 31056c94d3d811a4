"""Groups that are polled: by the ends of their commits' topic, so that who did not commit is not asked."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinks.faults import Observed, RightsMissing
from sinks.kafka.memory.memory_groups import MemoryGroups
from sinks.kafka.ports.groups import LogRange
from sinks.kafka.ports.watches import PlainGroupWatch
from sinks.kinds.offsets.commit_ends import CommitEnds
from sinks.kinds.offsets.commit_feed import CommitFeed
from sinks.kinds.offsets.followed_groups import FollowedGroups
from sinks.kinds.offsets.group_polls import POLL_LEAST, POLL_LONGEST
from sinks.kinds.offsets.poll_queue import PollQueue
from streaming.commits.commit_record import COMMITS_TOPIC, commit_partition
from streaming.mm2.records import TopicPartition
from tests.sinks.builders import flow_settings
from tests.sinks.kinds.offsets.streamed_groups import CountedGroups, X

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
        self.groups, self.now = groups, 0.0
        self.followed = FollowedGroups(flow_settings(), groups, PlainGroupWatch(groups), CommitFeed(), lambda: self.now)

    def poll(self, everything: bool = False) -> set[str]:
        self.now += POLL_LEAST
        return set(self.followed.poll(self.now, everything, PARTITIONS).committed)


def polled(*, seen: bool = True, groups: LoggedGroups | None = None) -> Polled:
    groups = groups or LoggedGroups("a")
    if seen:
        groups.begin()
    for name in NAMES:
        groups.commit_to(name, 1)
    stage = Polled(groups)
    assert stage.poll(everything=True) == set(NAMES)
    stage.poll()
    groups.asked = groups.listed = 0
    return stage


def beside(group: str) -> int:
    return sum(commit_partition(name, PARTITIONS) == commit_partition(group, PARTITIONS) for name in NAMES)


def test_while_nobody_commits_no_group_is_asked_for_and_none_are_listed() -> None:
    stage = polled()
    for _ in range(20):
        assert stage.poll() == set()
    assert (stage.groups.asked, stage.groups.listed) == (0, 0)


def test_a_commit_is_found_by_asking_for_the_groups_of_its_partition_alone() -> None:
    stage = polled()
    stage.groups.commit_to(NAMES[3], 7)
    assert stage.poll() == {NAMES[3]}
    assert stage.groups.asked == beside(NAMES[3]) < len(NAMES)


def test_a_commit_whose_coordinator_tells_of_it_later_than_the_log_is_found_by_the_second_poll() -> None:
    stage = polled()
    stage.groups.commit_to(NAMES[3], 7)
    told, stage.groups.offsets[NAMES[3]] = stage.groups.offsets[NAMES[3]], {X: 1}
    assert stage.poll() == set()
    stage.groups.offsets[NAMES[3]] = told
    assert stage.poll() == {NAMES[3]}


def test_a_group_that_begins_to_commit_is_listed_and_found() -> None:
    stage = polled()
    stage.groups.commit_to("new", 7)
    assert stage.poll() == {"new"}


def test_where_the_ends_may_not_be_seen_every_group_is_asked_for() -> None:
    stage = polled(seen=False)
    stage.groups.offsets[NAMES[3]] = {X: 7}
    assert stage.poll() == {NAMES[3]}
    assert stage.groups.asked == len(NAMES)


def test_ends_that_are_refused_are_those_of_nobody() -> None:
    class Refused(MemoryGroups):
        def ends(self, partitions, committed=False):  # type: ignore[no-untyped-def]  # as MemoryGroups has it
            raise RightsMissing("cluster a: ListOffsets: TOPIC_AUTHORIZATION_FAILED")

    assert CommitEnds(Refused("a")).moved(PARTITIONS) is None


def test_a_partition_whose_end_is_not_known_counts_as_moved() -> None:
    groups = LoggedGroups("a")
    groups.begin()
    ends = CommitEnds(groups)
    for _ in range(2):
        assert ends.moved(PARTITIONS) == set(range(PARTITIONS))
    del groups.logs[TopicPartition(COMMITS_TOPIC, 2)]
    for _ in range(3):
        assert ends.moved(PARTITIONS) == {2}


def test_on_a_cluster_that_keeps_commits_elsewhere_the_ends_are_believed_no_more() -> None:
    stage = polled()
    stage.groups.beside = 1
    stage.groups.commit_to(NAMES[3], 7)
    assert stage.poll() == stage.poll() == set()
    assert stage.poll(everything=True) == {NAMES[3]}
    stage.poll()
    stage.groups.commit_to(NAMES[3], 8)
    assert stage.poll() == {NAMES[3]}


def test_a_commit_right_after_the_ends_were_seen_is_no_reason_to_doubt_them() -> None:
    stage = polled()
    stage.groups.offsets[NAMES[3]] = {X: 7}
    assert stage.poll(everything=True) == {NAMES[3]}
    stage.groups.commit_to(NAMES[3], 7)
    stage.poll()
    stage.poll()
    stage.groups.asked = 0
    assert stage.poll() == set()
    assert stage.groups.asked == 0


def test_a_poll_that_fails_leaves_its_groups_waiting() -> None:
    queue = PollQueue()
    queue.follow(["a", "b", "c"])
    assert queue.turn(2) == ["a", "b"]
    queue.polled(["a"])
    queue.add(["a", "unknown"])
    assert queue.turn(9) == ["b", "c", "a"]
    queue.follow(["a", "d"])
    assert queue.turn(9) == ["a", "d"]


class Fails(LoggedGroups):
    """Answers for no group's offsets while `fails`, and lists none while `hides`."""

    fails = hides = False

    def names(self) -> set[str]:
        if self.hides:
            raise RightsMissing("cluster a: ListGroups: not every broker answered")
        return super().names()

    def committed(self, groups: Collection[str]) -> Observed[str, dict[TopicPartition, int]]:  # type: ignore[override]
        if self.fails:
            raise RightsMissing("cluster a: OffsetFetch: for a moment")
        return super().committed(groups)  # type: ignore[return-value]


def test_a_commit_is_found_though_the_listings_after_it_failed() -> None:
    groups = Fails("a")
    stage = polled(groups=groups)
    stage.now += POLL_LONGEST
    stage.groups.commit_to(NAMES[3], 7)
    stage.groups.commit_to("new", 7)
    groups.hides = True
    for _ in range(2):
        with pytest.raises(RightsMissing):
            stage.poll()
        stage.now += POLL_LONGEST
    groups.hides = False
    assert stage.poll() == {NAMES[3], "new"}


@given(st.lists(st.one_of(st.sampled_from(NAMES[:6]), st.sampled_from(["poll", "fails", "works"])), max_size=30))
def test_whatever_fails_in_between_each_group_is_found_at_what_it_committed_last(steps: list[str]) -> None:
    groups = Fails("a")
    groups.begin()
    stage, found = Polled(groups), dict[str, int]()

    def poll() -> None:
        try:
            committed = stage.poll()
        except RightsMissing:
            return
        found.update({group: groups.offsets[group][X] for group in committed})

    for number, step in enumerate(steps):
        if step == "poll":
            poll()
        elif step in ("fails", "works"):
            groups.fails = step == "fails"
        else:
            groups.commit_to(step, number)
    groups.fails = False
    for _ in range(2):
        poll()
    assert found == {group: of[X] for group, of in groups.offsets.items()}
