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
"""Per ACL: `None` when it was written, or was so already."""


class AclList(frozenset[AclBinding]):
    """All ACLs of a cluster at a moment, and what is asked of tens of thousands of them again and again."""

    @cached_property
    def keys(self) -> frozenset[Key]:
        """Of all of them."""
        return frozenset(acl.key for acl in self)

    @cached_property
    def denying(self) -> tuple[AclBinding, ...]:
        """Those that deny; hardly any do."""
        return tuple(acl for acl in self if acl.permission == DENY)


class AclReader(Protocol):
    """Looks at the ACLs of one cluster, and changes none.

    All of it raises NotSupported where the cluster has no authorizer, RightsMissing, ClusterUnreachable.
    """

    def describe(self) -> Collection[AclBinding]:
        """All of them, asked for now."""

    def recent(self) -> AclList:
        """All of them, as they were a few seconds ago perhaps, but after what was written through this port."""


class Acls(AclReader, Protocol):
    """Looks and writes. All of it raises NotSupported, RightsMissing, ClusterUnreachable."""

    def create(self, bindings: Collection[AclBinding]) -> AclFaults:
        """What is there already stays as it is, without a fault."""

    def delete(self, bindings: Collection[AclBinding]) -> AclFaults:
        """Exactly these. What is gone already is no fault."""


class AclWatch(Protocol):
    """Finds differences since its own last poll, as cheaply as it can. Not thread-safe."""

    def changed(self) -> bool:
        """Whether the ACLs differ from the last poll; at the first poll they do. Raises as `describe`."""

    def forget(self) -> None:
        """The next poll reports a change."""


@dataclass(frozen=True)
class Allowed:
    """Operations by Kafka's upper-case words. A topic or group that cannot be seen has Kafka's error name instead.

    `creatable`: for names asked about, whether such a topic may be created.
    """

    cluster: frozenset[str]
    topics: Mapping[str, frozenset[str] | str] = field(default_factory=dict)
    creatable: Mapping[str, bool] = field(default_factory=dict)
    groups: Mapping[str, frozenset[str] | str] = field(default_factory=dict)
