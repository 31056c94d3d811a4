"""What was listed of a source holds while its metadata log is silent, and no moment longer."""

from __future__ import annotations

import pytest

from sinks.engine.flow_agenda import SETTLED_AFTER, ListingFreshness
from sinks.every_kind.listing import Freshness
from sinks.kinds.shared_listings import SharedListings
from tests.sinks.builders import World, put_topic
from tests.sinks.kinds.test_shared_listings import CountedCluster
from tests.sinks.memory_flow import Clock
from tests.sinks.one_signal import with_signal


def list_at(listing: ListingFreshness, moment: float, *, everything: bool = False, asked: bool = False) -> Freshness:
    """How fresh a listing at this moment is, which shows no topic."""
    freshness = listing.freshness(everything=everything, asked=asked)
    listing.listed(moment, freshness, {})
    return freshness


def listed_at(*moments: float, moved: float = 100.0) -> ListingFreshness:
    """A source whose log moved last at one of them, and was listed at the others."""
    listing = ListingFreshness()
    listing.sampled(moved, silent=True)
    for moment in moments:
        list_at(listing, moment)
    return listing


def test_a_listing_after_a_long_silence_holds() -> None:
    assert listed_at(100.0 + SETTLED_AFTER).freshness(everything=False, asked=False) is Freshness.QUIET


def test_a_listing_right_after_a_signal_may_be_a_lagging_brokers_and_does_not_hold() -> None:
    assert listed_at(100.0 + SETTLED_AFTER - 1).freshness(everything=False, asked=False) is Freshness.SOURCE_NOW


def test_a_signal_ends_it() -> None:
    listing = listed_at(200.0)
    listing.sampled(201.0, silent=False)
    assert listing.freshness(everything=False, asked=False) is Freshness.SOURCE_NOW


def test_a_log_that_was_never_followed_is_not_silent() -> None:
    listing = ListingFreshness()
    list_at(listing, 1000.0)
    assert listing.freshness(everything=False, asked=False) is Freshness.SOURCE_NOW


@pytest.mark.parametrize(
    ("everything", "asked", "wanted"),
    [
        (False, False, Freshness.QUIET),
        (True, False, Freshness.ALL),
        (False, True, Freshness.ALL_NOW),
        (True, True, Freshness.ALL_NOW),
    ],
)
def test_who_asks_gets_all_as_it_is_now(everything: bool, asked: bool, wanted: Freshness) -> None:
    listing = ListingFreshness()
    listing.sampled(100.0, silent=True)
    seen = [list_at(listing, 200.0), list_at(listing, 300.0, everything=everything, asked=asked)]
    assert seen == [Freshness.ALL_NOW, wanted]


def test_what_was_written_is_listed_anew_once() -> None:
    listing = ListingFreshness()
    listing.sampled(100.0, silent=True)
    seen = [list_at(listing, 200.0)]
    listing.want_anew()
    seen += [list_at(listing, moment) for moment in (201.0, 202.0)]
    assert seen == [Freshness.ALL_NOW, Freshness.ALL_NOW, Freshness.QUIET]


def test_passes_list_a_silent_source_with_each_full_comparison_only_and_at_once_after_a_signal() -> None:
    clock, source = Clock(), CountedCluster("a", "id-of-a")
    world = World(source=source, clock=clock, listings=SharedListings(clock))
    signal = with_signal(world)
    world.settle()
    for _ in range(4):
        world.run_pass(after=SETTLED_AFTER)
    listed = source.listings
    world.run_pass(after=1.0)
    world.run_pass(after=1.0)
    assert source.listings == listed
    put_topic(source, "new")
    signal.records = 1
    assert [one.change.key for one in world.run_pass(after=1.0).outcomes] == [("a.new",)]


def test_a_topic_that_no_signal_told_of_is_found_by_the_full_comparison() -> None:
    clock, source = Clock(), CountedCluster("a", "id-of-a")
    world = World(source=source, clock=clock, listings=SharedListings(clock))
    with_signal(world)
    world.settle()
    for _ in range(4):
        world.run_pass(after=SETTLED_AFTER)
    put_topic(source, "new")
    assert not world.run_pass(after=1.0).outcomes
    interval = world.settings.pace.full_comparison_interval
    assert [one.change.key for one in world.run_pass(after=interval).outcomes] == [("a.new",)]


def test_a_listing_that_differs_without_a_signal_may_be_half_of_it_and_does_not_hold() -> None:
    clock, source = Clock(), CountedCluster("a", "id-of-a")
    world = World(source=source, clock=clock, listings=SharedListings(clock))
    with_signal(world)
    for name in ("x", "y", "z"):
        put_topic(source, name)
    world.settle()
    for _ in range(4):
        world.run_pass(after=SETTLED_AFTER)
    hidden = {name: source.topics.pop(name) for name in ("y", "z")}
    world.run_pass(everything=True)
    source.topics |= hidden
    listed = source.listings
    world.run_pass(after=1.0)
    assert source.listings == listed + 1
