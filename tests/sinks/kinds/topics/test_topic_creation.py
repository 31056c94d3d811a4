"""A topic whose creation is refused with its configs: what it gets, and what the audit and the outcomes say of it."""

from __future__ import annotations

import orjson
import pytest

from sinks.faults import RightsMissing
from sinks.kafka.ports.cluster import Alterations, Faults, TopicSpec
from sinks.model.changes import Kind
from streaming.mm2.replication_policy import IdentityReplicationPolicy
from tests.memory.memory_cluster import MemoryCluster
from tests.sinks.builders import ON_BY_DEFAULT, World, flow_settings, overrides_of, put_topic
from tests.sinks.kinds.acls.acl_builders import acl

INTERNAL_AND_PLAIN = ("connect-status-internal", "orders")
WITHOUT_CONFIGS = [kind for kind in ON_BY_DEFAULT if kind is not Kind.TOPIC_CONFIG]


def refusing_world(*, configs_synced: bool = True) -> World:
    """x on the source has two configs. The target refuses one, `retention.ms`."""
    settings = flow_settings() if configs_synced else flow_settings(enabled=WITHOUT_CONFIGS)
    world = World(settings)
    world.target.policy = lambda topic, name, value: "30 days at most" if name == "retention.ms" else None
    put_topic(world.source, "x", retention_ms="1", retention_bytes="2")
    return world


def test_copy_of_a_topic_that_ends_in_internal_is_kept_in_step_once_mm2_has_made_it() -> None:
    """MM2 of Kafka 3 never makes it, and nothing tells beforehand which MM2 runs."""
    world = World()
    put_topic(world.source, "own-internal", retention_ms="1")
    world.source.topics["own-internal"].partitions = 3
    assert world.run_pass().outcomes == ()
    assert "a.own-internal" not in world.target.topics
    put_topic(world.target, "a.own-internal")
    world.run_pass()
    assert overrides_of(world.target, "a.own-internal") == {"retention.ms": "1"}
    assert world.target.topics["a.own-internal"].partitions == 3
    assert world.run_pass(after=60.0).warnings == ()


def test_topic_of_the_targets_own_that_ends_in_internal_is_left_alone_where_names_prove_nothing() -> None:
    """MM2 of Kafka 3 copies nothing into it; MM2 of Kafka 4 keeps it in step by itself."""
    policy = {"replication.policy.class": "identity", "source.cluster.alias": "a"}
    world = World(flow_settings(policy, policy=IdentityReplicationPolicy()))
    world.source_acls.bindings = {acl(f"ALLOW READ User:app TOPIC {name}") for name in INTERNAL_AND_PLAIN}
    for name in INTERNAL_AND_PLAIN:
        put_topic(world.source, name, retention_ms="1")
        world.source.topics[name].partitions = 3
        put_topic(world.target, name, cleanup_policy="compact")
    for _ in range(3):
        world.run_pass(after=61.0, everything=True)
    assert overrides_of(world.target, "connect-status-internal") == {"cleanup.policy": "compact"}
    assert world.target.topics["connect-status-internal"].partitions == 1
    assert overrides_of(world.target, "orders") == {"retention.ms": "1"}
    assert world.target_acls.bindings == {acl("ALLOW READ User:app TOPIC orders")}


@pytest.mark.parametrize("configs_synced", [True, False])
def test_every_config_that_is_not_refused_arrives_with_the_topic(configs_synced: bool) -> None:
    world = refusing_world(configs_synced=configs_synced)
    world.run_pass()
    assert overrides_of(world.target, "a.x") == {"retention.bytes": "2"}
    assert world.ledger().owned(Kind.TOPIC) == {("a.x",)}


@pytest.mark.parametrize("configs_synced", [True, False])
def test_audit_and_outcomes_show_the_configs_that_the_topic_has_and_those_it_was_refused(configs_synced: bool) -> None:
    world = refusing_world(configs_synced=configs_synced)
    made, refused = world.run_pass().outcomes
    assert isinstance(made.change.after, TopicSpec)
    assert (made.error, dict(made.change.after.configs)) == (None, {"retention.bytes": "2"})
    assert (refused.change.key, refused.result) == (("a.x", "retention.ms"), "failed")
    assert str(refused.error) == "POLICY_VIOLATION: 30 days at most"
    events = {event.key: event for event in world.events()}
    assert orjson.loads(events["a.x",].after or "")["configs"] == {"retention.bytes": "2"}
    assert events["a.x", "retention.ms"].result == "failed"


def test_refused_config_of_a_kind_that_is_not_synced_is_not_tried_again() -> None:
    world = refusing_world(configs_synced=False)
    world.run_pass()
    writes = world.target.writes
    assert [world.run_pass(after=60.0).outcomes for _ in range(3)] == [()] * 3
    assert world.target.writes == writes


def test_topic_that_another_hand_made_at_the_same_moment_is_audited_without_configs() -> None:
    class LateListing(MemoryCluster):
        def list_topics(self) -> dict[str, int]:
            return {name: count for name, count in super().list_topics().items() if name != "a.x"}

    world = World()
    put_topic(world.source, "x", retention_ms="7")
    put_topic(world.target, "a.x")
    world.target.__class__ = LateListing
    world.run_pass()
    (event,) = (event for event in world.events() if event.key == ("a.x",))
    assert orjson.loads(event.after or "")["configs"] == {}


def test_topic_is_ours_even_where_none_of_its_configs_may_be_altered() -> None:
    class MayNotAlter(MemoryCluster):
        def alter_topic_configs(self, alterations: Alterations) -> Faults:
            raise RightsMissing("cluster b: IncrementalAlterConfigs: denied")

    world = refusing_world()
    world.target.__class__ = MayNotAlter
    made, *refused = world.run_pass().outcomes
    assert made.error is None
    assert {one.change.key[1] for one in refused} == {"retention.ms", "retention.bytes"}
    assert world.ledger().owned(Kind.TOPIC) == {("a.x",)}
