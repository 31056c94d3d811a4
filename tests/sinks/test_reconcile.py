"""The whole walk of a flow over clusters in memory, with a clock moved by hand."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sinks.audit import Audit
from sinks.cluster.base import TopicConfigs
from sinks.cluster.memory import MemoryCluster
from sinks.errors import (
    ClusterUnreachable,
    IncrementalUnsupported,
    ItemFault,
    RightsMissing,
    UnsafePlan,
    WrongCluster,
)
from sinks.ledger import Entry
from sinks.model import Kind, Observed, Outcome
from sinks.plan import Plan, Refusal
from sinks.settings import Incremental, Limits, Pace
from streaming.errors import LockstepError
from tests.sinks.builders import World, config_change, flow_settings, overrides_of, put_topic

INTERVAL = 60.0


@pytest.fixture
def world() -> World:
    """x and y on the source, both in step."""
    built = World()
    put_topic(built.source, "x", 3, retention_ms="1")
    put_topic(built.source, "y")
    built.settle()
    return built


def set_config(cluster: MemoryCluster, topic: str, name: str, value: str | None) -> None:
    """A change by somebody's hand; not counted as a write of ours."""
    writes = cluster.writes
    fault = cluster.alter_topic_configs({topic: {name: value}})[topic]
    assert fault is None
    cluster.writes = writes


def test_first_walk_brings_the_target_in_step() -> None:
    world = World()
    put_topic(world.source, "x", 3, retention_ms="1", min_insync_replicas="2")
    report = world.walk()
    assert [outcome.result for outcome in report.outcomes] == ["applied"]
    assert report.everything
    assert world.target.topics["a.x"].partitions == 3
    assert overrides_of(world.target, "a.x") == {"retention.ms": "1"}


def test_first_walk_compares_topics_that_are_there_already() -> None:
    world = World()
    put_topic(world.source, "x", retention_ms="1")
    put_topic(world.target, "a.x", retention_ms="2", retention_bytes="3", min_insync_replicas="2")
    world.walk()
    assert overrides_of(world.target, "a.x") == {"retention.ms": "1", "min.insync.replicas": "2"}


def test_with_nothing_to_do_not_one_write_leaves(world: World) -> None:
    records = {topic: list(kept.records) for topic, kept in world.target.topics.items()}
    for _ in range(130):
        report = world.walk()
        assert report.outcomes == ()
        assert report.plan.changes == ()
    assert world.target.writes == 0
    assert {topic: kept.records for topic, kept in world.target.topics.items()} == records
    assert world.source.writes == 0


def test_changed_config_arrives_at_the_next_look(world: World) -> None:
    set_config(world.source, "x", "retention.ms", "2")
    world.walk()
    assert overrides_of(world.target, "a.x") == {"retention.ms": "2"}
    assert world.target.writes == 1


def test_removed_config_is_removed_at_the_next_look(world: World) -> None:
    set_config(world.source, "x", "retention.ms", None)
    world.walk()
    assert overrides_of(world.target, "a.x") == {}


def test_new_topic_and_new_partitions_arrive_at_the_next_look(world: World) -> None:
    put_topic(world.source, "z", 2, retention_ms="7")
    world.source.create_partitions({"x": 5})
    world.walk()
    assert world.target.topics["a.z"].partitions == 2
    assert overrides_of(world.target, "a.z") == {"retention.ms": "7"}
    assert world.target.topics["a.x"].partitions == 5


def test_topic_deleted_on_the_target_is_made_again(world: World) -> None:
    del world.target.topics["a.x"]
    world.walk()
    assert overrides_of(world.target, "a.x") == {"retention.ms": "1"}


def test_change_by_another_hand_on_the_target_is_undone_at_the_full_comparison(world: World) -> None:
    set_config(world.target, "a.x", "retention.ms", "666")
    world.walk()
    assert overrides_of(world.target, "a.x") == {"retention.ms": "666"}
    report = world.walk(after=INTERVAL)
    assert report.everything
    assert overrides_of(world.target, "a.x") == {"retention.ms": "1"}


def test_change_by_another_hand_back_to_what_was_there_before_our_write_is_undone() -> None:
    world = World()
    put_topic(world.source, "x", retention_ms="1")
    put_topic(world.target, "a.x")
    world.walk()
    assert overrides_of(world.target, "a.x") == {"retention.ms": "1"}
    set_config(world.target, "a.x", "retention.ms", None)
    world.walk(after=INTERVAL)
    assert overrides_of(world.target, "a.x") == {"retention.ms": "1"}


