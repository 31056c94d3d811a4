"""The brokers' cluster-wide dynamic configs (KIP-226) that the target should have. Pure.

| the key in the source's cluster-wide default | on the target                                             |
|----------------------------------------------|-----------------------------------------------------------|
| set, chosen by the list                      | SET to the same value                                     |
| not set, chosen by the list                  | DELETE if Lockstep had set it, else never touched         |
| not chosen by the list                       | never touched                                             |
| of one broker, a listener, SSL or SASL       | never touched, counted, even where the list chooses it    |
| read-only or sensitive                       | never touched, counted                                    |
| not known to the target's brokers            | refused: a broker would take it for a custom config       |
| less than the target's version takes         | refused (`sinks.kinds.refused_configs`)               |

Lockstep copies only the cluster-wide default, not values from `server.properties` or defaults of the version.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from sinks.faults import REMEDY_OF_CODE
from sinks.kafka.ports.config_levels import Levels
from sinks.kinds.refused_configs import BEFORE_4, too_small
from sinks.model.changes import Change, Key, Kind
from sinks.model.plan import Refusal
from sinks.model.principals import names_in

PROPERTIES = "lockstep.broker.config.properties"

GROUPS: Mapping[str, tuple[str, ...]] = {
    "default topic configs": (
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.type",
        "compression.zstd.level",
        "log.cleaner.delete.retention.ms",
        "log.cleaner.max.compaction.lag.ms",
        "log.cleaner.min.cleanable.ratio",
        "log.cleaner.min.compaction.lag.ms",
        "log.cleanup.policy",
        "log.flush.interval.messages",
        "log.flush.interval.ms",
        "log.index.interval.bytes",
        "log.index.size.max.bytes",
        "log.local.retention.bytes",
        "log.local.retention.ms",
        "log.message.timestamp.after.max.ms",
        "log.message.timestamp.before.max.ms",
        "log.message.timestamp.difference.max.ms",
        "log.message.timestamp.type",
        "log.preallocate",
        "log.retention.bytes",
        "log.retention.ms",
        "log.roll.jitter.ms",
        "log.roll.ms",
        "log.segment.bytes",
        "log.segment.delete.delay.ms",
        "message.max.bytes",
        "min.insync.replicas",
        "unclean.leader.election.enable",
    ),
    "log cleaner": (
        "log.cleaner.backoff.ms",
        "log.cleaner.dedupe.buffer.size",
        "log.cleaner.io.buffer.load.factor",
        "log.cleaner.io.buffer.size",
        "log.cleaner.io.max.bytes.per.second",
        "log.cleaner.threads",
    ),
    "threads": (
        "background.threads",
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "num.replica.fetchers",
    ),
}
"""KIP-226's groups of cluster-wide configs, by the names that brokers have for them today. Leaves out its configs in
minutes and hours, because no broker changes them at run time (`DynamicLogConfig.ReconfigurableConfigs`)."""

LEFT_OUT = frozenset(
    {
        "log.message.timestamp.after.max.ms",
        "log.message.timestamp.before.max.ms",
        "log.message.timestamp.difference.max.ms",
        "log.message.timestamp.type",
        "min.insync.replicas",
        "unclean.leader.election.enable",
    }
)
"""Configs that are not copied to brokers unless the file names them, as MM2's `config.properties.exclude` does for
topics. With a `min.insync.replicas` of 2 a target of one broker would refuse `acks=all`. Brokers of Kafka 4 set one
themselves."""

DEFAULT_PROPERTIES = ", ".join(name for names in GROUPS.values() for name in names if name not in LEFT_OUT)

NEVER_COPIED: Mapping[str, re.Pattern[str]] = {
    "broker configs of listeners": re.compile(
        r"listener\.name\..*|(advertised\.)?listeners|listener\.security\.protocol\.map|max\.connections.*"
    ),
    "broker configs of SSL and SASL": re.compile(r"(.*\.)?(ssl|sasl)\..*|principal\.builder\.class"),
    "broker configs of one broker": re.compile(
        r"(broker|node)\.(id|rack)|log\.dirs?|cordoned\.log\.dirs"
        r"|(leader|follower)\.replication\.throttled\.rate|replica\.alter\.log\.dirs\.io\.max\.bytes\.per\.second"
    ),
}
"""Configs of one broker, of its place in the network or of a running reassignment, by the text that counts them."""


class BrokerConfigRules:
    """`lockstep.broker.config.properties`: a list of names and patterns, read as MM2 reads its lists."""

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        """Raises LockstepError for a malformed list; the error names the key and the pattern."""
        self._names = names_in(properties or {}, PROPERTIES, DEFAULT_PROPERTIES)

    def chooses(self, name: str) -> bool:
        """Whether the list names this config."""
        return self._names.should_replicate_topic(name)

    def syncs(self, name: str) -> bool:
        """Whether the list names this config, and Lockstep may copy it."""
        return self.chooses(name) and why_never(name) is None


def why_never(name: str) -> str | None:
    """Returns why a config is never copied, whatever the list says."""
    return next((reason for reason, pattern in NEVER_COPIED.items() if pattern.fullmatch(name)), None)


@dataclass(frozen=True)
class DesiredBrokerConfigs:
    """The configs that the target's cluster-wide default should have. `set_there`: names of all configs that are set on
    the source, copied or not."""

    wanted: Mapping[str, str] = field(default_factory=dict)
    set_there: frozenset[str] = frozenset()
    skipped: Counter[str] = field(default_factory=Counter)


def desired_broker_configs(source: Levels, rules: BrokerConfigRules) -> DesiredBrokerConfigs:
    """Returns the configs that the target should have. `source`: the source's cluster-wide default."""
    wanted: dict[str, str] = {}
    skipped: Counter[str] = Counter()
    for name, entry in source.items():
        if not rules.chooses(name):
            continue
        if reason := why_never(name):
            skipped[reason] += 1
        elif entry.sensitive or entry.read_only:
            skipped["sensitive broker configs" if entry.sensitive else "read-only broker configs"] += 1
        elif entry.value is not None:
            wanted[name] = entry.value
    return DesiredBrokerConfigs(wanted, frozenset(source), skipped)


