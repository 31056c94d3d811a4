"""Configs with the level that each value comes from (KIP-226), for brokers, the cluster-wide default and topics.

The cluster-wide default of the brokers is an entity of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

from sinks.faults import ItemFault, Observed
from sinks.kafka.ports.cluster import ConfigEntry, Origin


class ResourceType(str, Enum):
    """What a config belongs to: Kafka's `ConfigResource.Type`, as far as it is used here."""

    BROKER = "BROKER"
    TOPIC = "TOPIC"


class ConfigEntity(NamedTuple):
    """A broker by its id, all brokers by the name `""` (the cluster-wide default), or a topic."""

    type: ResourceType
    name: str


DEFAULT_OF_ALL = ConfigEntity(ResourceType.BROKER, "")
"""The cluster-wide default of the brokers."""


@dataclass(frozen=True, slots=True)
class Synonym:
    """A value that holds if the values before it are not set. `name`: for a topic config, the broker's name of it."""

    name: str
    value: str | None
    origin: Origin


@dataclass(frozen=True, slots=True)
class LevelledEntry(ConfigEntry):
    """A config's value in force, and what sets it.

    `synonyms`: every level that is set, in the order of precedence, the one in force first. The cluster-wide default
    has only its own level.
    """

    synonyms: tuple[Synonym, ...] = ()


Levels = Mapping[str, LevelledEntry]
ConfigValues = Mapping[str, str | None]
"""Per config name: the value to set at the entity, `None` to delete it there."""


class LevelReader(Protocol):
    """Reads configs at their levels. Raises ClusterUnreachable, RightsMissing."""

    def describe(self, entities: Collection[ConfigEntity]) -> Observed[ConfigEntity, Levels]:
        """Returns all configs of each entity. For the cluster-wide default it returns only what is set there."""

    def brokers(self) -> list[str]:
        """The ids of the brokers that are up, in order."""


class ConfigLevels(LevelReader, Protocol):
    """Reads and writes configs."""

    def alter(
        self, wanted: Mapping[ConfigEntity, ConfigValues], validate_only: bool = False
    ) -> dict[ConfigEntity, ItemFault | None]:
        """Alter configs with IncrementalAlterConfigs (KIP-339), each entity all or nothing.

        Returns a fault by entity; None if it was written. `validate_only`: brokers check the values and write nothing.
        """


def no_broker(name: str, there: Collection[str]) -> ItemFault:
    """Returns the fault of a broker that is not up."""
    return ItemFault("BROKER_NOT_AVAILABLE", f"there is no broker {name}; there are: {', '.join(there)}")
