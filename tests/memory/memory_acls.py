"""ACLs in memory that keep Kafka's rules, for tests; they fulfil the same contract as Kafka's."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from sinks.faults import ItemFault, NotSupported
from sinks.kafka.ports.acl_binding import CLUSTER, CLUSTER_NAME, AclBinding
from sinks.kafka.ports.acls import AclFaults, AclList, AclReader
from tests.memory.memory_cluster import permit

AclPolicy = Callable[[AclBinding], str | None]
"""Why the cluster refuses to create this one, or None."""


def _no_policy(binding: AclBinding) -> str | None:
    return None


@dataclass
class MemoryAcls:
    """`writes` counts write requests; `denied` names the operations (`describe`, `alter`) that are not permitted.

    Without an `authorizer` it supports no ACLs; not `reachable`, it answers nothing.
    """

    alias: str
    bindings: set[AclBinding] = field(default_factory=set)
    policy: AclPolicy = _no_policy
    authorizer: bool = True
    denied: set[str] = field(default_factory=set)
    reachable: bool = True
    writes: int = 0

    def describe(self) -> list[AclBinding]:
        self._check("describe")
        return list(self.bindings)

    def recent(self) -> AclList:
        return AclList(self.describe())

    def create(self, bindings: Collection[AclBinding]) -> AclFaults:
        self._write(bindings)
        faults = {one: self._refusal(one) for one in bindings}
        self.bindings.update(one for one, fault in faults.items() if fault is None)
        return faults

    def delete(self, bindings: Collection[AclBinding]) -> AclFaults:
        self._write(bindings)
        self.bindings.difference_update(bindings)
        return dict.fromkeys(bindings)

    def _refusal(self, binding: AclBinding) -> ItemFault | None:
        if not binding.is_known:
            return ItemFault("INVALID_REQUEST", "An ACL that is UNKNOWN in part cannot be created.")
        if binding.resource_type == CLUSTER and binding.resource_name != CLUSTER_NAME:
            return ItemFault("INVALID_REQUEST", f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
        if not binding.resource_name:
            return ItemFault("INVALID_REQUEST", "Invalid empty resource name")
        reason = self.policy(binding)
        return ItemFault("POLICY_VIOLATION", reason) if reason else None

    def _write(self, bindings: Collection[AclBinding]) -> None:
        if bindings:
            self._check("alter")
            self.writes += 1

    def _check(self, operation: str) -> None:
        permit(self.alias, self.reachable, self.denied, operation)
        if not self.authorizer:
            raise NotSupported(f"{self.alias}: no authorizer is configured (in-memory cluster)")


class PlainAclWatch:
    """A watch over any reader: describes in Python and compares. The contract's reference for `JvmAclWatch`."""

    def __init__(self, acls: AclReader) -> None:
        self._acls = acls
        self._last: set[AclBinding] | None = None

    def changed(self) -> bool:
        seen = set(self._acls.describe())
        differs, self._last = seen != self._last, seen
        return differs

    def forget(self) -> None:
        self._last = None
