"""Client quotas through Java's Admin.

Source: `Admin.describeClientQuotas`, `Admin.alterClientQuotas` (KIP-546); `ClientQuotaEntity` for the words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sinks.faults import ItemFault
from sinks.kafka.ports.cluster_ports import ClusterPorts
from sinks.kinds.quotas.quota_port import Entity, Quotas, QuotaValues
from sinks.model.registry import ABSENT

DESCRIBE, ALTER = "DescribeClientQuotas", "AlterClientQuotas"
ENTITY_WORDS: Mapping[str, str] = {"user": "user", "client_id": "client-id", "ip": "ip"}
"""Kafka's words for the parts of an entity."""

PACKAGE = "org.apache.kafka.common.quota."


class JvmQuotas:
    """`ClientQuotas` of one cluster."""

    def __init__(self, ports: ClusterPorts) -> None:
        self._java = ports.java()

    def describe(self) -> Quotas:
        everything = self._java.jvm.org.apache.kafka.common.quota.ClientQuotaFilter.all()
        found = self._java.call(DESCRIBE, lambda client: client.describeClientQuotas(everything).entities())
        quotas: dict[Entity, dict[str, float]] = {}
        for java_entity, values in found.items():
            names = dict(java_entity.entries())
            if names.keys() <= set(ENTITY_WORDS.values()):
                entity = Entity(*(_name(names, word) for word in ENTITY_WORDS.values()))
                quotas[entity] = {str(name): float(value) for name, value in values.items()}
        return quotas

    def alter(self, wanted: QuotaValues) -> dict[Entity, ItemFault | None]:
        java, rows = self._java.jvm.java.util, self._java.rows
        alterations, sent = java.ArrayList(), java.ArrayList()
        for entity, quotas in wanted.items():
            of_entity, operations = self._entity(entity), java.ArrayList()
            for name, value in quotas.items():
                operations.add(rows.one(PACKAGE + "ClientQuotaAlteration$Op", name, value))
            alterations.add(rows.one(PACKAGE + "ClientQuotaAlteration", of_entity, operations))
            sent.add(of_entity)
        settled = self._java.write(
            ALTER,
            list(wanted),
            lambda client: rows.of_map(client.alterClientQuotas(alterations).values(), sent),
        )
        return {entity: settled.faults.get(entity) for entity in wanted}

    def _entity(self, entity: Entity) -> Any:
        names = self._java.jvm.java.util.HashMap()
        for word, name in zip(ENTITY_WORDS.values(), entity, strict=True):
            if name != ABSENT:
                names.put(word, name or None)
        return self._java.rows.one(PACKAGE + "ClientQuotaEntity", names)


def _name(names: Mapping[str, str | None], word: str) -> str:
    # Kafka's own default entity has no name.
    return names[word] or "" if word in names else ABSENT
