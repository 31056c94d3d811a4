"""One cluster of a flow, with every port that a kind may ask for. No client is imported here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from sinks.kafka.ports.acls import AclReader, Acls, AclWatch
from sinks.kafka.ports.cluster import Cluster, Reader
from sinks.kafka.ports.config_levels import ConfigLevels, LevelReader
from sinks.kafka.ports.groups import GroupReader, Groups
from sinks.kafka.ports.permitted import Permit, permitted
from sinks.kafka.ports.record_reader import RecordReader
from sinks.kafka.ports.transactions import TransactionReader, Transactions
from sinks.kafka.ports.users import UserReader, Users
from sinks.kafka.ports.watches import GroupWatch, MetadataEpochs, Watch, no_epochs

T = TypeVar("T")


def no_java() -> Any:
    """Raises NotImplementedError: for clusters that are not reached through Java."""
    raise NotImplementedError("this cluster has no Java client")


@dataclass(frozen=True)
class ClusterPorts:
    """All ports of one cluster. Watches and record readers are created by a call, because they remember what they saw.

    `records`: by MM2's `isolation.level`. `java`: Java's Admin client (`sinks.kafka.jvm`), for kinds with a port of
    their own. `others`: existing ports of such kinds, by name. `permit`: called by writing ports before each write.
    `epochs`: metadata epochs of the clients behind these ports.
    """

    cluster: Cluster
    acls: Acls
    users: Users
    groups: Groups
    config_watch: Callable[[], Watch]
    acl_watch: Callable[[], AclWatch]
    group_watch: Callable[[], GroupWatch]
    levels: ConfigLevels
    transactions: Transactions
    records: Callable[[str], RecordReader]
    java: Callable[[], Any] = no_java
    epochs: MetadataEpochs = no_epochs
    others: Mapping[str, Any] = field(default_factory=dict)
    permit: Permit | None = None

    @property
    def alias(self) -> str:
        return self.cluster.alias

    def port(self, name: str, make: Callable[[ClusterPorts], T], reader: type) -> T:
        """Returns the port of this name, created if it is not among `others`. `reader`: the protocol of its reads."""
        found: T = self.others[name] if name in self.others else make(self)
        return found if self.permit is None else permitted(found, self.permit, reader)

    def written_with(self, permit: Permit) -> ClusterPorts:
        """Returns the same cluster with `permit` called before each request that writes."""
        return replace(
            self,
            cluster=permitted(self.cluster, permit, Reader),
            acls=permitted(self.acls, permit, AclReader),
            users=permitted(self.users, permit, UserReader),
            groups=permitted(self.groups, permit, GroupReader),
            levels=permitted(self.levels, permit, LevelReader),
            transactions=permitted(self.transactions, permit, TransactionReader),
            permit=permit,
        )
