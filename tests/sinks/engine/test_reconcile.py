"""The whole pass of a flow over clusters in memory, with a clock moved by hand."""

from __future__ import annotations

import pytest

from tests.sinks.builders import World, config_change, overrides_of, put_topic, set_config, world_in_step

INTERVAL = 60.0


@pytest.fixture
def world() -> World:
    return world_in_step()


def test_first_pass_brings_the_target_in_step() -> None:
    world = World()
    put_topic(world.source, "x", 3, retention_ms="1", min_insync_replicas="2")
    report = world.run_pass()
    assert [outcome.result for outcome in report.outcomes] == ["applied"]
    assert report.everything
    assert world.target.topics["a.x"].partitions == 3
    assert overrides_of(world.target, "a.x") == {"retention.ms": "1"}


def test_first_pass_compares_topics_that_are_there_already() -> None:
    world = World()
    put_topic(world.source, "x", retention_ms="1")
    put_topic(world.target, "a.x", retention_ms="2", retention_bytes="3", min_insync_replicas="2")
    world.run_pass()
    assert overrides_of(world.target, "a.x") == {"retention.ms": "1", "min.insync.replicas": "2"}


def test_with_nothing_to_do_not_one_write_leaves(world: World) -> None:
    records = {topic: list(kept.records) for topic, kept in world.target.topics.items()}
    for _ in range(130):
        report = world.run_pass()
        assert report.outcomes == ()
        assert report.plan.changes == ()
    assert world.target.writes == 0
    assert {topic: kept.records for topic, kept in world.target.topics.items()} == records
    assert world.source.writes == 0


def test_changed_config_arrives_at_the_next_look(world: World) -> None:
    set_config(world.source, "x", "retention.ms", "2")
    world.run_pass()
    assert overrides_of(world.target, "a.x") == {"retention.ms": "2"}
    assert world.target.writes == 1


def test_removed_config_is_removed_at_the_next_look(world: World) -> None:
    set_config(world.source, "x", "retention.ms", None)
    world.run_pass()
    assert overrides_of(world.target, "a.x") == {}


def test_new_topic_and_new_partitions_arrive_at_the_next_look(world: World) -> None:
    put_topic(world.source, "z", 2, retention_ms="7")
    world.source.create_partitions({"x": 5})
    world.run_pass()
    assert world.target.topics["a.z"].partitions == 2
    assert overrides_of(world.target, "a.z") == {"retention.ms": "7"}
    assert world.target.topics["a.x"].partitions == 5


def test_topic_deleted_on_the_target_is_made_again(world: World) -> None:
    del world.target.topics["a.x"]
    world.run_pass()
    assert overrides_of(world.target, "a.x") == {"retention.ms": "1"}


def test_change_by_another_hand_on_the_target_is_undone_at_the_full_comparison(world: World) -> None:
    set_config(world.target, "a.x", "retention.ms", "666")
    world.run_pass()
    assert overrides_of(world.target, "a.x") == {"retention.ms": "666"}
    report = world.run_pass(after=INTERVAL)
    assert report.everything
    assert overrides_of(world.target, "a.x") == {"retention.ms": "1"}


def test_change_by_another_hand_back_to_what_was_there_before_our_write_is_undone() -> None:
    world = World()
    put_topic(world.source, "x", retention_ms="1")
    put_topic(world.target, "a.x")
    world.run_pass()
    assert overrides_of(world.target, "a.x") == {"retention.ms": "1"}
    set_config(world.target, "a.x", "retention.ms", None)
    world.run_pass(after=INTERVAL)
    assert overrides_of(world.target, "a.x") == {"retention.ms": "1"}


def test_excluded_config_that_another_hand_set_on_the_target_survives(world: World) -> None:
    set_config(world.target, "a.x", "min.insync.replicas", "2")
    set_config(world.source, "x", "retention.ms", "2")
    world.run_pass(after=INTERVAL)
    assert overrides_of(world.target, "a.x") == {"retention.ms": "2", "min.insync.replicas": "2"}


def test_look_requested_for_a_topic_compares_it_at_once(world: World) -> None:
    set_config(world.target, "a.x", "retention.ms", "666")
    set_config(world.target, "a.y", "retention.ms", "666")
    world.run_pass("x", "nobody")
    assert overrides_of(world.target, "a.x") == {"retention.ms": "1"}
    assert overrides_of(world.target, "a.y") == {"retention.ms": "666"}


def test_full_comparison_requested_is_done_at_once(world: World) -> None:
    set_config(world.target, "a.y", "retention.ms", "666")
    report = world.run_pass(everything=True)
    assert report.polled == 2
    assert overrides_of(world.target, "a.y") == {}


def test_batch_that_runs_twice_is_harmless(world: World) -> None:
    set_config(world.source, "x", "retention.ms", "2")
    world.run_pass("x", after=0.0)
    events, writes = world.events(), world.target.writes
    world.run_pass("x", after=0.0)
    assert (world.events(), world.target.writes) == (events, writes)


def test_every_applied_change_is_an_event_with_the_digest_of_its_plan(world: World) -> None:
    set_config(world.source, "x", "retention.ms", "2")
    report = world.run_pass()
    event = world.events()[-1]
    assert (event.key, event.before, event.after) == (("a.x", "retention.ms"), '"1"', '"2"')
    assert event.digest == report.plan.digest
    assert report.plan.changes == (config_change("a.x", "retention.ms", "1", "2"),)


def test_missing_internal_topics_of_mm2_are_named(world: World) -> None:
    assert world.run_pass().missing_topics == (
        "a.heartbeats on b",
        "a.checkpoints.internal on b",
        "mm2-offset-syncs.b.internal on a",
    )
    put_topic(world.target, "a.checkpoints.internal")
    assert "a.checkpoints.internal on b" not in world.run_pass().missing_topics
