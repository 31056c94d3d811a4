"""Remote topics: which there should be, which are missing, and the few that may go."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sinks.flow_settings import Copier, FlowSettings
from sinks.kinds.desired_topics import desired_topics, internal_topic_warnings
from sinks.kinds.topics.rules import is_still_wanted, plan_topics
from sinks.model.changes import Change, Kind, Op
from sinks.model.plan import Refusal
from streaming.mm2.replication_policy import DefaultReplicationPolicy, IdentityReplicationPolicy
from tests.sinks.builders import config_change, flow_settings, topic_change

LONGEST = "x" * 247


@pytest.fixture
def defaults() -> FlowSettings:
    return flow_settings()


def test_replicated_topics_get_their_remote_name_and_partition_count(defaults: FlowSettings) -> None:
    desired = desired_topics({"orders": 3, "audit.log": 1}, defaults)
    assert desired.remote == {"orders": "a.orders", "audit.log": "a.audit.log"}
    assert desired.partitions == {"a.orders": 3, "a.audit.log": 1}
    assert desired.refused == ()


def test_identity_policy_keeps_names_and_renames_heartbeats_alone() -> None:
    settings = flow_settings(
        {"replication.policy.class": "identity", "source.cluster.alias": "a"}, policy=IdentityReplicationPolicy()
    )
    assert desired_topics({"orders": 1, "heartbeats": 1}, settings).remote == {
        "orders": "orders",
        "heartbeats": "a.heartbeats",
    }


@pytest.mark.parametrize("topic", ["__consumer_offsets", "mm2-offset-syncs.b.internal", "b.orders", "x.replica"])
def test_internal_excluded_and_cyclic_topics_are_not_replicated(defaults: FlowSettings, topic: str) -> None:
    desired = desired_topics({topic: 1}, defaults)
    assert desired.remote == {}
    assert desired.refused == ()


@pytest.mark.parametrize("topic", ["orders.internal", "orders-internal", "connect-configs-internal"])
def test_copy_of_a_topic_that_ends_in_internal_is_created_by_mm2_alone(topic: str, defaults: FlowSettings) -> None:
    """Kafka 3's `ReplicationPolicy.isInternalTopic` takes it for internal; Kafka 4 replicates it (KIP-1074)."""
    desired = desired_topics({topic: 1, "orders": 1, "internal": 1}, defaults)
    assert desired.remote.keys() == {topic, "orders", "internal"}
    assert desired.created_by_mm2 == {topic: f"a.{topic}"}


def test_copier_that_keeps_offsets_creates_no_topic_by_itself(defaults: FlowSettings) -> None:
    beside = replace(defaults, copier=Copier.OFFSET_PRESERVING, policy=IdentityReplicationPolicy())
    assert desired_topics({"orders-internal": 1}, beside).created_by_mm2 == {}


def test_heartbeats_are_replicated_whatever_the_filter_says() -> None:
    desired = desired_topics({"heartbeats": 1, "orders": 1}, flow_settings({"topics": "none"}))
    assert desired.remote == {"heartbeats": "a.heartbeats"}


def test_name_of_249_characters_is_made_and_of_250_refused_with_the_reason(defaults: FlowSettings) -> None:
    desired = desired_topics({LONGEST: 1, LONGEST + "x": 1, "orders": 1}, defaults)
    assert desired.remote == {LONGEST: f"a.{LONGEST}", "orders": "a.orders"}
    (refusal,) = desired.refused
    assert (refusal.kind, refusal.op, refusal.key) == (Kind.TOPIC, Op.CREATE, (f"a.{LONGEST}x",))
    assert "249" in refusal.reason


def test_topic_too_long_that_the_filter_excludes_is_nothing_to_refuse() -> None:
    assert desired_topics({"x" * 249: 1}, flow_settings({"topics": "orders"})).refused == ()


def test_missing_topic_is_created_with_partitions_configs_and_factor(defaults: FlowSettings) -> None:
    desired = desired_topics({"orders": 3}, defaults)
    (change,) = plan_topics(desired, {}, {"a.orders": (("retention.ms", "1"),)}, 2, {})
    assert change == topic_change("a.orders", None, 3)
    assert change.after is not None
    assert change.as_json()["after"] == {"partitions": 3, "replication_factor": 2, "configs": {"retention.ms": "1"}}


def test_missing_topic_whose_configs_could_not_be_seen_is_left_for_later(defaults: FlowSettings) -> None:
    assert plan_topics(desired_topics({"orders": 3}, defaults), {}, {}, 1, {}) == []


