"""Flows into one target share its listings, and none goes by one that is too old for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from sinks.background import begun
from sinks.every_kind.listing import Freshness
from sinks.faults import ClusterUnreachable
from sinks.kinds.shared_listings import TARGET_LISTED_FOR, FlowListing, SharedListings
from streaming.flow import Flow
from tests.memory.memory_cluster import MemoryCluster
from tests.sinks.builders import World, flow_settings, put_topic, set_config
from tests.sinks.memory_flow import Clock


@dataclass
class CountedCluster(MemoryCluster):
    """Counts listings. `meanwhile`: what happens before one is answered."""

    listings: int = 0
    meanwhile: Callable[[], None] = field(default=lambda: None)

    def list_topics(self) -> dict[str, int]:
        self.listings += 1
        self.meanwhile()
        return super().list_topics()


def flows(target: MemoryCluster, clock: Clock) -> tuple[FlowListing, FlowListing]:
    """a->b and c->b, each source with one topic, of one job."""
    shared = SharedListings(clock)
    sources = MemoryCluster("a"), MemoryCluster("c")
    for source in sources:
        put_topic(source, "x")
    first, second = (
        FlowListing(flow_settings(flow=Flow(source.alias, "b")), source, target, shared, "b") for source in sources
    )
    return first, second


def test_flows_list_their_target_once_while_that_is_young_enough() -> None:
    target, clock = CountedCluster("b"), Clock()
    first, second = flows(target, clock)
    for _ in range(3):
        assert first.list_topics(Freshness.SOURCE_NOW).target == second.list_topics(Freshness.SOURCE_NOW).target == {}
    assert target.listings == 1
    put_topic(target, "a.x")
    clock.now += TARGET_LISTED_FOR[Freshness.SOURCE_NOW] + 0.1
    assert first.list_topics(Freshness.SOURCE_NOW).target == {"a.x": 1}


def test_who_wants_it_anew_lists_anew_whatever_is_known() -> None:
    target, clock = CountedCluster("b"), Clock()
    first, second = flows(target, clock)
    first.list_topics()
    put_topic(target, "a.x")
    clock.now += 0.1
    assert second.list_topics(Freshness.ALL_NOW).target == {"a.x": 1}


def test_topics_of_the_source_are_listed_in_each_pass() -> None:
    source, target = MemoryCluster("a"), MemoryCluster("b")
    flow = FlowListing(flow_settings(), source, target, SharedListings(Clock()), "b")
    flow.list_topics(Freshness.SOURCE_NOW)
    put_topic(source, "new", 3)
    assert flow.list_topics(Freshness.SOURCE_NOW).desired.partitions == {"a.new": 3}


def test_a_quiet_source_is_not_listed_again() -> None:
    source, target = CountedCluster("a"), MemoryCluster("b")
    put_topic(source, "x", 3)
    flow = FlowListing(flow_settings(), source, target, SharedListings(Clock()), "b")
    flow.list_topics(Freshness.SOURCE_NOW)
    assert flow.list_topics(Freshness.QUIET).desired.partitions == {"a.x": 3}
    assert source.listings == 1


def test_other_accounts_see_for_themselves() -> None:
    target, shared = CountedCluster("b"), SharedListings(Clock())
    for account in ("one", "other"):
        FlowListing(flow_settings(), MemoryCluster("a"), target, shared, account).list_topics(Freshness.SOURCE_NOW)
    assert target.listings == 2


def test_a_target_that_does_not_answer_is_asked_again_by_the_next() -> None:
    target, clock = CountedCluster("b"), Clock()
    first, second = flows(target, clock)
    target.reachable = False
    for flow in (first, second):
        with pytest.raises(ClusterUnreachable):
            flow.list_topics(Freshness.SOURCE_NOW)
    target.reachable = True
    assert first.list_topics(Freshness.SOURCE_NOW).target == {}


def test_who_comes_while_it_is_listed_gets_the_same_answer_without_another_question() -> None:
    target, clock = CountedCluster("b"), Clock()
    first, second = flows(target, clock)
    others = []

    def comes() -> None:
        target.meanwhile = lambda: None
        others.append(begun(lambda: second.list_topics(Freshness.SOURCE_NOW), "the second flow"))

    target.meanwhile = comes
    assert first.list_topics(Freshness.SOURCE_NOW).target is others[0].result(60).target
    assert target.listings == 1


def test_what_a_pass_made_is_seen_by_the_next_one_though_its_target_was_listed_a_moment_ago() -> None:
    clock = Clock()
    world = World(target=CountedCluster("b", "id-of-b"), clock=clock, listings=SharedListings(clock))
    put_topic(world.source, "x")
    world.settle()
    put_topic(world.source, "y")
    assert [outcome.change.key for outcome in world.run_pass(after=0.2).outcomes] == [("a.y",)]
    assert not world.run_pass(after=0.2).outcomes


def test_a_changed_config_does_not_list_the_target_again() -> None:
    clock, target = Clock(), CountedCluster("b", "id-of-b")
    world = World(target=target, clock=clock, listings=SharedListings(clock))
    put_topic(world.source, "x")
    world.settle()
    world.run_pass(everything=True)
    listed = target.listings
    set_config(world.source, "x", "retention.ms", "7")
    assert [outcome.change.key for outcome in world.run_pass(after=0.2).outcomes] == [("a.x", "retention.ms")]
    assert target.listings == listed
