"""The ACLs of a cluster, and what its client may do there: what the sink asks for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from sinks.faults import ItemFault
from sinks.kafka.ports.acl_binding import DENY, AclBinding
from sinks.kafka.ports.cluster import Key

AclFaults = dict[AclBinding, ItemFault | None]
"""Result of a write by ACL: `None` if it was written, or was so already."""


class AclList(frozenset[AclBinding]):
    """All ACLs of a cluster at one moment. It caches what callers ask of tens of thousands of them again and again."""

    @cached_property
    def keys(self) -> frozenset[Key]:
        """The keys of all ACLs."""
        return frozenset(acl.key for acl in self)

    @cached_property
    def denying(self) -> tuple[AclBinding, ...]:
        """The ACLs that deny; there are hardly any."""
        return tuple(acl for acl in self if acl.permission == DENY)


class AclReader(Protocol):
    """Reads the ACLs of one cluster. Each method raises NotSupported if the cluster has no authorizer, RightsMissing,
    ClusterUnreachable."""

    def describe(self) -> Collection[AclBinding]:
        """Returns all ACLs, asked for now."""

    def recent(self) -> AclList:
        """Returns all ACLs, read at most a few seconds ago and after the last write through this port."""


class Acls(AclReader, Protocol):
    """Reads and writes ACLs. Each method raises NotSupported, RightsMissing, ClusterUnreachable."""

    def create(self, bindings: Collection[AclBinding]) -> AclFaults:
        """Create these ACLs. An ACL that exists already is no fault."""

    def delete(self, bindings: Collection[AclBinding]) -> AclFaults:
        """Delete exactly these ACLs. An ACL that is gone already is no fault."""


class AclWatch(Protocol):
    """Finds out whether ACLs differ from its last poll, as cheaply as it can. Not thread-safe."""

    def changed(self) -> bool:
        """Whether the ACLs differ from the last poll. The first poll returns True. Raises as `describe`."""

    def forget(self) -> None:
        """Make the next poll report a change."""


@dataclass(frozen=True)
class Allowed:
    """Allowed operations, in Kafka's upper-case words; Kafka's error name for a topic or group that cannot be seen.
    `creatable`: whether a topic of this name may be created."""

    cluster: frozenset[str]
    topics: Mapping[str, frozenset[str] | str] = field(default_factory=dict)
    creatable: Mapping[str, bool] = field(default_factory=dict)
    groups: Mapping[str, frozenset[str] | str] = field(default_factory=dict)