def test_excluded_config_that_another_hand_set_on_the_target_survives(world: World) -> None:
    set_config(world.target, "a.x", "min.insync.replicas", "2")
    set_config(world.source, "x", "retention.ms", "2")
    world.walk(after=INTERVAL)
    assert overrides_of(world.target, "a.x") == {"retention.ms": "2", "min.insync.replicas": "2"}


def test_look_requested_for_a_topic_compares_it_at_once(world: World) -> None:
    set_config(world.target, "a.x", "retention.ms", "666")
    set_config(world.target, "a.y", "retention.ms", "666")
    world.walk("x", "nobody")
    assert overrides_of(world.target, "a.x") == {"retention.ms": "1"}
    assert overrides_of(world.target, "a.y") == {"retention.ms": "666"}


def test_full_comparison_requested_is_done_at_once(world: World) -> None:
    set_config(world.target, "a.y", "retention.ms", "666")
    report = world.walk(everything=True)
    assert report.looked_at == 2
    assert overrides_of(world.target, "a.y") == {}


def test_batch_that_runs_twice_is_harmless(world: World) -> None:
    set_config(world.source, "x", "retention.ms", "2")
    world.walk("x", after=0.0)
    events, writes = world.events(), world.target.writes
    world.walk("x", after=0.0)
    assert (world.events(), world.target.writes) == (events, writes)


class DiesHereError(Exception):
    """The process ends between two lines."""


class CrashingAudit(Audit):
    """Dies between apply and record."""

    def record(self, plan: Plan, outcomes: Iterable[Outcome], refused: Iterable[Refusal] = ()) -> None:
        if plan.changes:
            raise DiesHereError


@pytest.mark.parametrize("restarted", [True, False], ids=["restarted", "same process"])
def test_crash_between_apply_and_record_writes_nothing_twice(restarted: bool) -> None:
    world = World()
    put_topic(world.source, "x", 3, retention_ms="1")
    put_topic(world.target, "a.x", 3, retention_ms="2")
    whole = world.reconcile._audit
    world.reconcile._audit = CrashingAudit("audit", world.target, 1, "tester@here")
    with pytest.raises(DiesHereError):
        world.walk()
    assert overrides_of(world.target, "a.x") == {"retention.ms": "1"}
    writes = world.target.writes
    if restarted:
        world.restart()
    world.reconcile._audit = whole
    assert world.walk().plan.changes == ()
    assert world.target.writes == writes


@pytest.mark.parametrize("silent", ["source", "target"])
def test_silent_cluster_plans_nothing_and_the_next_walk_finds_the_change(world: World, silent: str) -> None:
    cluster = world.source if silent == "source" else world.target
    set_config(world.source, "x", "retention.ms", "2")
    cluster.reachable = False
    with pytest.raises(ClusterUnreachable):
        world.walk()
    cluster.reachable = True
    assert world.target.writes == 0
    world.walk()
    assert overrides_of(world.target, "a.x") == {"retention.ms": "2"}


def test_change_seen_while_the_full_comparison_fails_is_not_lost(world: World) -> None:
    class SilentWatch:
        def changed(self, shards: object) -> set[str]:
            raise ClusterUnreachable("cluster b: no answer")

    clusters = world.reconcile._clusters
    healthy = clusters.target_watch
    object.__setattr__(clusters, "target_watch", SilentWatch())
    set_config(world.source, "x", "retention.ms", "2")
    with pytest.raises(ClusterUnreachable):
        world.walk(after=INTERVAL)
    object.__setattr__(clusters, "target_watch", healthy)
    world.walk()
    assert overrides_of(world.target, "a.x") == {"retention.ms": "2"}


def test_target_that_falls_silent_while_writing_gets_the_rest_at_the_next_walk(world: World) -> None:
    class Falling(MemoryCluster):
        def alter_topic_configs(self, alterations: object) -> dict[str, ItemFault | None]:
            raise ClusterUnreachable("cluster b: no answer")

    set_config(world.source, "x", "retention.ms", "2")
    world.target.__class__ = Falling
    report = world.walk()
    assert [str(outcome.error) for outcome in report.outcomes] == ["UNREACHABLE: cluster b: no answer"]
    world.target.__class__ = MemoryCluster
    world.walk()
    assert overrides_of(world.target, "a.x") == {"retention.ms": "2"}


