"""KIP-226's precedence, readable: every level of a config, the one in force, and what a deletion would fall back to.

| entity                   | levels, the one that wins first                                                |
|--------------------------|--------------------------------------------------------------------------------|
| a broker                 | its own, the cluster-wide default, `server.properties`, Kafka's built-in       |
| the cluster-wide default | its own alone: what holds beneath it, each broker says                         |
| a topic                  | its own, then the brokers' levels, under the name that they have for it        |
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from app.configs_tool.config_groups import GROUP_OF, LISTENER, base_name
from sinks.kafka.ports.cluster import Origin
from sinks.kafka.ports.config_levels import ConfigEntity, LevelledEntry, Levels, ResourceType, Synonym
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
class ConfigView:
    """One config of an entity. Hidden values are None, in each level too."""

    name: str
    value: str | None
    origin: Origin
    read_only: bool
    sensitive: bool
    levels: tuple[Synonym, ...]
    falls_back_to: Synonym | None
    """What holds once the entity's own level is deleted; None where it has none, or where nothing is beneath."""

    def as_json(self) -> dict[str, Any]:
        """Values of secrets are null."""
        return {
            "name": self.name,
            "value": self.value,
            "source": self.origin.value,
            "read_only": self.read_only,
            "sensitive": self.sensitive,
            "levels": [_level(one) | {"in_force": not number} for number, one in enumerate(self.levels)],
            "falls_back_to": _level(self.falls_back_to) if self.falls_back_to else None,
        }

    def lines(self) -> Iterator[str]:
        """Lines for people: the value, then its levels, with the one in force marked."""
        marks = "".join(f"  ({mark})" for mark, on in self._marks() if on)
        yield f"{self.name}={self._shown(self.value)}{marks}"
        for number, one in enumerate(self.levels):
            name = f"  {one.name}" if one.name != self.name else ""
            yield f"  {'*' if not number else ' '} {LEVEL_WORDS[one.origin]}: {self._shown(one.value)}{name}"
        if self.falls_back_to is not None:
            back = self.falls_back_to
            yield f"    deleted here, it falls back to {self._shown(back.value)} ({LEVEL_WORDS[back.origin]})"

    def _marks(self) -> tuple[tuple[str, bool], ...]:
        return ("read-only", self.read_only), ("sensitive", self.sensitive)

    def _shown(self, value: str | None) -> str:
        return IN_PLACE_OF_SECRET if self.sensitive else "-" if value is None else value


def own_origin(entity: ConfigEntity) -> Origin:
    """Returns the level at which an entity itself is written."""
    if entity.type is ResourceType.TOPIC:
        return Origin.TOPIC
    return Origin.BROKER if entity.name else Origin.CLUSTER


def own_levels(entity: ConfigEntity, levels: Levels) -> dict[str, str | None]:
    """Returns what is set at the entity itself, by name. A hidden value is None."""
    own = own_origin(entity)
    found: dict[str, str | None] = {}
    for name, entry in levels.items():
        for one in entry.synonyms:
            if one.origin is own and one.name == name:
                found[name] = one.value
    return found


def views(entity: ConfigEntity, levels: Levels, every: bool = False) -> list[ConfigView]:
    """Returns the configs of an entity by name: the ones set there, as kafka-configs lists them, or with `every`
    all."""
    own = own_origin(entity)
    names = sorted(name for name, entry in levels.items() if every or entry.origin is own)
    return [_view(own, name, levels[name], is_hidden(name, levels)) for name in names]


def _view(own: Origin, name: str, entry: LevelledEntry, sensitive: bool) -> ConfigView:
    levels = tuple(Synonym(one.name, None, one.origin) if sensitive else one for one in entry.synonyms)
    beneath = [one for one in levels if (one.name, one.origin) != (name, own)]
    is_set = len(beneath) < len(levels)
    return ConfigView(
        name=name,
        value=None if sensitive else entry.value,
        origin=entry.origin,
        read_only=_is_read_only(name, entry),
        sensitive=sensitive,
        levels=levels,
        falls_back_to=beneath[0] if is_set and beneath else None,
    )


def _is_read_only(name: str, entry: LevelledEntry) -> bool:
    # Brokers call listeners' configs and custom ones read-only, even those that were set at run time.
    static = entry.origin in (Origin.STATIC, Origin.DEFAULT)
    return entry.read_only and static and not LISTENER.fullmatch(name)


def _level(one: Synonym) -> dict[str, str | None]:
    return {"name": one.name, "value": one.value, "source": one.origin.value}


def is_hidden(name: str, known: Levels) -> bool:
    """Whether a config's value must be hidden. A broker says it of configs that it has (`known`). A config that Kafka
    does not know might be a secret."""
    entry = known.get(name)
    if entry is not None:
        return entry.sensitive
    return is_secret(name) or base_name(name) not in GROUP_OF


def open_value(name: str, value: str | None, known: Levels) -> str | None:
    """A value as it may be shown."""
    return IN_PLACE_OF_SECRET if value is not None and is_hidden(name, known) else value
