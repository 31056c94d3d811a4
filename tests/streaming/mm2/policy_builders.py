"""Replication policies as flows of tests have them."""

from __future__ import annotations

from streaming.mm2.replication_policy import BaseReplicationPolicy, DefaultReplicationPolicy, IdentityReplicationPolicy


def default(separator: str | None = None, **others: str) -> DefaultReplicationPolicy:
    policy = DefaultReplicationPolicy()
    policy.configure(({} if separator is None else {"replication.policy.separator": separator}) | others)
    return policy


def identity(alias: str | None = None) -> IdentityReplicationPolicy:
    policy = IdentityReplicationPolicy()
    policy.configure({} if alias is None else {"source.cluster.alias": alias})
    return policy


class Loops(BaseReplicationPolicy):
    """A broken policy of a user's: orders comes from returns, and returns from orders."""

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return topic

    def topic_source(self, topic: str) -> str | None:
        return "elsewhere"

    def upstream_topic(self, topic: str) -> str | None:
        return {"orders": "returns", "returns": "orders"}.get(topic)