def test_source_broker_that_lags_behind_the_one_watched_loses_no_change() -> None:
    class Lagging(MemoryCluster):
        """Another broker of the cluster, which shows configs as they were when it was asked before."""

        before: Mapping[str, TopicConfigs] = {}

        def describe_topic_configs(self, topics: Collection[str]) -> Observed[str, TopicConfigs]:
            now = super().describe_topic_configs(topics).items
            shown, self.before = {**now, **self.before}, now
            return Observed(shown)

    watched = MemoryCluster("a", "id-of-a")
    world = World(source=watched, read_source=Lagging("a", "id-of-a", topics=watched.topics))
    put_topic(world.source, "x", retention_ms="1")
    world.settle()
    set_config(world.source, "x", "retention.ms", "2")
    for _ in range(2):
        world.walk()
    assert overrides_of(world.target, "a.x") == {"retention.ms": "2"}


@pytest.mark.parametrize("alias", ["a", "b"])
def test_cluster_that_is_another_one_now_stops_the_flow_and_nothing_is_written(world: World, alias: str) -> None:
    (world.source if alias == "a" else world.target).id = "another"
    set_config(world.source, "x", "retention.ms", "2")
    for after in (1.0, INTERVAL, 1.0):
        with pytest.raises(WrongCluster, match=f"{alias}.bootstrap.servers leads to the cluster another"):
            world.walk(after=after)
    assert world.target.writes == 0
    assert overrides_of(world.target, "a.x") == {"retention.ms": "1"}


def test_paused_kind_is_not_planned_and_what_changed_meanwhile_arrives_after_it(world: World) -> None:
    world.ledger().put({(Entry.PAUSED, (Kind.TOPIC_CONFIG.value,)): ""})
    world.walk(after=INTERVAL)
    set_config(world.source, "x", "retention.ms", "2")
    put_topic(world.source, "z")
    world.walk()
    assert overrides_of(world.target, "a.x") == {"retention.ms": "1"}
    assert "a.z" in world.target.topics
    world.ledger().put({(Entry.PAUSED, (Kind.TOPIC_CONFIG.value,)): None})
    world.walk(after=INTERVAL)
    assert overrides_of(world.target, "a.x") == {"retention.ms": "2"}


def test_paused_topics_are_not_made() -> None:
    world = World()
    world.ledger().put({(Entry.PAUSED, (Kind.TOPIC.value,)): ""})
    put_topic(world.source, "z")
    world.walk()
    assert "a.z" not in world.target.topics
    assert world.reconcile.paused == {Kind.TOPIC}


def test_without_creating_topics_those_that_mm2_makes_are_configured_soon() -> None:
    world = World(flow_settings(enabled=[Kind.TOPIC_CONFIG]))
    put_topic(world.source, "x", retention_ms="1")
    world.settle()
    assert "a.x" not in world.target.topics
    put_topic(world.target, "a.x")
    world.walk()
    assert overrides_of(world.target, "a.x") == {"retention.ms": "1"}


def test_topic_that_another_hand_made_at_the_same_moment_is_configured_at_the_next_walk(world: World) -> None:
    class LateListing(MemoryCluster):
        def list_topics(self) -> dict[str, int]:
            return {name: count for name, count in super().list_topics().items() if name != "a.z"}

    put_topic(world.source, "z", retention_ms="7")
    put_topic(world.target, "a.z", retention_ms="8")
    world.target.__class__ = LateListing
    (outcome,) = world.walk().outcomes
    assert outcome.already
    world.target.__class__ = MemoryCluster
    world.walk()
    assert overrides_of(world.target, "a.z") == {"retention.ms": "7"}
    assert world.ledger().owned(Kind.TOPIC) == {("a.x",), ("a.y",)}


def test_refused_key_is_set_aside_and_its_neighbours_arrive() -> None:
    world = World()
    world.target.policy = lambda topic, name, value: "30 days at most" if name == "retention.ms" else None
    put_topic(world.source, "x", retention_ms="1", retention_bytes="2")
    world.walk()
    world.walk()
    assert overrides_of(world.target, "a.x") == {"retention.bytes": "2"}
    writes = world.target.writes
    for _ in range(25):
        (refusal,) = world.walk().plan.refused
        assert refusal.key == ("a.x", "retention.ms")
        assert "30 days at most" in refusal.reason
    assert world.target.writes == writes
    world.target.policy = lambda topic, name, value: None
    world.walk(after=30.0)
    assert overrides_of(world.target, "a.x") == {"retention.ms": "1", "retention.bytes": "2"}
    assert world.walk().plan.refused == ()