def test_topic_with_fewer_partitions_grows(defaults: FlowSettings) -> None:
    desired = desired_topics({"orders": 3}, defaults)
    assert plan_topics(desired, {"a.orders": 1}, {}, 1, {}) == [topic_change("a.orders", 1, 3)]


@pytest.mark.parametrize("existing", [3, 4, 100])
def test_topic_with_as_many_partitions_or_more_is_left_alone(defaults: FlowSettings, existing: int) -> None:
    assert plan_topics(desired_topics({"orders": 3}, defaults), {"a.orders": existing}, {}, 1, {}) == []


def test_deletion_that_was_confirmed_is_planned_while_the_topic_is_there(defaults: FlowSettings) -> None:
    target = {"a.orders": 1, "a.old": 2}
    assert plan_topics(desired_topics({}, defaults), target, {}, 1, {"a.old": "id-1"}) == [
        topic_change("a.old", 2, None)
    ]
    assert plan_topics(desired_topics({}, defaults), target, {}, 1, {"a.gone": "id-2"}) == []


def test_refusal_is_the_plans_own_value(defaults: FlowSettings) -> None:
    (refusal,) = desired_topics({LONGEST + "x": 1}, defaults).refused
    assert isinstance(refusal, Refusal)
    assert refusal.as_json()["key"] == {"topic": f"a.{LONGEST}x"}


def test_locksteps_own_topics_are_never_replicated() -> None:
    desired = desired_topics({"lockstep-ledger.a.internal": 1, "lockstep-audit_a_internal": 1, "x": 1}, flow_settings())
    assert desired.remote == {"x": "a.x"}


@pytest.mark.parametrize("separator", [".", "_", "-"])
def test_topic_that_mm2_would_copy_into_a_ledger_is_refused_and_warned_of(separator: str) -> None:
    name = separator.join(("lockstep-ledger", "a", "internal"))
    properties = {"topics.exclude": "none"}
    settings = flow_settings(properties, policy=IdentityReplicationPolicy())
    desired = desired_topics({name: 1, "lockstep-ledger-of-another": 1, "x": 1}, settings)
    assert desired.remote == {"x": "x"}
    assert [(one.key, "Lockstep's own topics" in one.reason) for one in desired.refused] == [((name,), True)]
    (warning,) = internal_topic_warnings([name, "lockstep-ledger-of-another", "x"], settings)
    assert warning.startswith(f"{name} of a becomes {name}")
    assert desired_topics({name: 1}, flow_settings(properties)).refused == ()
    excluded = flow_settings({"topics.exclude": name}, policy=IdentityReplicationPolicy())
    assert desired_topics({name: 1}, excluded).refused == ()


def test_a_topic_whose_partitions_cannot_be_seen_is_not_created() -> None:
    desired = desired_topics({"x": 0, "y": 1}, flow_settings())
    assert plan_topics(desired, {}, {"a.x": (), "a.y": ()}, 1, {}) == [topic_change("a.y", None, 1)]


class LowerCase(DefaultReplicationPolicy):
    """Remote topics in lower case."""

    def format_remote_topic(self, source_cluster_alias: str, topic: str) -> str:
        return super().format_remote_topic(source_cluster_alias, topic).lower()


def test_topics_that_would_be_one_on_the_target_are_left_alone_with_the_reason() -> None:
    desired = desired_topics({"Orders": 3, "orders": 1, "y": 1}, flow_settings(policy=LowerCase()))
    assert desired.remote == {"y": "a.y"}
    ((refused, reason),) = [(one.key, one.reason) for one in desired.refused]
    assert refused == ("a.orders",)
    assert "Orders and orders of the source" in reason
    # What is there of it stays.
    assert "a.orders" in desired.upstream


@pytest.mark.parametrize(
    ("change", "remote", "existing", "stays"),
    [
        (config_change("a.t", "retention.ms", None, "1"), ["a.t"], ["a.t"], True),
        (config_change("a.t", "retention.ms", "1", None), ["a.u"], ["a.t"], False),
        (topic_change("a.t", 1, None), [], ["a.t"], True),
        (topic_change("a.t", 1, None), [], [], False),
        (topic_change("a.t", None, 1), [], ["a.t"], False),
    ],
)
def test_what_was_refused_is_wanted_while_its_topic_is_replicated_or_a_deleted_one_is_there(
    change: Change, remote: list[str], existing: list[str], stays: bool
) -> None:
    assert is_still_wanted(remote, existing, change) is stays
