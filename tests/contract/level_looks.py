"""What the suites of levels share: a cluster's levels through the JVM, and what KIP-226 says is in force."""

from __future__ import annotations

from collections.abc import Iterable

from app.local.local_cluster import LocalCluster
from app.local.waiting import wait_for
from app.wiring import admin_of
from sinks.kafka.jvm.jvm_levels import JvmLevels
from sinks.kafka.ports.cluster import Origin
from sinks.kafka.ports.config_levels import (
    DEFAULT_OF_ALL,
    ConfigEntity,
    ConfigLevels,
    LevelledEntry,
    Levels,
    ResourceType,
)

SOON = 180.0
ONE = ConfigEntity(ResourceType.BROKER, "1")
"""The broker that every cluster of a test has."""


def jvm_levels(alias: str, properties: dict[str, str]) -> JvmLevels:
    """Levels of a real cluster."""
    return JvmLevels(admin_of(alias, properties))


def levels_of(cluster: LocalCluster) -> JvmLevels:
    """Levels of a local cluster."""
    return jvm_levels(cluster.alias, {"bootstrap.servers": cluster.bootstrap})


def at(levels: ConfigLevels, entity: ConfigEntity) -> Levels:
    """What one entity has; it is there."""
    seen = levels.describe([entity])
    assert not seen.errors
    return seen.items[entity]


def shows(levels: ConfigLevels, entity: ConfigEntity, name: str, value: str | None) -> None:
    """Waits until a config has this value in force: brokers apply a moment later what the controller has written."""

    def shown() -> bool:
        entry = at(levels, entity).get(name)
        return (entry.value if entry else None) == value

    wait_for(shown, SOON, f"{name} of {entity} to be {value}")


def written(entry: LevelledEntry) -> list[tuple[str | None, Origin]]:
    """An entry's levels by value and origin."""
    return [(one.value, one.origin) for one in entry.synonyms]


def clear(levels: ConfigLevels, names: Iterable[str]) -> None:
    """Takes configs away at both dynamic levels. Returns when the broker shows it."""
    names = list(names)
    faults = levels.alter({entity: dict.fromkeys(names) for entity in (ONE, DEFAULT_OF_ALL)})
    assert not any(faults.values()), faults
    wait_for(lambda: not any(is_dynamic(levels, name) for name in names), SOON, f"{names} to be set nowhere")


def is_dynamic(levels: ConfigLevels, name: str) -> bool:
    """Whether a config is set at the broker, or for all brokers."""
    entries = [entry for entity in (ONE, DEFAULT_OF_ALL) if (entry := at(levels, entity).get(name))]
    return any(one.origin in (Origin.BROKER, Origin.CLUSTER) for entry in entries for one in entry.synonyms)