def test_refusal_of_a_topic_that_left_the_source_is_forgotten() -> None:
    world = World()
    world.target.policy = lambda topic, name, value: "no" if name == "retention.ms" else None
    put_topic(world.source, "x", retention_ms="1")
    for _ in range(3):
        report = world.walk()
    assert report.plan.refused != ()
    del world.source.topics["x"]
    assert world.walk().plan.refused == ()


def test_topic_with_a_name_too_long_is_refused_in_every_report(world: World) -> None:
    put_topic(world.source, "z" * 248)
    for _ in range(3):
        (refusal,) = world.walk().plan.refused
        assert refusal.key == ("a." + "z" * 248,)


def test_topic_that_may_not_be_described_stays_in_the_report_until_it_may(world: World) -> None:
    class Shy(MemoryCluster):
        def describe_topic_configs(self, topics: Collection[str]) -> Observed[str, TopicConfigs]:
            seen = super().describe_topic_configs([topic for topic in topics if topic != "a.x"])
            fault = ItemFault("TOPIC_AUTHORIZATION_FAILED", "no")
            return Observed(seen.items, {topic: fault for topic in topics if topic == "a.x"})

    world.target.__class__ = Shy
    set_config(world.source, "x", "retention.ms", "2")
    for value in ("1", "2", "3"):
        set_config(world.source, "y", "retention.ms", value)
        (error,) = world.walk().plan.errors
        assert overrides_of(world.target, "a.y") == {"retention.ms": value}
        assert error.reason == "a.x on b: TOPIC_AUTHORIZATION_FAILED: no"
    world.target.__class__ = MemoryCluster
    report = world.walk(after=INTERVAL)
    assert report.plan.errors == ()
    assert overrides_of(world.target, "a.x") == {"retention.ms": "2"}


def test_source_that_may_not_be_described_stops_the_flow(world: World) -> None:
    world.source.denied = {"describe"}
    with pytest.raises(RightsMissing):
        world.walk()


def test_required_without_the_api_stops_the_flow_but_what_was_made_is_remembered() -> None:
    world = World(flow_settings(incremental=Incremental.REQUIRED))
    world.target.incremental = False
    put_topic(world.source, "x", retention_ms="1")
    put_topic(world.target, "a.x", retention_ms="2")
    put_topic(world.source, "new")
    with pytest.raises(IncrementalUnsupported):
        world.walk()
    assert world.ledger().owned(Kind.TOPIC) == {("a.new",)}
    assert [event.key for event in world.events()] == [("a.new",)]
    world.target.incremental = True
    world.walk()
    assert overrides_of(world.target, "a.x") == {"retention.ms": "1"}


def test_topics_are_deleted_when_asked_for_and_only_ours() -> None:
    world = World(flow_settings(topic_deletes=True))
    for topic in ("x", "y"):
        put_topic(world.source, topic)
    put_topic(world.target, "a.y")
    world.settle()
    del world.source.topics["y"]
    put_topic(world.target, "a.foreign")
    world.walk()
    assert world.target.writes == 0
    put_topic(world.source, "y")
    world.settle()
    del world.source.topics["x"]
    world.walk()
    assert "a.x" not in world.target.topics
    assert world.ledger().owned(Kind.TOPIC) == set()
    assert {"a.y", "a.foreign"} <= world.target.topics.keys()


def test_topics_are_not_deleted_unless_asked_for(world: World) -> None:
    del world.source.topics["x"]
    for _ in range(3):
        world.walk(after=INTERVAL)
    assert "a.x" in world.target.topics


def test_source_that_shows_nothing_deletes_nothing() -> None:
    world = World(flow_settings(topic_deletes=True))
    put_topic(world.source, "x")
    world.settle()
    world.source.topics.clear()
    for _ in range(3):
        world.walk(after=INTERVAL)
    assert "a.x" in world.target.topics


def test_too_many_deletions_stop_the_flow_and_delete_nothing() -> None:
    world = World(flow_settings(topic_deletes=True, limits=Limits(30, 3)))
    for topic in ("x", "y", "z"):
        put_topic(world.source, topic)
    world.settle()
    del world.source.topics["x"]
    with pytest.raises(UnsafePlan, match="1 of 3"):
        world.walk()
    assert "a.x" in world.target.topics


