"""Configs with their levels through the driver's own JVM: librdkafka reaches neither the cluster-wide default nor
more than one level of a key.

Every entry comes over the gateway: about 0.6 s for a broker's 350 configs, 20 ms for the cluster-wide default. To look
at many topics, `JvmWatch` is the one.

Source: `Admin.describeConfigs` with `includeSynonyms` (KIP-226), `Admin.incrementalAlterConfigs` (KIP-339).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from py4j.protocol import Py4JJavaError

from sinks.faults import ClusterUnreachable, IncrementalUnsupported, ItemFault, Observed, RightsMissing, where_it_is
from sinks.kafka.jvm.java_admin import CLOSES_WITHIN_MS, DENIED_CLIENT, cause_of, java_admin, message_of, timeout_ms
from sinks.kafka.ports.cluster import CountRequest, Origin
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

DESCRIBE, ALTER, CLUSTER = "DescribeConfigs", "IncrementalAlterConfigs", "DescribeCluster"

ENTITY_FAULTS: Mapping[str, str] = {
    "InvalidConfigurationException": "INVALID_CONFIG",
    "InvalidRequestException": "INVALID_REQUEST",
    "InvalidTopicException": "TOPIC_EXCEPTION",
    "PolicyViolationException": "POLICY_VIOLATION",
    "TopicAuthorizationException": "TOPIC_AUTHORIZATION_FAILED",
    "UnknownServerException": "UNKNOWN",
    "UnknownTopicOrPartitionException": "UNKNOWN_TOPIC_OR_PART",
}
"""Faults of one entity, by Java's exception, under the names that librdkafka has for them."""

RETRIABLE_FAULTS = frozenset({"UNKNOWN_TOPIC_OR_PART"})
SILENT = "REQUEST_TIMED_OUT"
"""A broker that does not answer; the others may."""

ORIGINS = {origin.value: origin for origin in Origin}

RIGHTS = {ALTER: "ALTER_CONFIGS", DESCRIBE: "DESCRIBE_CONFIGS", CLUSTER: "DESCRIBE"}
"""What a request about the cluster as a whole, or its brokers, needs on the CLUSTER."""


