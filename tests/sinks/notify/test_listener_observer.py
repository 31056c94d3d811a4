"""Listeners in a pass: told of what was seen, at the start and when it changes, and never of what was not seen."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

import pytest

from app.local.waiting import wait_for
from sinks.faults import ItemFault
from sinks.notify import announcements
from sinks.notify.announcements import GROUP_LIST_INTERVAL, REPLACED_WITHIN, Announcements, ListenerObserver
from streaming.mm2.records import TopicPartition
from tests.memory.memory_groups import MemoryGroups
from tests.sinks.builders import FLOW, World, put_topic

WITHIN = 60.0


class Told:
    """A listener of both kinds that keeps what it hears."""

    def __init__(self) -> None:
        self.topics: list[dict[str, str]] = []
        self.groups: list[set[str]] = []

    def topics_changed(self, upstream_to_downstream: Mapping[str, str]) -> None:
        self.topics.append(dict(upstream_to_downstream))

    def groups_changed(self, groups: AbstractSet[str]) -> None:
        self.groups.append(set(groups))


class ListeningWorld(World):
    """A world with one observer: listeners."""

    def restart(self) -> None:
        self.told = Told()
        clusters = self.source_groups, self.target_groups
        announcements = Announcements(FLOW, self.told, self.told)
        self.observers = [ListenerObserver(self.settings, *clusters, announcements, groups=True)]
        super().restart()

    def heard(self, topics: list[dict[str, str]]) -> None:
        wait_for(lambda: self.told.topics == topics, WITHIN, f"the listener to hear {topics}, not {self.told.topics}")


@pytest.fixture
def world() -> ListeningWorld:
    world = ListeningWorld(source_groups=MemoryGroups("a", {"g": {TopicPartition("x", 0): 1}, "idle": {}}))
    put_topic(world.source, "x")
    put_topic(world.target, "a.x")
    return world


def test_whole_set_is_told_at_the_start_and_each_change_once(world: ListeningWorld) -> None:
    for _ in range(3):
        world.run_pass()
    world.heard([{"x": "a.x"}])
    put_topic(world.source, "y")
    for _ in range(3):
        world.run_pass()
    world.heard([{"x": "a.x"}, {"x": "a.x", "y": "a.y"}])
    world.run_pass()
    world.reconcile.close()
    assert world.told.topics == [{"x": "a.x"}, {"x": "a.x", "y": "a.y"}], "what waited to be told when it closed"


@pytest.mark.parametrize(("replaced", "seconds"), [(False, None), (True, REPLACED_WITHIN)])
def test_listeners_have_a_whole_call_to_end_in_unless_the_flow_goes_on_with_others(
    world: ListeningWorld, replaced: bool, seconds: float | None
) -> None:
    class Notes(Announcements):
        def close(self, within: float | None = None) -> bool:
            given.append(within)
            return super().close(within)

    given: list[float | None] = []
    clusters = world.source_groups, world.target_groups
    observer = ListenerObserver(world.settings, *clusters, Notes(FLOW, Told(), Told()), groups=True)
    observer.close(replaced=replaced)
    assert given == [seconds]


def test_source_that_shows_no_topic_at_all_is_not_believed(world: ListeningWorld) -> None:
    world.run_pass()
    world.heard([{"x": "a.x"}])
    world.source.topics.clear()
    world.run_pass()
    world.reconcile.close()
    assert world.told.topics == [{"x": "a.x"}]


def test_groups_are_those_with_offsets_on_replicated_topics(world: ListeningWorld) -> None:
    world.run_pass()
    wait_for(lambda: world.told.groups == [{"g"}], WITHIN, "the groups to be told")
    world.source_groups.offsets["h"] = {TopicPartition("x", 0): 2}
    world.run_pass(after=GROUP_LIST_INTERVAL)
    wait_for(lambda: world.told.groups == [{"g"}, {"g", "h"}], WITHIN, "the new group to be told")
    world.run_pass(after=GROUP_LIST_INTERVAL)
    world.reconcile.close()
    assert world.told.groups == [{"g"}, {"g", "h"}], "what waited to be told when it closed"


def test_group_that_commits_only_after_it_was_listed_is_told_at_the_next_listing(world: ListeningWorld) -> None:
    world.run_pass()
    wait_for(lambda: world.told.groups == [{"g"}], WITHIN, "the groups to be told")
    world.source_groups.offsets["idle"] = {TopicPartition("x", 0): 2}
    world.run_pass(after=GROUP_LIST_INTERVAL)
    wait_for(lambda: world.told.groups == [{"g"}, {"g", "idle"}], WITHIN, "the group that was idle to be told")


def test_group_that_is_gone_is_told_at_the_next_listing(world: ListeningWorld) -> None:
    world.run_pass()
    wait_for(lambda: world.told.groups == [{"g"}], WITHIN, "the groups to be told")
    del world.source_groups.offsets["g"]
    world.run_pass(after=GROUP_LIST_INTERVAL)
    wait_for(lambda: world.told.groups == [{"g"}, set()], WITHIN, "the group to be told as gone")


def test_all_groups_without_an_offset_have_their_turns(world: ListeningWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(announcements, "IDLE_IN_A_LISTING", 2)
    world.source_groups.offsets |= {f"idle{n}": {} for n in range(5)}
    world.run_pass()
    world.source_groups.offsets |= {f"idle{n}": {TopicPartition("x", 0): 1} for n in range(5)}
    everybody = {"g", *(f"idle{n}" for n in range(5))}
    for _ in range(3):
        world.run_pass(after=GROUP_LIST_INTERVAL)
    wait_for(lambda: world.told.groups[-1:] == [everybody], WITHIN, "all groups to be told")


def test_pass_is_due_when_groups_are_to_be_listed_again_and_not_before(world: ListeningWorld) -> None:
    world.run_pass()
    (observer,) = world.observers
    now = world.clock.now
    assert observer.due_at(now) == now + GROUP_LIST_INTERVAL
    assert observer.due_at(now + 4) == now + GROUP_LIST_INTERVAL
    # What is due is listed at the end of the pass that asks.
    assert observer.due_at(now + GROUP_LIST_INTERVAL) == now + 2 * GROUP_LIST_INTERVAL


def test_nobody_who_asks_for_no_groups_makes_a_pass_due(world: ListeningWorld) -> None:
    clusters = world.source_groups, world.target_groups
    silent = ListenerObserver(world.settings, *clusters, Announcements(FLOW, Told(), Told()), groups=False)
    assert silent.due_at(0.0) == float("inf")


def test_group_whose_offsets_cannot_be_read_any_more_is_not_told_to_be_gone(world: ListeningWorld) -> None:
    world.run_pass()
    wait_for(lambda: world.told.groups == [{"g"}], WITHIN, "the groups to be told")
    world.source_groups.unreadable["g"] = ItemFault("GROUP_AUTHORIZATION_FAILED", "no")
    world.run_pass(everything=True)
    world.source_groups.unreadable["idle"] = world.source_groups.unreadable.pop("g")
    world.run_pass(everything=True)
    world.reconcile.close()
    assert world.told.groups == [{"g"}]
