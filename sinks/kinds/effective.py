"""Configs that are set on neither side, and differ in effect all the same (drift `effective`). Pure.

| on the source                       | on the target            | reported                                           |
|-------------------------------------|--------------------------|----------------------------------------------------|
| set where Lockstep copies it from   | anything                 | no: the plan writes it                             |
| at a default                        | set on the topic         | no: the plan takes it away                         |
| at a default                        | at a default, same value | no                                                 |
| at a default                        | other value in force     | yes                                                |
| at a default, `use.defaults.from=source` | other value in force | no for topics: the plan writes the source's value |
| `message.format.version` at a default | 3.0 or later in force | no: the target's brokers do not heed it       |

For a broker, what is set on that broker alone does not count: it is there for a trial (KIP-226, goal 3).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sinks.kafka.ports.cluster import Origin
from sinks.kafka.ports.config_levels import Levels
from sinks.model.changes import Kind
from sinks.model.effective_drift import DifferingConfig, DriftGroup, grouped
from streaming.flow import Flow

ORIGIN_WORDS: Mapping[Origin, str] = {
    Origin.TOPIC: "set on the topic",
    Origin.BROKER: "set on the broker",
    Origin.CLUSTER: "the cluster-wide default",
    Origin.STATIC: "the brokers' server.properties",
    Origin.DEFAULT: "Kafka's built-in default",
    Origin.UNKNOWN: "a level that the broker does not name",
}

AT_DEFAULT = frozenset({Origin.STATIC, Origin.DEFAULT})
"""Origins of a broker's config that no client set at run time."""

OLDER: Mapping[str, tuple[tuple[str, int], ...]] = {
    "log.flush.interval.ms": (("log.flush.scheduler.interval.ms", 1),),
    "log.retention.ms": (("log.retention.minutes", 60_000), ("log.retention.hours", 3_600_000)),
    "log.roll.jitter.ms": (("log.roll.jitter.hours", 3_600_000),),
    "log.roll.ms": (("log.roll.hours", 3_600_000),),
}
"""The configs that a broker falls back to if a config has no value, each with its factor to the unit of that config
(`KafkaConfig`)."""

REMEDY: Mapping[Kind, str] = {
    Kind.TOPIC_CONFIG: "set use.defaults.from=source, or make the brokers' defaults the same",
    Kind.BROKER_CONFIG: "set it cluster-wide on the source, or make both sides' server.properties the same",
}


@dataclass(frozen=True, slots=True)
class Side:
    """A value in force, and the level that sets it."""

    value: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class Drift:
    """One config that differs in effect. `item`: the remote topic; "" for the brokers."""

    kind: Kind
    item: str
    name: str
    source: Side
    target: Side

    @property
    def case(self) -> DifferingConfig:
        """Returns the drift without its topic, to group equal drifts of several topics."""
        return DifferingConfig(self.kind, self.name, self.source.value, self.target.value)


def groups_of(drifts: Iterable[Drift]) -> tuple[DriftGroup, ...]:
    return grouped(Counter(drift.case for drift in drifts))


def effective_side(levels: Levels, name: str) -> Side | None:
    """Returns the value in force on a broker without a value of its own; None if the value is hidden or unset."""
    entry = levels.get(name)
    if entry is None or entry.sensitive:
        return None
    for one in entry.synonyms:
        if one.origin is not Origin.BROKER and one.value is not None:
            return Side(one.value, one.origin)
    for older, factor in OLDER.get(name, ()):
        found = effective_side(levels, older)
        if found is not None:
            # -1 is "without end" in every unit.
            return found if int(found.value) < 0 else Side(str(int(found.value) * factor), found.origin)
    return None


def warnings(flow: Flow, drifts: Iterable[Drift]) -> list[str]:
    """Returns a sentence for each config and pair of values: number of topics, and what to do."""
    items: dict[tuple[Kind, str, Side, Side], list[str]] = {}
    for drift in drifts:
        items.setdefault((drift.kind, drift.name, drift.source, drift.target), []).append(drift.item)
    return [_warning(flow, *case, found) for case, found in items.items()]


def _warning(flow: Flow, kind: Kind, name: str, source: Side, target: Side, items: list[str]) -> str:
    if not kind.row.per_topic:
        whose = "the brokers"
    else:
        whose = items[0] if len(items) == 1 else f"{len(items)} topics, {items[0]} among them"
    both = kind.row.per_topic or {source.origin, target.origin} <= AT_DEFAULT
    why = "both at their default, but the defaults differ" if both else "set on one side alone, and not copied"
    return (
        f"{name} of {whose}: {why}: {source.value} on {flow.source} ({ORIGIN_WORDS[source.origin]}), "
        f"{target.value} on {flow.target} ({ORIGIN_WORDS[target.origin]}); {REMEDY[kind]}"
    )
