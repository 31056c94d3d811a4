"""Finds configs of topics and brokers that the target refuses: before the write by the target's version, or by halving
a refused request.

IncrementalAlterConfigs takes all configs of a topic or broker or none. A refused request says that some config is
wrong, not which. Halving finds it in few requests, and writes the others on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from sinks.faults import ItemFault
from sinks.kafka.ports.cluster import Faults
from sinks.model.changes import Change, Outcome

# What the target's version will refuse, so that a plan says it. Pure.
#
# | the target's brokers                              | refused                                                     |
# |---------------------------------------------------|-------------------------------------------------------------|
# | do not show the config among all of a topic's     | every value: a broker takes no name that it does not know   |
# | show no `message.format.version`: Kafka 4.0 on    | values below the least that 4.0 takes                       |
#
# Lockstep need not ask for the version: a broker that describes a topic lists all the configs that it knows
# (`LogConfig.configNames`). What it shows of any topic holds for all, also for those that are still to be created.


REMOVED_CONFIGS: Mapping[str, str] = {
    "message.format.version": "Kafka 4.0 removed it (KIP-724), and it has no effect from 3.0 on",
    "message.timestamp.difference.max.ms": (
        "Kafka 4.0 removed it, and has message.timestamp.before.max.ms and message.timestamp.after.max.ms (KIP-937)"
    ),
}
"""Configs that later versions of Kafka lack, and why."""

BEFORE_4 = "message.format.version"
"""Each version before 4.0 shows this config for every topic; later versions do not."""

LEAST_VALUES: Mapping[str, int] = {"segment.bytes": 1024 * 1024, "log.segment.bytes": 1024 * 1024}
"""Least value in bytes that Kafka accepts from 4.0 on (KIP-1030), by config of a topic or of brokers."""


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


# What the target's answer to a write refuses.


REFUSALS = frozenset({"INVALID_CONFIG", "POLICY_VIOLATION", "INVALID_REQUEST"})
"""Errors with which a broker refuses a config. Other faults concern the whole topic, and halving would not help."""

Values = dict[str, str | None]
KeyFaults = dict[tuple[str, str], ItemFault]
Write = Callable[[Mapping[str, Values]], Faults]


def write_configs(changes: Sequence[Change], write: Write) -> list[Outcome]:
    """Write changes of configs as `write_halving` does. Returns an outcome per change."""
    wanted: dict[str, Values] = {}
    for change in changes:
        item, name = change.key
        wanted.setdefault(item, {})[name] = change.after if isinstance(change.after, str) else None
    faults = write_halving(wanted, write)
    return [Outcome(change, faults.get((change.key[0], change.key[1]))) for change in changes]


def write_halving(wanted: Mapping[str, Values], write: Write) -> KeyFaults:
    """Write all configs. If a topic is refused, halve its configs until each refused one is alone. Returns faults by
    (topic, config)."""
    faults: KeyFaults = {}
    halves: tuple[dict[str, Values], dict[str, Values]] = ({}, {})
    for topic, fault in write(wanted).items():
        if fault is None:
            continue
        names = list(wanted[topic])
        if fault.code in REFUSALS and len(names) > 1:
            middle = len(names) // 2
            for half, part in zip(halves, (names[:middle], names[middle:]), strict=True):
                half[topic] = {name: wanted[topic][name] for name in part}
        else:
            faults |= {(topic, name): fault for name in names}
    for half in halves:
        if half:
            faults |= write_halving(half, write)
    return faults