class JvmLevels:
    """`ConfigLevels` of one cluster, through `Admin` in the JVM behind `gateway` (py4j)."""

    def __init__(self, alias: str, gateway: Any, properties: Mapping[str, str], count_request: CountRequest) -> None:
        self._alias, self._jvm, self._count = alias, gateway.jvm, count_request
        self._client = self._jvm.org.apache.kafka.clients.admin
        self._admin, self._timeout = java_admin(alias, self._jvm, properties), timeout_ms(alias, properties)
        self._unit = self._jvm.java.util.concurrent.TimeUnit.MILLISECONDS
        self._types = self._constants("org.apache.kafka.common.config.ConfigResource$Type")
        self._operations = self._constants("org.apache.kafka.clients.admin.AlterConfigOp$OpType")

    def describe(self, entities: Collection[ConfigEntity]) -> Observed[ConfigEntity, Levels]:
        """All configs of each entity; a broker that is not there is the fault BROKER_NOT_AVAILABLE of its entity."""
        missing = self._missing(entities)
        resources = {entity: self._resource(entity) for entity in entities if entity not in missing}
        if not resources:
            return Observed({}, missing)
        options = self._client.DescribeConfigsOptions().includeSynonyms(True)
        values = self._admin.describeConfigs(self._collected(resources.values()), options)
        found, faults = self._settle(DESCRIBE, {entity: values.values().get(resources[entity]) for entity in resources})
        levels = {entity: _levels(entity, self._listed(config.entries())) for entity, config in found.items()}
        return Observed(levels, missing | faults)

    def brokers(self) -> list[str]:
        """The ids of the brokers that are up. Raises ClusterUnreachable, RightsMissing."""
        nodes = self._whole(CLUSTER, self._admin.describeCluster().nodes())
        return sorted((node.idString() for node in self._listed(nodes)), key=int)

    def alter(
        self, wanted: Mapping[ConfigEntity, ConfigValues], validate_only: bool = False
    ) -> dict[ConfigEntity, ItemFault | None]:
        """Each entity all or nothing. Raises ClusterUnreachable, RightsMissing, IncrementalUnsupported."""
        missing = self._missing(wanted)
        resources = {entity: self._resource(entity) for entity in wanted if entity not in missing}
        if not resources:
            return dict(missing)
        changes = self._jvm.java.util.HashMap()
        for entity, resource in resources.items():
            changes.put(resource, self._collected(self._operation(*change) for change in wanted[entity].items()))
        options = self._client.AlterConfigsOptions().validateOnly(validate_only)
        ask_again()
        values = self._admin.incrementalAlterConfigs(changes, options).values()
        _, faults = self._settle(ALTER, {entity: values.get(resource) for entity, resource in resources.items()})
        hidden = {entity: fault_without_secrets(fault, wanted[entity]) for entity, fault in faults.items()}
        return {entity: missing.get(entity) or hidden.get(entity) for entity in wanted}

    def close(self) -> None:
        self._admin.close(self._jvm.java.time.Duration.ofMillis(CLOSES_WITHIN_MS))

    def _missing(self, entities: Iterable[ConfigEntity]) -> dict[ConfigEntity, ItemFault]:
        """A broker is asked itself, so Java's Admin would wait for one that is not there until its time is up."""
        brokers = [entity for entity in entities if entity.type is ResourceType.BROKER and entity.name]
        if not brokers:
            return {}
        there = self.brokers()
        return {entity: no_broker(entity.name, there) for entity in brokers if entity.name not in there}

    def _whole(self, api: str, future: Any) -> Any:
        """The answer of a request that is about no single entity."""
        try:
            answer = future.get(self._timeout, self._unit)
        except Py4JJavaError as error:
            self._count(self._alias, api, cause_of(error))
            self._raise_if_denied(api, error)
            raise self._unreachable(api, error) from error
        self._count(self._alias, api, "ok")
        return answer

    def _settle(
        self, api: str, futures: Mapping[ConfigEntity, Any]
    ) -> tuple[dict[ConfigEntity, Any], dict[ConfigEntity, ItemFault]]:
        """Each entity's answer or fault. Raises where none of them was answered at all."""
        found: dict[ConfigEntity, Any] = {}
        faults: dict[ConfigEntity, ItemFault] = {}
        last: Py4JJavaError | None = None
        for entity, future in futures.items():
            try:
                found[entity] = future.get(self._timeout, self._unit)
            except Py4JJavaError as error:
                last, faults[entity] = error, self._fault(api, error)
        self._count(self._alias, api, cause_of(last) if last else "ok")
        if last is not None and len(faults) == len(futures) and {fault.code for fault in faults.values()} == {SILENT}:
            raise self._unreachable(api, last) from last
        return found, faults

    def _fault(self, api: str, error: Py4JJavaError) -> ItemFault:
        self._raise_if_denied(api, error)
        cause = cause_of(error)
        code = ENTITY_FAULTS.get(cause, SILENT)
        return ItemFault(code, message_of(error), code == SILENT or code in RETRIABLE_FAULTS, code == SILENT)

    def _raise_if_denied(self, api: str, error: Py4JJavaError) -> None:
        cause, text = cause_of(error), self._text(api, error)
        if cause == "ClusterAuthorizationException":
            raise RightsMissing(f"{text}; grant the principal {RIGHTS[api]} on the CLUSTER") from error
        if cause in DENIED_CLIENT:
            raise RightsMissing(f"{text}; check the security settings of `{self._alias}.`") from error
        if cause == "UnsupportedVersionException" and api == ALTER:
            raise IncrementalUnsupported(text) from error

    def _unreachable(self, api: str, error: Py4JJavaError) -> ClusterUnreachable:
        return ClusterUnreachable(f"{self._text(api, error)}; {where_it_is(self._alias)}")

    def _text(self, api: str, error: Py4JJavaError) -> str:
        return f"cluster {self._alias}: {api}: {cause_of(error)}: {message_of(error)}"

    def _operation(self, name: str, value: str | None) -> Any:
        entry = self._client.ConfigEntry(name, value)
        return self._client.AlterConfigOp(entry, self._operations["DELETE" if value is None else "SET"])

    def _resource(self, entity: ConfigEntity) -> Any:
        return self._jvm.org.apache.kafka.common.config.ConfigResource(self._types[entity.type.value], entity.name)

    def _collected(self, items: Iterable[Any]) -> Any:
        collected = self._jvm.java.util.ArrayList()
        for item in items:
            collected.add(item)
        return collected

    def _listed(self, collection: Any) -> Any:
        # py4j iterates over lists, not over every collection of Java's.
        return self._jvm.java.util.ArrayList(collection)

    def _constants(self, enum: str) -> dict[str, Any]:
        # py4j resolves no inner classes, and the jars of --packages are in the context class loader only.
        loader = self._jvm.java.lang.Thread.currentThread().getContextClassLoader()
        constants = self._jvm.java.lang.Class.forName(enum, True, loader).getEnumConstants()
        return {constant.name(): constant for constant in constants}


def _levels(entity: ConfigEntity, entries: Iterable[Any]) -> Levels:
    levels = {entry.name(): _entry(entity, entry) for entry in entries}
    if entity == DEFAULT_OF_ALL:
        return {name: entry for name, entry in levels.items() if entry.origin is Origin.CLUSTER}
    return levels


def _entry(entity: ConfigEntity, entry: Any) -> LevelledEntry:
    name, value, origin = entry.name(), entry.value(), _origin(entry.source())
    if entity.type is ResourceType.BROKER and origin is Origin.DEFAULT:
        # What is at its default has that level alone: most of a broker's, and each call over the gateway costs.
        synonyms = [Synonym(name, value, origin)] if value is not None else []
    else:
        synonyms = [Synonym(one.name(), one.value(), _origin(one.source())) for one in entry.synonyms()]
    return LevelledEntry(value, origin, entry.isReadOnly(), entry.isSensitive(), tuple(synonyms))


def _origin(source: Any) -> Origin:
    return ORIGINS.get(source.name(), Origin.UNKNOWN)


def fault_without_secrets(fault: ItemFault, wanted: ConfigValues) -> ItemFault:
    """The fault without the values that were to be written for configs whose names speak of a secret."""
    return replace(fault, message=without_secrets(fault.message, secret_values(wanted)))
