"""Groups that are polled: by the ends of their commits' topic, so that who did not commit is not asked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinks.faults import ItemFault, RightsMissing
from sinks.kafka.ports.groups import LogRange
from sinks.kinds.offsets import polled_groups
from sinks.kinds.offsets.polled_groups import (
    COMMITS_TOPIC,
    DOUBTED,
    POLL_LEAST,
    POLL_LONGEST,
    CommitEnds,
    commit_partition,
)
from streaming.mm2.records import TopicPartition
from tests.memory.memory_groups import MemoryGroups
from tests.sinks.kinds.offsets.logged_groups import NAMES, PARTITIONS, Fails, LoggedGroups, Polled, X

REFUSED = ItemFault("GROUP_AUTHORIZATION_FAILED", "no")


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
    assert stage.asked_at_rest() == 0


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

    assert CommitEnds(Refused("a")).moved(PARTITIONS, 0.0) is None


def test_a_partition_whose_end_is_not_known_counts_as_moved() -> None:
    groups = LoggedGroups("a")
    groups.begin()
    ends = CommitEnds(groups)
    for _ in range(2):
        assert ends.moved(PARTITIONS, 0.0) == set(range(PARTITIONS))
    del groups.logs[TopicPartition(COMMITS_TOPIC, 2)]
    for _ in range(3):
        assert ends.moved(PARTITIONS, 0.0) == {2}


def test_partitions_that_are_added_to_the_commits_topic_hide_no_commit_of_brokers_that_do_not_know_them() -> None:
    stage = polled()
    stage.partitions = 2 * PARTITIONS
    for number in range(PARTITIONS, stage.partitions):
        stage.groups.logs[TopicPartition(COMMITS_TOPIC, number)] = LogRange(0, 0)
    assert stage.asked_at_rest() == len(NAMES)
    for name in NAMES:
        stage.groups.commit_to(name, 7)
    assert stage.poll() == set(NAMES)


def elsewhere() -> Polled:
    """A cluster that keeps commits elsewhere, which has just shown."""
    stage = polled()
    stage.groups.beside = 1
    stage.groups.commit_to(NAMES[3], 7)
    assert stage.poll() == stage.poll() == set()
    assert stage.poll(everything=True) == {NAMES[3]}
    stage.poll()
    return stage


def test_on_a_cluster_that_keeps_commits_elsewhere_the_ends_are_believed_no_more() -> None:
    stage = elsewhere()
    stage.groups.commit_to(NAMES[3], 8)
    assert stage.poll() == {NAMES[3]}


def test_while_commits_are_found_that_move_no_end_none_is_believed_and_one_warning_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stage = elsewhere()
    for offset in range(8, 12):
        stage.now += DOUBTED - 10 * POLL_LEAST
        stage.groups.commit_to(NAMES[3], offset)
        assert stage.poll() == {NAMES[3]}
        stage.poll()
    [warning] = caplog.messages
    assert f"partition {commit_partition(NAMES[3], PARTITIONS)} of {COMMITS_TOPIC} has new offsets" in warning


def test_ends_are_believed_again_when_no_commit_contradicted_them_for_a_while() -> None:
    stage = elsewhere()
    assert stage.asked_at_rest() == len(NAMES)
    stage.groups.beside = 0
    stage.now += DOUBTED
    assert stage.asked_at_rest() == 0
    stage.groups.commit_to(NAMES[3], 9)
    assert stage.poll() == {NAMES[3]}


def test_polls_that_fail_after_a_commit_are_no_reason_to_doubt_the_ends() -> None:
    groups = Fails("a")
    stage = polled(groups=groups)
    groups.commit_to(NAMES[3], 7)
    groups.fails = True
    for _ in range(3):
        with pytest.raises(RightsMissing):
            stage.poll()
    groups.fails = False
    assert stage.poll() == {NAMES[3]}
    assert stage.asked_at_rest() == 0


def test_a_group_that_cannot_be_read_is_no_reason_to_doubt_the_ends() -> None:
    stage = polled()
    stage.groups.unreadable = {NAMES[5]: REFUSED}
    for _ in range(2):
        assert stage.poll(everything=True) == {NAMES[5]}
        assert stage.asked_at_rest() == 0


def test_groups_that_one_poll_cannot_take_are_no_reason_to_doubt_the_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polled_groups, "POLLED_AT_ONCE", len(NAMES) // 3)
    groups = LoggedGroups("a")
    groups.begin()
    for name in NAMES:
        groups.commit_to(name, 1)
    stage = Polled(groups)
    assert set().union(stage.poll(everything=True), *(stage.poll() for _ in range(9))) == set(NAMES)
    assert stage.asked_at_rest() == 0


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


STEPS = ("poll", "compare", "fails", "works", "hides", "shows", "locks", "unlocks")


@given(st.lists(st.one_of(st.sampled_from(NAMES[:6]), st.sampled_from(STEPS)), max_size=40))
def test_whatever_fails_in_between_each_commit_is_found_and_ends_that_tell_of_each_are_believed(
    steps: list[str],
) -> None:
    groups = Fails("a")
    groups.begin()
    groups.commit_to(NAMES[6], 0)
    stage, found = Polled(groups), dict[str, int]()

    def poll(everything: bool = False) -> None:
        try:
            committed = stage.poll(everything)
        except RightsMissing:
            return
        found.update({group: groups.offsets[group][X] for group in committed})

    for number, step in enumerate(steps):
        if step in ("poll", "compare"):
            poll(step == "compare")
        elif step in ("fails", "works"):
            groups.fails = step == "fails"
        elif step in ("hides", "shows"):
            groups.hides = step == "hides"
        elif step in ("locks", "unlocks"):
            groups.unreadable = {NAMES[6]: REFUSED} if step == "locks" else {}
        else:
            groups.commit_to(step, number)
    groups.fails = groups.hides = False
    for _ in range(2):
        poll()
    assert found == {group: of[X] for group, of in groups.offsets.items()}
    assert stage.asked_at_rest() == 0
