"""ACLs in a line: `acl("ALLOW READ User:alice TOPIC orders")`, a name that ends in `…` being a prefix."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sinks.kafka.ports.acl_binding import LITERAL, PREFIXED, AclBinding
from sinks.kinds.acls.patterns import SourceTopics
from sinks.kinds.acls.rules import AclRules, DesiredAcls, desired_acls
from streaming.flow import Flow
from streaming.mm2.replication_filters import DefaultTopicFilter
from streaming.mm2.replication_policy import (
    BaseReplicationPolicy,
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    ReplicationPolicy,
    replicates,
)
from tests.sinks.builders import FLOW

OURS = ("lockstep-ledger.a.internal", "lockstep-audit.a.internal")
MM2S = ("heartbeats", "a.checkpoints.internal", "mm2-offset-syncs.b.internal")
MM2, FULL = AclRules(), AclRules(full=True)


def acl(text: str, host: str = "*") -> AclBinding:
    """Permission, operation, principal, type and name of the resource."""
    permission, operation, principal, resource_type, name = text.split(" ")
    pattern = PREFIXED if name.endswith("…") else LITERAL
    return AclBinding(resource_type, name.removesuffix("…"), pattern, principal, host, operation, permission)


def source_topics(
    *names: str,
    policy: ReplicationPolicy | None = None,
    properties: Mapping[str, str] | None = None,
    flow: Flow = FLOW,
    target: Collection[str] = (),
) -> SourceTopics:
    """Topics of the source; MM2's topic filter gets `properties`."""
    chosen = policy or DefaultReplicationPolicy()
    topic_filter = DefaultTopicFilter()
    topic_filter.configure(properties or {})

    def replicated(topic: str) -> bool:
        return replicates(chosen, topic_filter, topic, flow.target, heartbeats_replication=True)

    remote = {name: chosen.format_remote_topic(flow.source, name) for name in names if replicated(name)}
    mm2s = (*MM2S, chosen.format_remote_topic(flow.source, "heartbeats"))
    return SourceTopics(flow, chosen, replicated, remote, names, target, OURS, mm2s)


def lines(acls: Collection[AclBinding]) -> list[str]:
    """What `acl` would be called with, sorted."""
    return sorted(
        f"{one.permission} {one.operation} {one.principal} {one.resource_type} "
        f"{one.resource_name}{'…' * (one.pattern_type == PREFIXED)}"
        for one in acls
    )


def identity() -> IdentityReplicationPolicy:
    """The policy that keeps names, as the flow a->b has it."""
    policy = IdentityReplicationPolicy()
    policy.configure({"source.cluster.alias": "a"})
    return policy


def synced(topics: SourceTopics, *texts: str, rules: AclRules = FULL) -> list[str]:
    """What the target should have of these."""
    return lines(desired_acls(map(acl, texts), rules, topics).wanted)


def one(topics: SourceTopics, text: str, rules: AclRules = FULL) -> DesiredAcls:
    """What becomes of a single ACL."""
    return desired_acls([acl(text)], rules, topics)


class Behind(BaseReplicationPolicy):
    """Puts the source's alias behind the name."""

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return f"{topic}.{source_alias}"

    def topic_source(self, topic: str) -> str | None:
        return topic.rpartition(".")[2] if "." in topic else None

    def upstream_topic(self, topic: str) -> str | None:
        return topic.rpartition(".")[0] or None
