"""The ACLs of a cluster: what the sink asks for."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from sinks.faults import ItemFault
from sinks.kafka.ports.acl_binding import AclBinding

AclFaults = dict[AclBinding, ItemFault | None]
"""Per ACL: `None` when it was written, or was so already."""


class AclReader(Protocol):
    """Looks at the ACLs of one cluster, and changes none."""

    def describe(self) -> list[AclBinding]:
        """All of them. Raises NotSupported where the cluster has no authorizer, RightsMissing, ClusterUnreachable."""


class Acls(AclReader, Protocol):
    """Looks and writes. All of it raises NotSupported, RightsMissing, ClusterUnreachable."""

    def create(self, bindings: Collection[AclBinding]) -> AclFaults:
        """What is there already stays as it is, without a fault."""

    def delete(self, bindings: Collection[AclBinding]) -> AclFaults:
        """Exactly these. What is gone already is no fault."""


class AclWatch(Protocol):
    """Finds differences since its own last poll, as cheaply as it can. Not thread-safe."""

    def changed(self) -> bool:
        """Whether the ACLs differ from those of the last poll; at the first one they do. Raises as `describe`."""

    def forget(self) -> None:
        """The next poll reports a change."""

    def close(self) -> None: ...
