"""What the demo changes on the source, and how it sees that the target has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.kafka.ports.acl_binding import AclBinding
from sinks.kafka.ports.cluster import TopicSpec
from sinks.kafka.ports.users import Upsertion

MM2_INTERVAL = "600 s"
"""MM2's default of `sync.topic.configs.interval.seconds`, `refresh.topics.…` and `sync.topic.acls.…`."""

NEVER_SEEN = "never"
"""MM2 copies neither ALLOW WRITE, nor prefixed ACLs, nor those of groups, nor users, and revokes nothing."""

DEMO_TOPICS: Mapping[str, TopicSpec] = {
    "orders": TopicSpec(3, 1, (("retention.ms", "604800000"),)),
    "payments": TopicSpec(3, 1, (("max.message.bytes", "2000000"),)),
    "customers": TopicSpec(1, 1, (("cleanup.policy", "compact"),)),
}


@dataclass(frozen=True)
class DemoStep:
    """One change of the source, and how to see that the target has it."""

    what: str
    change: Callable[[KafkaCluster], object]
    arrived: Callable[[KafkaCluster], bool]
    mm2: str = MM2_INTERVAL


def _acl(text: str) -> AclBinding:
    """`ALLOW WRITE User:shop TOPIC orders LITERAL`."""
    permission, operation, principal, resource_type, name, pattern = text.split()
    return AclBinding(resource_type, name, pattern, principal, "*", operation, permission)


def _grant(text: str) -> Callable[[KafkaCluster], object]:
    return lambda cluster: cluster.acls.create([_acl(text)])


def _allows(text: str) -> Callable[[KafkaCluster], bool]:
    return lambda cluster: _acl(text) in cluster.acls.describe()


def _set(topic: str, name: str, value: str | None) -> Callable[[KafkaCluster], object]:
    return lambda cluster: cluster.alter_topic_configs({topic: {name: value}})


def override(cluster: KafkaCluster, topic: str, name: str) -> str | None:
    entry = cluster.describe_topic_configs([topic]).items.get(topic, {}).get(name)
    return entry.value if entry is not None and entry.is_override else None


def _has(topic: str, name: str, value: str | None) -> Callable[[KafkaCluster], bool]:
    return lambda cluster: topic in cluster.list_topics() and override(cluster, topic, name) == value


USER, MECHANISM, PASSWORD = "shop", "SCRAM-SHA-512", "the demo's own secret"
"""The user that logs in on the target in the end; the password is on the source, and in a folder that the job reads."""

STEPS = (
    DemoStep("config set", _set("payments", "retention.ms", "3600000"), _has("a.payments", "retention.ms", "3600000")),
    DemoStep("config changed", _set("orders", "retention.ms", "7200000"), _has("a.orders", "retention.ms", "7200000")),
    DemoStep("config removed", _set("payments", "retention.ms", None), _has("a.payments", "retention.ms", None)),
    DemoStep(
        "new topic, with a config",
        lambda cluster: cluster.create_topics({"refunds": TopicSpec(2, 1, (("retention.ms", "1800000"),))}),
        _has("a.refunds", "retention.ms", "1800000"),
    ),
    DemoStep(
        "partitions added",
        lambda cluster: cluster.create_partitions({"orders": 6}),
        lambda cluster: cluster.list_topics().get("a.orders") == 6,
    ),
    DemoStep(
        "ALLOW WRITE",
        _grant("ALLOW WRITE User:shop TOPIC orders LITERAL"),
        _allows("ALLOW WRITE User:shop TOPIC a.orders LITERAL"),
        NEVER_SEEN,
    ),
    DemoStep(
        "SCRAM user",
        lambda cluster: cluster.users.upsert([Upsertion(USER, MECHANISM, 8192, PASSWORD)]),
        lambda cluster: cluster.users.describe([USER]) == {USER: {MECHANISM: 8192}},
        NEVER_SEEN,
    ),
    DemoStep(
        "ACL of a prefix",
        _grant("ALLOW READ User:reports TOPIC pay PREFIXED"),
        _allows("ALLOW READ User:reports TOPIC a.pay PREFIXED"),
        NEVER_SEEN,
    ),
    DemoStep(
        "ACL of a group",
        _grant("ALLOW READ User:reports GROUP nightly LITERAL"),
        _allows("ALLOW READ User:reports GROUP nightly LITERAL"),
        NEVER_SEEN,
    ),
    DemoStep(
        "ACL revoked",
        lambda cluster: cluster.acls.delete([_acl("ALLOW READ User:reports TOPIC pay PREFIXED")]),
        lambda cluster: not _allows("ALLOW READ User:reports TOPIC a.pay PREFIXED")(cluster),
        NEVER_SEEN,
    ),
)
