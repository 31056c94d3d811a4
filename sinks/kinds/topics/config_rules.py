"""The configs of topics (KIP-894): what each key should be on the target, and the difference. Pure.

| the key on the source            | `use.defaults.from=target`     | `use.defaults.from=source`               |
|----------------------------------|--------------------------------|------------------------------------------|
| overridden on the topic          | SET to the same value          | SET to the same value                    |
| at any default                   | no override: DELETE if there   | SET, where another value is in force     |
| excluded by the filter           | never planned                  | never planned                            |
| read-only or sensitive           | never touched, counted         | never touched, counted                   |
| unknown to the source            | never touched                  | never touched                            |

What is never planned is never written where IncrementalAlterConfigs is. The old AlterConfigs replaces all configs of
a topic: `config_writer` reads them right before and writes them back, so it undoes what another client changes in
between.

An override is what is set on the topic itself. MM2 counts a broker's dynamic default as an override, too:
`ConfigEntry.isDefault` is false for it. So MM2 pins the source brokers' settings on each remote topic. Here they are a
default like any other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from sinks.kafka.ports.cluster import ConfigEntry, TopicConfigs
from sinks.model.changes import Change, Kind
from streaming.mm2.replication_filters import ConfigPropertyFilter


class Goal(Enum):
    """What is wanted of a key: an override of a value, no override, or a value in force however it comes about."""

    OVERRIDE = "override"
    NO_OVERRIDE = "no override"
    IN_FORCE = "in force"


@dataclass(frozen=True, slots=True)
class DesiredConfig:
    """`value` is None for NO_OVERRIDE alone."""

    goal: Goal
    value: str | None = None

    def met_by(self, entry: ConfigEntry | None) -> bool:
        """Whether what the target has is already so."""
        if self.goal is Goal.NO_OVERRIDE:
            return entry is None or not entry.is_override
        if entry is None or entry.value != self.value:
            return False
        return self.goal is Goal.IN_FORCE or entry.is_override


@dataclass(frozen=True)
class DesiredConfigs:
    """Per config name what is wanted; `skipped` counts by reason the overrides that cannot be copied."""

    wanted: Mapping[str, DesiredConfig]
    skipped: Counter[str] = field(default_factory=Counter)

    def overrides(self) -> tuple[tuple[str, str], ...]:
        """What a topic that does not exist yet is created with."""
        return tuple(sorted((name, wanted.value) for name, wanted in self.wanted.items() if wanted.value is not None))


def desired_configs(source: TopicConfigs, rules: ConfigPropertyFilter) -> DesiredConfigs:
    """The source topic's configs in the target's terms, by the table above."""
    wanted: dict[str, DesiredConfig] = {}
    skipped: Counter[str] = Counter()
    for name, entry in source.items():
        if not rules.should_replicate_config_property(name):
            continue
        if entry.read_only or entry.sensitive:
            if entry.is_override:
                skipped["sensitive configs" if entry.sensitive else "read-only configs"] += 1
        elif entry.is_override and entry.value is not None:
            wanted[name] = DesiredConfig(Goal.OVERRIDE, entry.value)
        elif rules.should_replicate_source_default(name) and entry.value is not None:
            wanted[name] = DesiredConfig(Goal.IN_FORCE, entry.value)
        else:
            wanted[name] = DesiredConfig(Goal.NO_OVERRIDE)
    return DesiredConfigs(wanted, skipped)


def plan_configs(remote: str, desired: DesiredConfigs, target: TopicConfigs) -> list[Change]:
    """The difference of one topic. `before` is the target's override, or None when the key is at a default there."""
    changes = []
    for name, wanted in desired.wanted.items():
        entry = target.get(name)
        if wanted.met_by(entry) or (entry is not None and (entry.read_only or entry.sensitive)):
            continue
        before = entry.value if entry is not None and entry.is_override else None
        changes.append(Change(Kind.TOPIC_CONFIG, (remote, name), before, wanted.value))
    return changes
