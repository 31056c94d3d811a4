"""Client quotas in memory that keep Kafka's rules, for tests; the same contract as Kafka's."""

from __future__ import annotations

from dataclasses import dataclass, field

from sinks.faults import ItemFault
from sinks.kinds.quotas.quota_port import Entity, Quotas, QuotaValues
from sinks.kinds.quotas.rules import OF_ADDRESSES, OF_CLIENTS
from sinks.model.registry import ABSENT
from tests.memory.memory_cluster import permit


@dataclass
class MemoryQuotas:
    """`writes`: number of write requests. `denied`: operations that are not permitted (`describe`, `alter`). If not
    `reachable`, every call fails."""

    alias: str
    quotas: dict[Entity, dict[str, float]] = field(default_factory=dict)
    denied: set[str] = field(default_factory=set)
    reachable: bool = True
    writes: int = 0

    def describe(self) -> Quotas:
        permit(self.alias, self.reachable, self.denied, "describe")
        return {entity: dict(values) for entity, values in self.quotas.items()}

    def alter(self, wanted: QuotaValues) -> dict[Entity, ItemFault | None]:
        permit(self.alias, self.reachable, self.denied, "alter")
        self.writes += 1
        return {entity: self._alter(entity, dict(values)) for entity, values in wanted.items()}

    def _alter(self, entity: Entity, values: dict[str, float | None]) -> ItemFault | None:
        known = OF_CLIENTS if entity.ip == ABSENT else OF_ADDRESSES
        for name, value in values.items():
            if name not in known:
                return ItemFault("INVALID_REQUEST", f"Invalid configuration key {name}")
            if value is not None and value <= 0:
                return ItemFault("INVALID_REQUEST", f"Quota {name} must be greater than 0")
        merged = {**self.quotas.get(entity, {}), **values}
        left = {name: value for name, value in merged.items() if value is not None}
        self.quotas.pop(entity, None)
        if left:
            self.quotas[entity] = left
        return None
