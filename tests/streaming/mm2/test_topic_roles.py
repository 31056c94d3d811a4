"""Which topics a flow is read from."""

from __future__ import annotations

import pytest

from streaming.flow import Flow
from streaming.mm2.internal_topic_names import TopicOn, TopicRole, internal_topics, roles_of_flow
from streaming.mm2.records import RecordKind
from streaming.mm2.replication_policy import DefaultReplicationPolicy, IdentityReplicationPolicy

AB = Flow("a", "b")


def roles(
    flow: Flow, location: str = "source", policy: DefaultReplicationPolicy | None = None
) -> dict[TopicOn, TopicRole]:
    policy = policy or DefaultReplicationPolicy()
    policy.configure({})
    return roles_of_flow(flow, policy, internal_topics(policy, flow, location))


def test_a_flow_is_read_from_its_target_and_its_offset_syncs_from_its_source() -> None:
    assert roles(AB) == {
        TopicOn("b", "a.heartbeats"): TopicRole(RecordKind.HEARTBEAT, AB),
        TopicOn("b", "heartbeats"): TopicRole(RecordKind.HEARTBEAT),
        TopicOn("b", "a.checkpoints.internal"): TopicRole(RecordKind.CHECKPOINT, AB),
        TopicOn("a", "mm2-offset-syncs.b.internal"): TopicRole(RecordKind.OFFSET_SYNC, AB),
    }


def test_offset_syncs_kept_at_the_target_are_read_there() -> None:
    found = roles(AB, "target")
    assert found[TopicOn("b", "mm2-offset-syncs.a.internal")] == TopicRole(RecordKind.OFFSET_SYNC, AB)
    assert {cluster for cluster, _ in found} == {"b"}


def test_heartbeats_carry_the_alias_even_where_the_identity_policy_renames_nothing() -> None:
    assert roles(AB, policy=IdentityReplicationPolicy())[TopicOn("b", "a.heartbeats")].flow == AB


def test_only_heartbeats_may_leave_the_flow_to_their_records() -> None:
    with pytest.raises(ValueError, match="a topic of checkpoints needs its flow"):
        TopicRole(RecordKind.CHECKPOINT)
