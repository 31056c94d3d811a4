"""Policies that name remote and internal topics (KIP-690): for `replication.policy.class`.

A policy of yours needs the methods of ReplicationPolicy; BaseReplicationPolicy has most of them.
"""

from __future__ import annotations

from streaming.mm2.replication_policy import (
    BaseReplicationPolicy,
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    ReplicationPolicy,
)

__all__ = ["BaseReplicationPolicy", "DefaultReplicationPolicy", "IdentityReplicationPolicy", "ReplicationPolicy"]
