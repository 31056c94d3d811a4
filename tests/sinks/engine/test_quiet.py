"""What was listed of a source holds while its metadata log is silent, and no moment longer."""

from __future__ import annotations

from dataclasses import replace

from sinks.engine.quiet import SETTLED_AFTER, Quiet
from sinks.kinds.shared_listings import SharedListings
from tests.sinks.builders import World, put_topic
from tests.sinks.engine.test_signal_owed import OneSignal
from tests.sinks.kinds.test_shared_listings import CountedCluster
from tests.sinks.memory_flow import Clock


def silent_since(start: float) -> Quiet:
    quiet = Quiet()
    quiet.sampled(start, silent=True)
    return quiet


def test_a_listing_after_a_long_silence_holds() -> None:
    quiet = silent_since(100.0)
    quiet.listed(100.0 + SETTLED_AFTER)
    quiet.sampled(500.0, silent=True)
    assert quiet.is_since_listed


def test_a_listing_right_after_a_signal_may_be_a_lagging_brokers_and_does_not_hold() -> None:
    quiet = silent_since(100.0)
    quiet.listed(100.0 + SETTLED_AFTER - 1)
    quiet.sampled(500.0, silent=True)
    assert not quiet.is_since_listed


def test_a_signal_ends_it() -> None:
    quiet = silent_since(100.0)
    quiet.listed(200.0)
    quiet.sampled(201.0, silent=False)
    assert not quiet.is_since_listed


def test_a_log_that_was_never_followed_is_not_silent() -> None:
    quiet = Quiet()
    quiet.listed(1000.0)
    assert not quiet.is_since_listed


def test_passes_list_a_silent_source_with_each_full_comparison_only_and_at_once_after_a_signal() -> None:
    clock, signal, source = Clock(), OneSignal(), CountedCluster("a", "id-of-a")
    world = World(source=source, clock=clock, listings=SharedListings(clock))
    world.reconcile._components = replace(world.reconcile._components, signal=signal)
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
    world.reconcile._components = replace(world.reconcile._components, signal=OneSignal())
    world.settle()
    for _ in range(4):
        world.run_pass(after=SETTLED_AFTER)
    put_topic(source, "new")
    assert not world.run_pass(after=1.0).outcomes
    interval = world.settings.pace.full_comparison_interval
    assert [one.change.key for one in world.run_pass(after=interval).outcomes] == [("a.new",)]