def differing(desired: DesiredBrokerConfigs, target: Levels) -> set[str]:
    """Returns the names whose value must be written. `target`: its cluster-wide default. Leaves out hidden values."""
    there = {name: entry.value for name, entry in target.items()}
    hidden = {name for name, entry in target.items() if entry.sensitive}
    return {name for name, value in desired.wanted.items() if there.get(name) != value} - hidden


def same(desired: DesiredBrokerConfigs, target: Levels) -> set[str]:
    """Returns the names that already have the source's value, as far as it can be read."""
    readable = {name: entry.value for name, entry in target.items() if not entry.sensitive}
    return {name for name, value in desired.wanted.items() if readable.get(name) == value}


def surplus(
    desired: DesiredBrokerConfigs, target: Levels, owned: AbstractSet[Key], rules: BrokerConfigRules
) -> set[str]:
    """Returns the names that Lockstep set on the target and the source no longer has."""
    ours = {name for broker, name in owned if broker == ""}
    gone = ours & target.keys() - desired.set_there
    return {name for name in gone if rules.syncs(name) and not target[name].sensitive}


def plan_broker_configs(
    desired: DesiredBrokerConfigs, target: Levels, deletions: AbstractSet[str], known: Levels, alias: str
) -> tuple[list[Change], list[Refusal]]:
    """Returns the changes to write, and refusals of configs that the target's brokers cannot have.

    `deletions`: the result of `surplus`. `known`: returns all configs of a broker of the target; called only for names
    that differ. `alias`: the target's.
    """
    changes: list[Change] = []
    refused: list[Refusal] = []
    for name in sorted(differing(desired, target)):
        before = target[name].value if name in target else None
        change = Change(Kind.BROKER_CONFIG, ("", name), before, desired.wanted[name])
        if reason := _why_not(name, desired.wanted[name], known, alias):
            refused.append(Refusal(change.kind, change.op, change.key, reason, remedy=REMEDY_OF_CODE["INVALID_CONFIG"]))
        else:
            changes.append(change)
    for name in sorted(deletions):
        changes.append(Change(Kind.BROKER_CONFIG, ("", name), target[name].value, None))
    return changes, refused


def _why_not(name: str, value: str, known: Levels, alias: str) -> str | None:
    if name not in known or known[name].sensitive:
        return f"the brokers of {alias} do not know {name}: take it out of {PROPERTIES}, or upgrade them"
    if known[name].read_only:
        return f"{name} cannot change at run time on {alias}: set it in the brokers' server.properties"
    return None if f"log.{BEFORE_4}" in known else too_small(name, value, alias)
