"""What was listed of a source holds while its metadata log is silent, and no moment longer."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from sinks.engine.flow_agenda import SETTLED_AFTER, ListingFreshness
from sinks.every_kind.listing import NOTHING_LISTED, Freshness, Listed
from sinks.kinds.shared_listings import SharedListings
from tests.sinks.builders import World, put_topic
from tests.sinks.kinds.test_shared_listings import CountedCluster
from tests.sinks.memory_flow import Clock
from tests.sinks.one_signal import with_signal


@dataclass
class Asked:
    """Lists no topic, and remembers how fresh that was to be."""

    freshness: list[Freshness] = field(default_factory=list)

    def list_topics(self, freshness: Freshness) -> Listed:
        self.freshness.append(freshness)
        return NOTHING_LISTED


def asked_at(*moments: float, signal: float | None = None, follows: bool = True) -> list[Freshness]:
    """How fresh the listings at these moments are. `signal`: the one at which the log tells of a change. `follows`:
    False while the log is not followed."""
    listing, asked = ListingFreshness(), Asked()
    for moment in moments:
        silent = follows and moment != signal
        listing.list(asked, moment, silent=silent, everything=False, asked=False)
    return asked.freshness


def test_a_listing_after_a_long_silence_holds() -> None:
    assert asked_at(100.0, 100.0 + SETTLED_AFTER, 200.0)[-1] is Freshness.QUIET


def test_a_listing_right_after_a_signal_may_be_a_lagging_brokers_and_does_not_hold() -> None:
    assert asked_at(100.0, 100.0 + SETTLED_AFTER - 1, 200.0)[-1] is Freshness.SOURCE_NOW


def test_a_signal_ends_it() -> None:
    assert asked_at(100.0, 200.0, 201.0, signal=201.0)[-1] is Freshness.SOURCE_NOW


def test_a_log_that_is_not_followed_is_not_silent() -> None:
    assert asked_at(100.0, 1000.0, 2000.0, follows=False)[-1] is Freshness.SOURCE_NOW


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
    listing, seen = ListingFreshness(), Asked()
    for moment in (100.0, 200.0):
        listing.list(seen, moment, silent=True, everything=False, asked=False)
    listing.list(seen, 300.0, silent=True, everything=everything, asked=asked)
    assert seen.freshness == [Freshness.ALL_NOW, Freshness.SOURCE_NOW, wanted]


def test_what_was_written_is_listed_anew_once() -> None:
    listing, seen = ListingFreshness(), Asked()
    for moment in (100.0, 200.0, 201.0, 202.0):
        listing.list(seen, moment, silent=True, everything=False, asked=False)
        if moment == 200.0:
            listing.want_anew()
    assert seen.freshness[2:] == [Freshness.ALL_NOW, Freshness.QUIET]


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
