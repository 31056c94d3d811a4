"""Reads and writes configs with their levels: of brokers, of the cluster-wide default, and of topics.

An answer for all of them is one text. To look at many topics, use `JvmWatch`. Source: `Admin.describeConfigs` with
`includeSynonyms` (KIP-226), `Admin.incrementalAlterConfigs` (KIP-339).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from sinks.faults import ItemFault, Observed
from sinks.kafka.jvm.java_admin import JavaAdmin
from sinks.kafka.jvm.java_errors import DENIED_CLUSTER
from sinks.kafka.jvm.jvm_topics import ADMIN, DESCRIBE_CONFIGS, INCREMENTAL, altered_configs, described_configs
from sinks.kafka.ports.cluster import Origin
from sinks.kafka.ports.config_levels import (
    DEFAULT_OF_ALL,
    ConfigEntity,
    ConfigValues,
    LevelledEntry,
    Levels,
    ResourceType,
    Synonym,
    no_broker,
)
from sinks.kafka.ports.permitted import ask_again
from sinks.secret_values import secret_values, without_secrets

LEFT_OUT = {ADMIN + "ConfigEntry": ("name", "type", "documentation")}


class JvmLevels:
    """`ConfigLevels` of one cluster. May be called from any thread."""

    def __init__(self, admin: JavaAdmin) -> None:
        self._admin = admin

    def describe(self, entities: Collection[ConfigEntity]) -> Observed[ConfigEntity, Levels]:
        """Returns all configs of each entity. A broker that is not up has the fault BROKER_NOT_AVAILABLE."""
        missing = self._missing(entities)
        asked = [entity for entity in dict.fromkeys(entities) if entity not in missing]
        if not asked:
            return Observed({}, missing)
        options = self._admin.jvm.org.apache.kafka.clients.admin.DescribeConfigsOptions().includeSynonyms(True)
        settled = described_configs(self._admin, asked, options)
        self._check(DESCRIBE_CONFIGS, settled.faults.values())
        found = self._admin.answers(settled, LEFT_OUT)
        levels = {one: _levels(one, config["entries"]) for one, config in found.items()}
        return Observed(levels, {**missing, **settled.faults})

    def brokers(self) -> list[str]:
        nodes = self._admin.call("DescribeCluster", lambda client: client.describeCluster().nodes())
        ids = self._admin.rows.each(nodes, "org.apache.kafka.common.Node", "idString")
        return sorted(self._admin.rows.read(ids), key=int)

    def alter(
        self, wanted: Mapping[ConfigEntity, ConfigValues], validate_only: bool = False
    ) -> dict[ConfigEntity, ItemFault | None]:
        """Alter each entity all or nothing. Raises ClusterUnreachable, RightsMissing, IncrementalUnsupported."""
        missing = self._missing(wanted)
        asked = [entity for entity in wanted if entity not in missing]
        if not asked:
            return dict(missing)
        ask_again()
        settled = altered_configs(self._admin, {entity: wanted[entity] for entity in asked}, validate_only)
        self._check(INCREMENTAL, settled.faults.values())
        hidden = {one: fault_without_secrets(fault, wanted[one]) for one, fault in settled.faults.items()}
        return {entity: missing.get(entity) or hidden.get(entity) for entity in wanted}

    def _missing(self, entities: Iterable[ConfigEntity]) -> dict[ConfigEntity, ItemFault]:
        """Returns the faults of brokers that are not up. Java's Admin asks a broker itself, and would wait for it its
        whole time."""
        brokers = [entity for entity in entities if entity.type is ResourceType.BROKER and entity.name]
        if not brokers:
            return {}
        there = self.brokers()
        return {entity: no_broker(entity.name, there) for entity in brokers if entity.name not in there}

    def _check(self, api: str, faults: Iterable[ItemFault]) -> None:
        for fault in faults:
            if fault.code == DENIED_CLUSTER:
                raise self._admin.raised(api, fault)


def _levels(entity: ConfigEntity, entries: Mapping[str, Any]) -> Levels:
    levels = {name: _entry(entry) for name, entry in entries.items()}
    if entity == DEFAULT_OF_ALL:
        return {name: entry for name, entry in levels.items() if entry.origin is Origin.CLUSTER}
    return levels


def _entry(entry: Mapping[str, Any]) -> LevelledEntry:
    synonyms = tuple(Synonym(one["name"], one["value"], Origin(one["source"])) for one in entry["synonyms"])
    return LevelledEntry(entry["value"], Origin(entry["source"]), entry["isReadOnly"], entry["isSensitive"], synonyms)


def fault_without_secrets(fault: ItemFault, wanted: ConfigValues) -> ItemFault:
    """Returns the fault without the values of `wanted` that may be secrets by the names of their configs."""
    return replace(fault, message=without_secrets(fault.message, secret_values(wanted)))
