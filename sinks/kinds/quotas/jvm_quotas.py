"""Client quotas through Java's Admin: librdkafka knows none.

Source: `Admin.describeClientQuotas`, `Admin.alterClientQuotas` (KIP-546); `ClientQuotaEntity` for the words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sinks.faults import ItemFault
from sinks.kafka.ports.cluster_ports import ClusterPorts
from sinks.kinds.kind_row import ABSENT
from sinks.kinds.quotas.quota_port import Entity, Quotas, QuotaValues

DESCRIBE, ALTER = "DescribeClientQuotas", "AlterClientQuotas"
ENTITY_WORDS: Mapping[str, str] = {"user": "user", "client_id": "client-id", "ip": "ip"}
"""The parts of an entity in Kafka's words."""

PACKAGE = "org.apache.kafka.common.quota."


class JvmQuotas:
    """`ClientQuotas` of one cluster."""

    def __init__(self, ports: ClusterPorts) -> None:
        self._java = ports.java()

    def describe(self) -> Quotas:
        everything = self._java.jvm.org.apache.kafka.common.quota.ClientQuotaFilter.all()
        found = self._java.get(DESCRIBE, self._java.admin.describeClientQuotas(everything).entities())
        quotas: dict[Entity, dict[str, float]] = {}
        for java_entity, values in found.items():
            names = dict(java_entity.entries())
            if names.keys() <= set(ENTITY_WORDS.values()):
                entity = Entity(*(_name(names, word) for word in ENTITY_WORDS.values()))
                quotas[entity] = {str(name): float(value) for name, value in values.items()}
        return quotas

    def alter(self, wanted: QuotaValues) -> dict[Entity, ItemFault | None]:
        alterations = self._java.jvm.java.util.ArrayList()
        sent: dict[Entity, Any] = {}
        for entity, quotas in wanted.items():
            sent[entity] = self._entity(entity)
            operations = self._java.jvm.java.util.ArrayList()
            for name, value in quotas.items():
                operations.add(self._java.make(PACKAGE + "ClientQuotaAlteration$Op", name, value))
            alterations.add(self._java.make(PACKAGE + "ClientQuotaAlteration", sent[entity], operations))
        futures = self._java.admin.alterClientQuotas(alterations).values()
        return {entity: self._java.fault(ALTER, futures.get(java_entity)) for entity, java_entity in sent.items()}

    def _entity(self, entity: Entity) -> Any:
        names = self._java.jvm.java.util.HashMap()
        for word, name in zip(ENTITY_WORDS.values(), entity, strict=True):
            if name != ABSENT:
                names.put(word, name or None)
        return self._java.make(PACKAGE + "ClientQuotaEntity", names)

    def close(self) -> None:
        self._java.close()


def _name(names: Mapping[str, str | None], word: str) -> str:
    # Kafka's own default entity has no name.
    return names[word] or "" if word in names else ABSENT
