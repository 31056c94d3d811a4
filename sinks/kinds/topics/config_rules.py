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
from collections.abc import Collection
from dataclasses import dataclass, field

from sinks.faults import REMEDY_OF_CODE
from sinks.kafka.ports.cluster import ConfigEntry, TopicConfigs
from sinks.kinds.effective import Drift, Side
from sinks.kinds.refused_configs import why_refused
from sinks.model.changes import Change, Kind
from sinks.model.plan import Refusal
from streaming.mm2.replication_filters import ConfigPropertyFilter


@dataclass
class PlannedConfigs:
    """The differences of one topic's configs."""

    changes: list[Change] = field(default_factory=list)
    """`before`: the target's override; None if the config has a default there."""
    refused: list[Refusal] = field(default_factory=list)
    """Changes that the target would not accept."""
    skipped: Counter[str] = field(default_factory=Counter)
    """Number of overrides that cannot be copied, by reason."""
    drifts: list[Drift] = field(default_factory=list)
    """Configs that differ in effect although there is nothing to write, by name."""


def plan_configs(
    remote: str,
    source: TopicConfigs,
    target: TopicConfigs,
    rules: ConfigPropertyFilter,
    *,
    known: Collection[str],
    alias: str,
) -> PlannedConfigs:
    """Returns the differences of one topic by the table above. `target`: the topic's configs, empty for a topic that
    the target lacks. `known`, `alias`: as for `why_refused`."""
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
    """Returns the drift of a config that is set on neither side and differs in effect; None if it does not differ."""
    if here.is_override or there.is_override or here.sensitive or there.sensitive:
        return None
    if here.value is None or there.value is None or here.value == there.value:
        return None
    if name == "message.format.version" and not there.value.startswith(("0.", "1.", "2.")):
        # Brokers ignore the record format since 3.0 (KIP-724).
        return None
    return Drift(Kind.TOPIC_CONFIG, remote, name, Side(here.value, here.origin), Side(there.value, there.origin))