def test_every_applied_change_is_an_event_with_the_digest_of_its_plan(world: World) -> None:
    set_config(world.source, "x", "retention.ms", "2")
    report = world.walk()
    event = world.events()[-1]
    assert (event.key, event.before, event.after) == (("a.x", "retention.ms"), '"1"', '"2"')
    assert event.digest == report.plan.digest
    assert report.plan.changes == (config_change("a.x", "retention.ms", "1", "2"),)


def test_missing_internal_topics_of_mm2_are_named(world: World) -> None:
    assert world.walk().not_there == (
        "a.heartbeats on b",
        "a.checkpoints.internal on b",
        "mm2-offset-syncs.b.internal on a",
    )
    put_topic(world.target, "a.checkpoints.internal")
    assert "a.checkpoints.internal on b" not in world.walk().not_there


def test_error_of_the_ledger_stops_the_walk_before_anything_is_written() -> None:
    world = World()
    put_topic(world.source, "x")
    world.target.reachable = False
    with pytest.raises(LockstepError):
        world.walk()
    world.target.reachable = True
    assert world.target.writes == 0


NAMES = st.sampled_from(["x", "y", "z"])
KEYS = st.sampled_from(["retention.ms", "retention.bytes", "cleanup.policy"])
VALUES = st.none() | st.sampled_from(["1", "2"])
ACTIONS = st.lists(
    st.tuples(st.just("source"), NAMES, KEYS, VALUES)
    | st.tuples(st.just("target"), NAMES, KEYS, VALUES)
    | st.tuples(st.sampled_from(["drop", "restart", "silent", "wait"]), NAMES, KEYS, VALUES),
    max_size=12,
)


@given(ACTIONS, st.sampled_from([0, 2, 1000]))
@settings(max_examples=60, deadline=None)
def test_whatever_happens_the_target_is_in_step_after_a_full_comparison_and_then_quiet(
    actions: list[tuple[str, str, str, str | None]], rate: int
) -> None:
    world = World(flow_settings(pace=Pace(observe_rate=rate)))
    for topic in ("x", "y", "z"):
        put_topic(world.source, topic)
    world.settle()
    for action, topic, name, value in actions:
        happen(world, action, topic, name, value)
    world.walk(after=INTERVAL)
    world.settle()
    for topic in ("x", "y", "z"):
        assert overrides_of(world.target, f"a.{topic}") == overrides_of(world.source, topic)
    assert world.walk(after=INTERVAL).outcomes == ()
    assert world.target.writes == 0


def happen(world: World, action: str, topic: str, name: str, value: str | None) -> None:
    """One thing that may happen between two walks, then a walk."""
    if action == "source":
        set_config(world.source, topic, name, value)
    elif action == "target" and f"a.{topic}" in world.target.topics:
        set_config(world.target, f"a.{topic}", name, value)
    elif action == "drop":
        world.target.topics.pop(f"a.{topic}", None)
    elif action == "restart":
        world.restart()
    elif action == "silent":
        world.target.reachable = False
        with pytest.raises(ClusterUnreachable):
            world.walk()
        world.target.reachable = True
    world.walk(after=INTERVAL if action == "wait" else 1.0)


def test_a_kind_with_an_interval_of_its_own_rests_in_between() -> None:
    world = World(flow_settings(pace=Pace(observe_rate=0, intervals={Kind.TOPIC_CONFIG: 30.0})))
    put_topic(world.source, "x", retention_ms="1")
    world.settle()
    world.clock.now += 31
    world.walk()
    set_config(world.source, "x", "retention.ms", "2")
    world.clock.now += 28
    world.walk()
    assert overrides_of(world.target, "a.x") == {"retention.ms": "1"}
    world.clock.now += 2
    world.walk()
    assert overrides_of(world.target, "a.x") == {"retention.ms": "2"}


def test_a_request_for_a_look_does_not_wait_for_the_interval() -> None:
    world = World(flow_settings(pace=Pace(observe_rate=0, intervals={Kind.TOPIC_CONFIG: 3000.0})))
    put_topic(world.source, "x", retention_ms="1")
    world.settle()
    set_config(world.source, "x", "retention.ms", "2")
    world.walk("x")
    assert overrides_of(world.target, "a.x") == {"retention.ms": "2"}
