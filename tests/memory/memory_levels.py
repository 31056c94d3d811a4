"""Configs with their levels in memory, for tests: KIP-226's precedence and a broker's refusals.

It knows a few configs of each sort. Names that it does not know are taken as custom configs, which a broker keeps
for its metrics reporters and never shows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from sinks.faults import IncrementalUnsupported, ItemFault, Observed
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
from tests.memory.memory_cluster import GONE, permit

LISTENER = "listener.name."
"""Begins the configs of one listener, which belong to one broker."""


@dataclass(frozen=True, slots=True)
class Known:
    """A config of a broker. `least`: numbers from there on; None: a string.

    `threads`: a broker takes no more than double and no less than half of what it has.
    `topic`: the topic config that follows it; `topic_default`: where that has a default and the broker's has none.
    """

    default: str | None
    least: int | None = None
    choices: tuple[str, ...] = ()
    read_only: bool = False
    sensitive: bool = False
    per_listener: bool = False
    threads: bool = False
    topic: str = ""
    topic_default: str | None = None

    def wrong(self, name: str, value: str) -> str | None:
        """Why a broker does not take this value, in its words."""
        if self.least is not None:
            if not value.removeprefix("-").isdecimal():
                return f"Invalid value {value} for configuration {name}: Not a number of type LONG"
            if int(value) < self.least:
                return f"Invalid value {value} for configuration {name}: Value must be at least {self.least}"
        if self.choices and value not in self.choices:
            choices = ", ".join(self.choices)
            return f"Invalid value {value} for configuration {name}: String must be one of: {choices}"
        return None


KNOWN: Mapping[str, Known] = {
    "background.threads": Known("10", least=1, threads=True),
    "compression.type": Known("producer", choices=("gzip", "producer", "zstd"), topic="compression.type"),
    "log.cleaner.delete.retention.ms": Known("86400000", least=0, topic="delete.retention.ms"),
    "log.cleaner.threads": Known("1", least=0),
    "log.cleanup.policy": Known("delete", choices=("compact", "delete"), topic="cleanup.policy"),
    "log.retention.bytes": Known("-1", least=-1, topic="retention.bytes"),
    "log.retention.hours": Known("168", least=-1, read_only=True),
    "log.retention.ms": Known(None, least=-1, topic="retention.ms", topic_default="604800000"),
    "message.max.bytes": Known("1048588", least=0, topic="max.message.bytes"),
    "min.insync.replicas": Known("1", least=1, topic="min.insync.replicas"),
    "node.id": Known("1", least=0, read_only=True),
    "num.io.threads": Known("8", least=1, threads=True),
    "ssl.keystore.location": Known(None, per_listener=True),
    "ssl.keystore.password": Known(None, sensitive=True, per_listener=True),
}


@dataclass
class MemoryLevels:
    """`set_at`: what is set at each entity. `static`: the brokers' `server.properties`; `topics`: those there are.

    `unknown`: names that these brokers, of another version, do not have. `writes` counts write requests; `denied`
    names the operations (`describe`, `alter`) that are not permitted. Not `reachable`, it answers nothing.
    `incremental`: whether brokers know IncrementalAlterConfigs.
    """

    alias: str
    up: tuple[str, ...] = ("1",)
    static: dict[str, str] = field(default_factory=dict)
    topics: set[str] = field(default_factory=set)
    set_at: dict[ConfigEntity, dict[str, str]] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    denied: set[str] = field(default_factory=set)
    reachable: bool = True
    incremental: bool = True
    writes: int = 0

    def brokers(self) -> list[str]:
        permit(self.alias, self.reachable, self.denied, "describe")
        return list(self.up)

    def describe(self, entities: Collection[ConfigEntity]) -> Observed[ConfigEntity, Levels]:
        permit(self.alias, self.reachable, self.denied, "describe")
        faults = {entity: fault for entity in entities if (fault := self._absent(entity))}
        return Observed({entity: self._levels(entity) for entity in entities if entity not in faults}, faults)

    def alter(
        self, wanted: Mapping[ConfigEntity, ConfigValues], validate_only: bool = False
    ) -> dict[ConfigEntity, ItemFault | None]:
        permit(self.alias, self.reachable, self.denied, "alter")
        if not self.incremental:
            raise IncrementalUnsupported(f"{self.alias}: the broker does not know IncrementalAlterConfigs")
        self.writes += bool(wanted) and not validate_only
        faults: dict[ConfigEntity, ItemFault | None] = {}
        for entity, changes in wanted.items():
            faults[entity] = self._absent(entity) or self._refusal(entity, changes)
            if faults[entity] is None and not validate_only:
                merged = {**self.set_at.get(entity, {}), **changes}
                self.set_at[entity] = {name: value for name, value in merged.items() if value is not None}
        return faults

    def _absent(self, entity: ConfigEntity) -> ItemFault | None:
        if entity.type is ResourceType.TOPIC:
            return None if entity.name in self.topics else GONE
        return None if entity.name in ("", *self.up) else no_broker(entity.name, self.up)

    def _known(self) -> dict[str, Known]:
        return {name: known for name, known in KNOWN.items() if name not in self.unknown}

    def _refusal(self, entity: ConfigEntity, changes: ConfigValues) -> ItemFault | None:
        written = {name: value for name, value in changes.items() if value is not None}
        if entity.type is ResourceType.TOPIC:
            return self._topic_refusal(written)
        known = self._known()
        rules = (
            ("Cannot update these configs dynamically", [n for n in written if n in known and known[n].read_only]),
            (
                "These security configs can be dynamically updated only per-listener using the listener prefix",
                [n for n in written if n in known and known[n].per_listener],
            ),
            (
                "Cannot update these configs at default cluster level, broker id must be specified",
                [n for n in written if n.startswith(LISTENER) and not entity.name],
            ),
        )
        reasons = [f"{reason}: [{', '.join(names)}]" for reason, names in rules if names]
        reasons += [wrong for n, value in written.items() if n in known and (wrong := known[n].wrong(n, value))]
        reasons += (
            [] if reasons else self._jumps({n: int(v) for n, v in written.items() if n in known and known[n].threads})
        )
        return ItemFault("INVALID_REQUEST", reasons[0]) if reasons else None

    def _jumps(self, threads: Mapping[str, int]) -> Iterator[str]:
        """`DynamicThreadPool.validateReconfiguration`."""
        now = self._levels(ConfigEntity(ResourceType.BROKER, self.up[0]))
        for name, wanted in threads.items():
            current = int(now[name].value or 0)
            failed = f"Dynamic thread count update validation failed for {name}={wanted}, value should"
            if wanted > current * 2:
                yield f"{failed} not be greater than double the current value {current}"
            if wanted < current // 2:
                yield f"{failed} be at least half the current value {current}"

    def _topic_refusal(self, written: Mapping[str, str]) -> ItemFault | None:
        known = {one.topic: one for one in self._known().values() if one.topic}
        for name, value in written.items():
            if name not in known:
                return ItemFault("INVALID_CONFIG", f"Unknown topic config name: {name}")
            if wrong := known[name].wrong(name, value):
                return ItemFault("INVALID_CONFIG", wrong)
        return None

    def _levels(self, entity: ConfigEntity) -> Levels:
        if entity == DEFAULT_OF_ALL:
            return {name: self._entry(entity, name, Known(None)) for name in self.set_at.get(entity, {})}
        known = self._known()
        if entity.type is ResourceType.TOPIC:
            return {one.topic: self._entry(entity, name, one) for name, one in known.items() if one.topic}
        custom = {*self.set_at.get(entity, {}), *self.set_at.get(DEFAULT_OF_ALL, {})} - known.keys()
        return {name: self._entry(entity, name, known.get(name, Known(None))) for name in (*known, *custom)}

    def _entry(self, entity: ConfigEntity, name: str, known: Known) -> LevelledEntry:
        sensitive = self._is_sensitive(name)
        levels = [
            Synonym(one.name, None if sensitive else one.value, one.origin) for one in self._set(entity, name, known)
        ]
        if not levels:
            return LevelledEntry(None, Origin.DEFAULT, known.read_only, sensitive)
        return LevelledEntry(levels[0].value, levels[0].origin, known.read_only, sensitive, tuple(levels))

    def _is_sensitive(self, name: str) -> bool:
        """A broker hides what it does not know, since it might be a secret."""
        known = self._known().get(name.split(".", 3)[3] if name.startswith(LISTENER) else name)
        return known is None or known.sensitive

    def _set(self, entity: ConfigEntity, name: str, known: Known) -> Iterator[Synonym]:
        """Every level that has a value, in the order of precedence (KIP-226)."""
        if entity.type is ResourceType.TOPIC and known.topic in self.set_at.get(entity, {}):
            yield Synonym(known.topic, self.set_at[entity][known.topic], Origin.TOPIC)
        # A topic follows the broker that answers.
        broker = ConfigEntity(ResourceType.BROKER, self.up[0]) if entity.type is ResourceType.TOPIC else entity
        dynamic = ((broker, Origin.BROKER), (DEFAULT_OF_ALL, Origin.CLUSTER))
        for level, origin in dynamic[1:] if broker == DEFAULT_OF_ALL else dynamic:
            if name in self.set_at.get(level, {}):
                yield Synonym(name, self.set_at[level][name], origin)
        if entity == DEFAULT_OF_ALL:
            return
        if name in self.static:
            yield Synonym(name, self.static[name], Origin.STATIC)
        default = known.default or (known.topic_default if entity.type is ResourceType.TOPIC else None)
        if default is not None:
            yield Synonym(name, default, Origin.DEFAULT)
