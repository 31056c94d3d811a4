"""Kinds with an interval of their own: when they are polled, and what their status says in between."""

from __future__ import annotations

import pytest

from sinks.engine.flow_status import KnownStatus
from sinks.faults import ClusterUnreachable, ItemFault
from sinks.flow_settings import Pace
from sinks.model.changes import Kind
from sinks.model.times import utc_now
from tests.memory.memory_cluster import MemoryCluster
from tests.sinks.builders import World, flow_settings, overrides_of, put_topic, set_config

INTERVAL = 60.0


def test_a_kind_with_an_interval_of_its_own_rests_in_between() -> None:
    pace = Pace(observe_rate=0, full_comparison_interval=3000.0, intervals={Kind.TOPIC_CONFIG: 30.0})
    world = World(flow_settings(pace=pace))
    put_topic(world.source, "x", retention_ms="1")
    world.settle()
    world.clock.now += 31
    world.run_pass()
    set_config(world.source, "x", "retention.ms", "2")
    world.clock.now += 28
    world.run_pass()
    assert overrides_of(world.target, "a.x") == {"retention.ms": "1"}
    world.clock.now += 2
    world.run_pass()
    assert overrides_of(world.target, "a.x") == {"retention.ms": "2"}


def test_full_comparison_waits_for_no_interval_of_a_kind_and_begins_a_new_one() -> None:
    world = World(flow_settings(pace=Pace(observe_rate=0, intervals={Kind.TOPIC_CONFIG: 80.0})))
    put_topic(world.source, "x", retention_ms="1")
    world.settle()
    set_config(world.target, "a.x", "retention.ms", "666")
    report = world.run_pass(after=INTERVAL)
    assert report.everything
    assert overrides_of(world.target, "a.x") == {"retention.ms": "1"}
    set_config(world.source, "x", "retention.ms", "2")
    world.run_pass(after=30)
    assert overrides_of(world.target, "a.x") == {"retention.ms": "1"}


def test_a_request_for_a_look_does_not_wait_for_the_interval() -> None:
    world = World(flow_settings(pace=Pace(observe_rate=0, intervals={Kind.TOPIC_CONFIG: 3000.0})))
    put_topic(world.source, "x", retention_ms="1")
    world.settle()
    set_config(world.source, "x", "retention.ms", "2")
    world.run_pass("x")
    assert overrides_of(world.target, "a.x") == {"retention.ms": "2"}


def resting_world() -> World:
    """x in step, and the interval of topic configs just over."""
    pace = Pace(observe_rate=0, full_comparison_interval=3000.0, intervals={Kind.TOPIC_CONFIG: 30.0})
    world = World(flow_settings(pace=pace))
    put_topic(world.source, "x", retention_ms="1")
    world.settle()
    world.clock.now += 31
    return world


def test_poll_that_failed_does_not_wait_for_the_interval() -> None:
    world = resting_world()
    set_config(world.source, "x", "retention.ms", "2")
    world.source.reachable = False
    with pytest.raises(ClusterUnreachable):
        world.run_pass()
    world.source.reachable = True
    world.run_pass()
    assert overrides_of(world.target, "a.x") == {"retention.ms": "2"}


def test_kind_in_trouble_does_not_wait_for_the_interval_once_the_trouble_is_over() -> None:
    world = resting_world()
    set_config(world.source, "x", "retention.ms", "2")
    world.controller(Kind.TOPIC)._source_watch._cluster = MemoryCluster("a", denied={"describe"})
    assert Kind.TOPIC_CONFIG in world.run_pass().trouble.faulted
    world.controller(Kind.TOPIC)._source_watch._cluster = world.source
    world.run_pass(after=2.0)
    assert overrides_of(world.target, "a.x") == {"retention.ms": "2"}


def test_drift_of_a_failed_write_stays_in_the_status_until_the_kind_is_compared_again() -> None:
    class Falling(MemoryCluster):
        def alter_topic_configs(self, alterations: object) -> dict[str, ItemFault | None]:
            raise ClusterUnreachable("cluster b: no answer")

    world, known = resting_world(), KnownStatus(flow_settings())
    set_config(world.source, "x", "retention.ms", "2")
    world.target.__class__ = Falling
    known.succeeded(world.run_pass(), utc_now())
    world.target.__class__ = MemoryCluster
    before = known.status().kinds[Kind.TOPIC_CONFIG]
    known.succeeded(world.run_pass(), utc_now())
    assert known.status().kinds[Kind.TOPIC_CONFIG] == before
    assert (before.drift, before.last_success) == (1, None)
    known.succeeded(world.run_pass(after=30.0), utc_now())
    assert known.status().kinds[Kind.TOPIC_CONFIG].drift == 0
