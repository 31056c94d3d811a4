"""The configs of topics (KIP-894): what each key should be on the target, and the difference. Pure.

| the key on the source            | `use.defaults.from=target`     | `use.defaults.from=source`               |
|----------------------------------|--------------------------------|------------------------------------------|
| overridden on the topic          | SET to the same value          | SET to the same value                    |
| at any default                   | no override: DELETE if there   | SET, where another value is in force     |
| excluded by the filter           | never planned                  | never planned                            |
| read-only or sensitive           | never touched, counted         | never touched, counted                   |
| unknown to the source            | never touched                  | never touched                            |

What is never planned is never written where IncrementalAlterConfigs is. The old AlterConfigs replaces all configs of
a topic: `ConfigWriter` reads them right before and writes them back, so it undoes what another client changes in
between.

An override is what is set on the topic itself. MM2 counts a broker's dynamic default as an override, too:
`ConfigEntry.isDefault` is false for it. So MM2 pins the source brokers' settings on each remote topic. Here they are a
default like any other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from sinks.faults import REMEDY_OF_CODE
from sinks.kafka.ports.cluster import ConfigEntry, TopicConfigs
from sinks.kinds.topics.effective import Drift, Side
from sinks.model.changes import Change, Kind
from sinks.model.plan import Refusal
from streaming.mm2.replication_filters import ConfigPropertyFilter


@dataclass
class PlannedConfigs:
    """What differs of one topic's configs."""

    changes: list[Change] = field(default_factory=list)
    """`before`: the target's override; None if the config has a default there."""
    refused: list[Refusal] = field(default_factory=list)
    """Changes that the target would not take."""
    skipped: Counter[str] = field(default_factory=Counter)
    """How many overrides cannot be copied, by reason."""
    drifts: list[Drift] = field(default_factory=list)
    """Configs that differ in effect although nothing is to be written, by name."""


def plan_configs(
    remote: str,
    source: TopicConfigs,
    target: TopicConfigs,
    rules: ConfigPropertyFilter,
    *,
    known: Collection[str],
    alias: str,
) -> PlannedConfigs:
    """Returns what differs of one topic by the table above. `target`: the topic's configs, none for a topic that the
    target lacks. `known`, `alias`: as for `why_refused`."""
    found = PlannedConfigs()
    # Sorted, as what drifts is shown by name.
    for name, entry in sorted(source.items()):
        if not rules.should_replicate_config_property(name):
            continue
        there, copies_default = target.get(name), rules.should_replicate_source_default(name)
        if there and not copies_default and (drift := _drift(remote, name, entry, there)):
            found.drifts.append(drift)
        if entry.read_only or entry.sensitive:
            if entry.is_override:
                found.skipped["sensitive configs" if entry.sensitive else "read-only configs"] += 1
            continue
        in_force, before = (there.value, there.value if there.is_override else None) if there else (None, None)
        wanted, present = None, before
        if entry.is_override and entry.value is not None:
            wanted = entry.value
        elif copies_default and entry.value is not None:
            # What sets it on the target does not matter.
            wanted, present = entry.value, in_force
        if wanted == present or (there and (there.read_only or there.sensitive)):
            continue
        change = Change(Kind.TOPIC_CONFIG, (remote, name), before, wanted)
        if wanted is not None and (reason := why_refused(name, wanted, known, alias)):
            remedy = REMEDY_OF_CODE["INVALID_CONFIG"]
            found.refused.append(Refusal(change.kind, change.op, change.key, reason, remedy=remedy))
        else:
            found.changes.append(change)
    return found


def _drift(remote: str, name: str, here: ConfigEntry, there: ConfigEntry) -> Drift | None:
    """Returns the drift of a config that is set on neither side, and differs in effect all the same."""
    if here.is_override or there.is_override or here.sensitive or there.sensitive:
        return None
    if here.value is None or there.value is None or here.value == there.value:
        return None
    if name == "message.format.version" and not there.value.startswith(("0.", "1.", "2.")):
        # Brokers ignore the record format since 3.0 (KIP-724).
        return None
    return Drift(Kind.TOPIC_CONFIG, remote, name, Side(here.value, here.origin), Side(there.value, there.origin))


# What the target's version will refuse of a config, so that a plan says it before anything is tried. Pure.
#
# | the target's brokers                              | refused                                                     |
# |---------------------------------------------------|-------------------------------------------------------------|
# | do not show the config among all of a topic's     | every value: a broker takes no name that it does not know   |
# | show no `message.format.version`: Kafka 4.0 on    | values below the least that 4.0 takes                       |
#
# Lockstep need not ask for the version: a broker that describes a topic lists all the configs that it knows
# (`LogConfig.configNames`). What it shows of any topic holds for all, also for those that are still to be created.


REMOVED_CONFIGS: Mapping[str, str] = {
    "message.format.version": "Kafka 4.0 took it away (KIP-724), and it has no effect from 3.0 on",
    "message.timestamp.difference.max.ms": (
        "Kafka 4.0 took it away, and has message.timestamp.before.max.ms and message.timestamp.after.max.ms (KIP-937)"
    ),
}
"""Configs that later versions have no more, and why."""

BEFORE_4 = "message.format.version"
"""Each version before 4.0 shows it for every topic, and none from there on."""

LEAST_VALUES: Mapping[str, int] = {"segment.bytes": 1024 * 1024, "log.segment.bytes": 1024 * 1024}
"""Bytes: the least that Kafka takes from 4.0 on (KIP-1030), of a topic and of the brokers."""


def why_refused(name: str, value: str, known: Collection[str], alias: str) -> str | None:
    """Returns why a topic on the cluster `alias` cannot have this override; None if it can.

    `known`: names of all configs that a topic has there. If it is empty, no override is refused beforehand.
    """
    if not known:
        return None
    if name not in known:
        hint = REMOVED_CONFIGS.get(name, "its version is another one than the source's")
        return f"the brokers of {alias} do not know {name}: {hint}. Take it away on the source, or exclude it"
    return None if BEFORE_4 in known else too_small(name, value, alias)


def too_small(name: str, value: str, alias: str) -> str | None:
    """Returns why brokers of Kafka 4.0 or later refuse a value. `name`: config of a topic or of brokers."""
    least = LEAST_VALUES.get(name)
    if least is None or not value.removeprefix("-").isdecimal() or int(value) >= least:
        return None
    return f"the brokers of {alias} take no {name} below {least} (KIP-1030, from Kafka 4.0 on): raise it on the source"
