"""What a flow in memory is made of: a cluster's ports, a clock moved by hand, and a provider of passwords."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sinks.every_kind.listing import Freshness, Listed, TopicListing
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.cluster import Cluster, Reader
from sinks.kafka.ports.cluster_ports import ClusterPorts
from sinks.kinds.shared_listings import FlowListing, SharedListings, list_both
from sinks.plugins.credential_provider import Credential
from tests.memory.memory_acls import MemoryAcls, PlainAclWatch
from tests.memory.memory_cluster import PlainWatch
from tests.memory.memory_groups import MemoryGroups, PlainGroupWatch
from tests.memory.memory_levels import MemoryLevels
from tests.memory.memory_records import MemoryRecords
from tests.memory.memory_transactions import MemoryTransactions
from tests.memory.memory_users import MemoryUsers


class Passwords:
    """A provider of the passwords that a test gives it: by user, the password and its version."""

    def __init__(self) -> None:
        self.known: dict[str, tuple[str, str]] = {}

    def credential(self, user: str) -> Credential | None:
        return Credential(user, *self.known[user]) if user in self.known else None

    def version(self, user: str) -> str | None:
        return self.known[user][1] if user in self.known else None

    def close(self) -> None:
        """Nothing is open."""


class Clock:
    """A monotonic clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True)
class PlainListing:
    """Lists both clusters anew in each pass."""

    settings: FlowSettings
    source: Reader
    target: Reader

    def list_topics(self, freshness: Freshness = Freshness.ALL_NOW) -> Listed:
        """Whatever is asked for."""
        return list_both(self.settings, self.source, self.target)


def lister(settings: FlowSettings, source: Reader, target: Reader, shared: SharedListings | None) -> TopicListing:
    """Lists both clusters: in each pass, or as a running job does where its listings are `shared`."""
    if shared is None:
        return PlainListing(settings, source, target)
    return FlowListing(settings, source, target, shared, target.alias)


def memory_ports(
    cluster: Cluster,
    acls: MemoryAcls,
    users: MemoryUsers,
    groups: MemoryGroups,
    others: Mapping[str, Mapping[str, Any]] | None = None,
    levels: MemoryLevels | None = None,
    records: MemoryRecords | None = None,
) -> ClusterPorts:
    """A cluster in memory with plain watches; `others`: further ports by name and alias."""
    return ClusterPorts(
        cluster=cluster,
        acls=acls,
        users=users,
        groups=groups,
        config_watch=lambda: PlainWatch(cluster),
        acl_watch=lambda: PlainAclWatch(acls),
        group_watch=lambda: PlainGroupWatch(groups),
        levels=levels or MemoryLevels(cluster.alias),
        transactions=MemoryTransactions(MemoryRecords(cluster.alias)),
        records=lambda isolation: records or MemoryRecords(cluster.alias),
        others={name: by_alias[cluster.alias] for name, by_alias in (others or {}).items()},
    )
