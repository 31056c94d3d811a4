"""Shows every level of a config, the one in force, and the value after a deletion (precedence of KIP-226).

| entity                   | levels, the strongest first                                                    |
|--------------------------|--------------------------------------------------------------------------------|
| a broker                 | its own, the cluster-wide default, `server.properties`, Kafka's built-in       |
| the cluster-wide default | its own alone; each broker shows the levels beneath                            |
| a topic                  | its own, then the brokers' levels, under the brokers' name for the config      |
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from app.configs_tool.config_groups import GROUP_OF, LISTENER, base_name
from sinks.kafka.ports.cluster import Origin
from sinks.kafka.ports.config_levels import ConfigEntity, LevelledEntry, Levels, ResourceType
from sinks.secret_values import IN_PLACE_OF_SECRET, is_secret

LEVEL_WORDS = {
    Origin.TOPIC: "topic",
    Origin.BROKER: "broker",
    Origin.CLUSTER: "cluster-wide default",
    Origin.STATIC: "server.properties",
    Origin.DEFAULT: "built-in default",
    Origin.UNKNOWN: "unknown",
}


@dataclass(frozen=True, slots=True)
class LevelView:
    """One level of a config. `value`: None for a secret, or if there is none. `where`: the level in words. `name`: the
    config's name at this level; None for a property of Lockstep, whose name is the same at all levels."""

    source: str
    value: str | None
    where: str
    hidden: bool
    name: str | None = None

    def as_json(self) -> dict[str, Any]:
        beside = {"where": self.where} if self.name is None else {"name": self.name}
        return {"source": self.source, "value": self.value, **beside}

    def __str__(self) -> str:
        return IN_PLACE_OF_SECRET if self.hidden else "-" if self.value is None else self.value


@dataclass(frozen=True, slots=True)
class ConfigView:
    """One config of an entity. `levels`: the strongest first. `own`: the source of the entity's own level."""

    name: str
    in_force: LevelView
    levels: tuple[LevelView, ...]
    own: str
    sensitive: bool
    read_only: bool = False

    @property
    def falls_back_to(self) -> LevelView | None:
        """The level in force after the entity's own is deleted; None if the entity has none, or nothing is beneath."""
        beneath = [one for one in self.levels if one.source != self.own or one.name not in (None, self.name)]
        return beneath[0] if len(beneath) < len(self.levels) and beneath else None

    def as_json(self) -> dict[str, Any]:
        """Returns the document of this config. Secret values are null."""
        back = self.falls_back_to
        return {
            "name": self.name,
            "value": self.in_force.value,
            "source": self.in_force.source,
            "read_only": self.read_only,
            "sensitive": self.sensitive,
            "levels": [one.as_json() | {"in_force": not number} for number, one in enumerate(self.levels)],
            "falls_back_to": back.as_json() if back else None,
        }

    def lines(self) -> Iterator[str]:
        """Yields lines for people: the value, then its levels, with the one in force marked."""
        marks = {"read-only": self.read_only, "sensitive": self.sensitive}
        yield f"{self.name}={self.in_force}" + "".join(f"  ({mark})" for mark, on in marks.items() if on)
        for number, one in enumerate(self.levels):
            name = "" if one.name in (None, self.name) else f"  {one.name}"
            yield f"  {' ' if number else '*'} {one.where}: {one}{name}"
        if (back := self.falls_back_to) is not None:
            yield f"    deleted here, it falls back to {back} ({back.where})"


def own_origin(entity: ConfigEntity) -> Origin:
    if entity.type is ResourceType.TOPIC:
        return Origin.TOPIC
    return Origin.BROKER if entity.name else Origin.CLUSTER


def own_levels(entity: ConfigEntity, levels: Levels) -> dict[str, str | None]:
    """Returns the configs that are set at the entity itself, by name. A hidden value is None."""
    own = own_origin(entity)
    synonyms = ((name, one) for name, entry in levels.items() for one in entry.synonyms)
    return {name: one.value for name, one in synonyms if one.origin is own and one.name == name}


def views(entity: ConfigEntity, levels: Levels, every: bool = False) -> list[ConfigView]:
    """Returns the configs of an entity by name: those set at it, as kafka-configs lists them; with `every` all."""
    own = own_origin(entity)
    names = sorted(name for name, entry in levels.items() if every or entry.origin is own)
    return [_view(own, name, levels[name], is_hidden(name, levels)) for name in names]


def _view(own: Origin, name: str, entry: LevelledEntry, sensitive: bool) -> ConfigView:
    def level(name: str, value: str | None, origin: Origin) -> LevelView:
        return LevelView(origin.value, None if sensitive else value, LEVEL_WORDS[origin], sensitive, name)

    levels = tuple(level(one.name, one.value, one.origin) for one in entry.synonyms)
    in_force = level(name, entry.value, entry.origin)
    # Brokers call listeners' configs and custom ones read-only, even those that were set at run time.
    static = entry.origin in (Origin.STATIC, Origin.DEFAULT) and not LISTENER.fullmatch(name)
    return ConfigView(name, in_force, levels, own.value, sensitive, entry.read_only and static)


def is_hidden(name: str, known: Levels) -> bool:
    """Returns whether a config's value must be hidden. Brokers mark their secret configs (`known`). An unknown config
    might be a secret."""
    entry = known.get(name)
    if entry is not None:
        return entry.sensitive
    return is_secret(name) or base_name(name) not in GROUP_OF


def open_value(name: str, value: str | None, known: Levels) -> str | None:
    return IN_PLACE_OF_SECRET if value is not None and is_hidden(name, known) else value
