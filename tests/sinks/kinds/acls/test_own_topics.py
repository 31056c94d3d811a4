"""What the source's ACLs may not open on the target: Kafka's own topics and Lockstep's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sinks.flow_settings import AclRules
from sinks.kafka.ports.acl_binding import AclBinding
from sinks.kinds.acls.controller import REST
from sinks.kinds.acls.own_topics import own_topic
from sinks.kinds.acls.rules import desired_acls
from sinks.ledger.ledger import Entry
from sinks.model.changes import Kind, Op
from streaming.mm2.replication_policy import DefaultReplicationPolicy
from tests.memory.memory_acls import MemoryAcls
from tests.sinks.builders import World, flow_settings, overrides_of, put_topic
from tests.sinks.kinds.acls.acl_builders import FULL, MM2, acl, identity, one, source_topics, synced

PLAIN = acl("ALLOW READ User:al TOPIC orders")
EVERYTHING = acl("ALLOW ALL User:al TOPIC *")
OURS = ("chosen-ledger",)


@pytest.mark.parametrize(
    ("name", "pattern_type", "covered"),
    [
        ("*", "LITERAL", "__cluster_metadata"),
        ("__con", "PREFIXED", "__consumer_offsets"),
        ("__transaction_state", "LITERAL", "__transaction_state"),
        ("chosen", "PREFIXED", "chosen-ledger"),
        ("chosen-ledger", "LITERAL", "chosen-ledger"),
        ("lock", "PREFIXED", "lockstep-ledger"),
        ("lockstep-ledger.z", "PREFIXED", "lockstep-ledger"),
        ("lockstep-audit.z.internal", "LITERAL", "lockstep-audit.z.internal"),
        ("a.", "PREFIXED", None),
        ("__con", "LITERAL", None),
        ("chosen-ledger2", "PREFIXED", None),
        ("locks", "LITERAL", None),
    ],
)
def test_pattern_covers_own_topics_whether_they_exist_or_not(name: str, pattern_type: str, covered: str | None) -> None:
    there = replace(acl("ALLOW WRITE User:al TOPIC x"), resource_name=name, pattern_type=pattern_type)
    assert own_topic(there, OURS) == covered


@pytest.mark.parametrize("rules", [MM2, FULL])
def test_wildcard_that_would_stay_one_is_refused_with_its_reason(rules: AclRules) -> None:
    desired = one(source_topics("orders", policy=identity()), "ALLOW READ User:al TOPIC *", rules)
    assert not desired.wanted
    (refusal,) = desired.refusals(set())
    assert (refusal.kind, refusal.op, refusal.key) == (Kind.ACL, Op.CREATE, acl("ALLOW READ User:al TOPIC *").key)
    assert "LITERAL * covers __cluster_metadata, which is Kafka's, MM2's or Lockstep's own" in refusal.reason


@pytest.mark.parametrize("operation", ["ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "ALTER_CONFIGS"])
@pytest.mark.parametrize("name", ["l…", "_…", "*"])
def test_operation_that_reads_or_changes_own_topics_is_withheld(operation: str, name: str) -> None:
    topics = source_topics("orders", "logs", policy=identity(), properties={"topics.exclude": "none"})
    assert synced(topics, f"ALLOW {operation} User:al TOPIC {name}") == []


@pytest.mark.parametrize("text", ["ALLOW DESCRIBE", "ALLOW DESCRIBE_CONFIGS", "DENY READ", "DENY ALL"])
def test_seeing_own_topics_and_denying_them_to_somebody_do_no_harm(text: str) -> None:
    topics = source_topics("orders", policy=identity())
    assert synced(topics, f"{text} User:al TOPIC *") == [f"{text} User:al TOPIC *"]


def test_front_that_covers_own_topics_is_no_way_round() -> None:
    policy = DefaultReplicationPolicy()
    policy.configure({"replication.policy.separator": "-ledger."})
    topics = replace(source_topics("orders", policy=policy), ours=("a-ledger.internal",))
    assert synced(topics, "ALLOW READ User:al TOPIC *") == []
    assert synced(topics, "ALLOW READ User:al TOPIC ord…") == ["ALLOW READ User:al TOPIC a-ledger.ord…"]


def test_groups_and_the_user_of_a_withheld_acl_go_along() -> None:
    topics = source_topics("orders", policy=identity())
    acls = [acl("ALLOW READ User:al TOPIC *"), acl("ALLOW READ User:al GROUP g")]
    desired = desired_acls(acls, FULL, topics)
    assert desired.wanted == {acls[1]}
    assert desired.principals == {"User:al": "User:al"}


@pytest.mark.parametrize(
    ("resource", "wanted"),
    [
        ("GROUP a-mm2", False),
        ("GROUP a-mm2…", False),
        ("TRANSACTIONAL_ID connect-cluster-a-mm2", False),
        ("TRANSACTIONAL_ID a-mm2-MirrorSourceConnector-0", False),
        ("GROUP a-mm2s", True),
        ("GROUP pay", True),
        ("GROUP *", True),
    ],
)
def test_the_groups_of_mm2s_workers_are_not_granted_by_the_source(resource: str, wanted: bool) -> None:
    read, operation = "ALLOW READ User:al TOPIC orders", "WRITE" if resource.startswith("TRANS") else "READ"
    found = synced(source_topics("orders"), read, f"ALLOW {operation} User:al {resource}")
    assert (len(found) == 2) is wanted
    assert len(synced(source_topics("orders"), read, f"ALLOW DESCRIBE User:al {resource}")) == 2


def identity_world(*target_acls: str) -> World:
    built = World(
        flow_settings(policy=identity()),
        source_acls=MemoryAcls("a", {PLAIN, EVERYTHING}),
        target_acls=MemoryAcls("b", set(map(acl, target_acls))),
    )
    put_topic(built.source, "orders")
    return built


def test_withheld_acl_is_drift_and_the_others_are_written() -> None:
    world = identity_world()
    for _ in range(3):
        report = world.run_pass(after=REST)
        assert [refusal.key for refusal in report.plan.refused] == [EVERYTHING.key]
    assert world.target_acls.bindings == {PLAIN}


def test_what_somebody_granted_by_hand_on_the_target_is_drift_no_more() -> None:
    world = identity_world("ALLOW ALL User:al TOPIC *")
    world.settle()
    assert not world.run_pass(after=REST).plan.refused
    assert world.target_acls.bindings == {PLAIN, EVERYTHING}


def test_acl_of_an_earlier_version_stays_until_the_source_revokes_it() -> None:
    world = identity_world("ALLOW ALL User:al TOPIC *")
    world.settle()
    world.ledger().put({(Entry.OWNED, (Kind.ACL.value, *EVERYTHING.key)): ""})
    world.run_pass(after=60.0)
    assert EVERYTHING in world.target_acls.bindings
    world.source_acls.bindings.remove(EVERYTHING)
    world.run_until_deleted(after=60.0)
    assert world.target_acls.bindings == {PLAIN}


def test_note_says_what_else_a_prefix_covers_on_the_target() -> None:
    topics = source_topics("orders", target=("a.orders", "a.x1", "a.x2", "a.x3", "a.x4", "b"))
    (note,) = one(topics, "ALLOW READ User:al TOPIC *").notes
    assert "PREFIXED a. also covers 4 topics that MM2 did not replicate from a: a.x1, a.x2, a.x3 and 1 more" in note


def test_topic_named_like_the_ledger_of_another_flow_is_not_replicated() -> None:
    settings = flow_settings(policy=identity())
    settings = replace(settings, internal=replace(settings.internal, of_other_flows=("acme-state-c",)))
    world = World(settings)
    put_topic(world.source, "acme-state-c", 3, retention_ms="1")
    put_topic(world.target, "acme-state-c")
    report = world.run_pass()
    assert [refusal.key for refusal in report.plan.refused] == [("acme-state-c",)]
    assert (world.target.topics["acme-state-c"].partitions, overrides_of(world.target, "acme-state-c")) == (1, {})


@pytest.mark.parametrize("operation", ["ALL", "WRITE", "CREATE", "DELETE", "ALTER", "ALTER_CONFIGS"])
@pytest.mark.parametrize("name", ["checkpoints.internal", "c…", "*"])
def test_operation_that_changes_mm2s_checkpoints_is_withheld(operation: str, name: str) -> None:
    assert synced(source_topics("orders", "checkpoints.internal"), f"ALLOW {operation} User:al TOPIC {name}") == []


def test_checkpoints_may_be_read_as_mm2s_own_client_reads_them() -> None:
    topics = source_topics("orders")
    assert synced(topics, "ALLOW READ User:al TOPIC *") == ["ALLOW READ User:al TOPIC a.…"]


def test_mm2s_rules_give_no_right_to_change_its_checkpoints_either() -> None:
    topics = source_topics("orders", "checkpoints.internal")
    desired = one(topics, "ALLOW DELETE User:al TOPIC checkpoints.internal", MM2)
    assert not desired.wanted
    (refusal,) = desired.refusals(set())
    assert "LITERAL a.checkpoints.internal covers a.checkpoints.internal" in refusal.reason


@pytest.mark.parametrize("text", ["WRITE User:al TOPIC heartbeats", "DELETE User:al TOPIC heartbeats"])
@pytest.mark.parametrize("rules", [MM2, FULL])
def test_source_s_clients_cannot_write_the_copied_heartbeats_that_tell_whether_mm2_copies(
    text: str, rules: AclRules
) -> None:
    assert from_heartbeats(f"ALLOW {text}", rules) == set()


@pytest.mark.parametrize("name", ["heartbeats", "heart…"])
def test_right_to_all_gives_no_write_on_the_copied_heartbeats(name: str) -> None:
    assert from_heartbeats(f"ALLOW ALL User:al TOPIC {name}", FULL) == set()


def test_copied_heartbeats_may_be_read() -> None:
    reads = acl("ALLOW READ User:al TOPIC a.heartbeats")
    assert from_heartbeats("ALLOW READ User:al TOPIC heartbeats", FULL) == {reads}


def from_heartbeats(text: str, rules: AclRules) -> set[AclBinding]:
    """What the target has of an ACL of a source that has heartbeats."""
    world = World(flow_settings(acls=rules), source_acls=MemoryAcls("a", {acl(text)}))
    put_topic(world.source, "heartbeats")
    world.settle()
    return set(world.target_acls.bindings)


def test_mm2s_topics_of_other_flows_are_withheld_under_any_name() -> None:
    topics = replace(source_topics("orders", policy=identity()), mm2s=("c_checkpoints_internal",))
    assert synced(topics, "ALLOW WRITE User:al TOPIC c_checkpoints_internal") == []


def test_topic_named_like_mm2s_checkpoints_is_refused_and_they_are_left_as_they_are() -> None:
    world = World(flow_settings())
    put_topic(world.source, "checkpoints.internal", 5, retention_ms="1000")
    put_topic(world.source, "orders")
    put_topic(world.target, "a.checkpoints.internal", cleanup_policy="compact")
    report = world.run_pass()
    assert [refusal.key for refusal in report.plan.refused] == [("a.checkpoints.internal",)]
    assert "MM2's internal topics on the target" in report.plan.refused[0].reason
    there = world.target.topics["a.checkpoints.internal"]
    assert (there.partitions, overrides_of(world.target, "a.checkpoints.internal")) == (
        1,
        {"cleanup.policy": "compact"},
    )
    assert "a.orders" in world.target.topics
