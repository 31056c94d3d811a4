"""What a query can read of a cluster whose ACLs are not all there."""

from __future__ import annotations

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from app.job.query_supervisor import probe_source
from app.local.broker import RESTRICTED
from app.local.waiting import wait_for
from streaming.mm2.internal_topic_names import TopicRole
from streaming.mm2.records import RecordKind
from streaming.query_plan import ClusterSource
from tests.conftest import Clusters

SOON = 180.0


def grant(admin: AdminClient, topic: str, operation: AclOperation) -> None:
    binding = AclBinding(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        f"User:{RESTRICTED[0]}",
        "*",
        operation,
        AclPermissionType.ALLOW,
    )
    admin.create_acls([binding])[binding].result()


def test_a_topic_that_may_not_be_read_is_left_out_until_the_right_is_granted(clusters: Clusters, unique: str) -> None:
    admin = AdminClient({"bootstrap.servers": clusters.a.bootstrap})
    denied, free, missing = (f"{unique}-{word}" for word in ("denied", "free", "missing"))
    for topic in (denied, free):
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()
    roles = dict.fromkeys((denied, free, missing), TopicRole(RecordKind.HEARTBEAT))
    source = ClusterSource("a", clusters.a.client_properties(RESTRICTED), roles)
    grant(admin, denied, AclOperation.DESCRIBE)

    def readable() -> set[str]:
        found, _ = probe_source(source)
        return set(found.topics) if found else set()

    wait_for(lambda: readable() == {free, missing}, SOON, f"{denied} to be left out")
    _, reason = probe_source(source)
    assert reason == f"READ is missing on {denied} of the cluster a: grant it"
    grant(admin, denied, AclOperation.READ)
    wait_for(lambda: probe_source(source) == (source, None), SOON, f"{denied} to be read again")
