"""What the target's version will refuse of a config, so that a plan says it before anything is tried. Pure.

| the target's brokers                              | refused                                                     |
|---------------------------------------------------|-------------------------------------------------------------|
| do not show the config among all of a topic's     | every value: a broker takes no name that it does not know   |
| show no `message.format.version`: Kafka 4.0 on    | values below the least that 4.0 takes                       |

Lockstep need not ask for the version: a broker that describes a topic lists all the configs that it knows
(`LogConfig.configNames`). What it shows of any topic holds for all, also for those that are still to be created.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from sinks.faults import REMEDY_OF_CODE
from sinks.model.changes import Change, Kind
from sinks.model.plan import Refusal

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
    """Why a topic on the cluster `alias` cannot have this override; None: nothing speaks against it.

    `known`: the names of all configs that a topic has there. None are known: nothing is refused beforehand.
    """
    if not known:
        return None
    if name not in known:
        hint = REMOVED_CONFIGS.get(name, "its version is another one than the source's")
        return f"the brokers of {alias} do not know {name}: {hint}. Take it away on the source, or exclude it"
    return None if BEFORE_4 in known else too_small(name, value, alias)


def too_small(name: str, value: str, alias: str) -> str | None:
    """Why a cluster of Kafka 4.0 or later does not take a value; `name`: of a topic's config, or of the brokers'."""
    least = LEAST_VALUES.get(name)
    if least is None or not value.removeprefix("-").isdecimal() or int(value) >= least:
        return None
    return f"the brokers of {alias} take no {name} below {least} (KIP-1030, from Kafka 4.0 on): raise it on the source"


def split(changes: Iterable[Change], known: Collection[str], alias: str) -> tuple[list[Change], list[Refusal]]:
    """The changes of topics' configs that may be tried, and those that the target would refuse."""
    left: list[Change] = []
    refused: list[Refusal] = []
    for change in changes:
        after = change.after if isinstance(change.after, str) else None
        reason = why_refused(change.key[1], after, known, alias) if after is not None else None
        if reason is None:
            left.append(change)
        else:
            refused.append(Refusal(change.kind, change.op, change.key, reason, remedy=REMEDY_OF_CODE["INVALID_CONFIG"]))
    return left, refused


def split_overrides(
    topic: str, overrides: Iterable[tuple[str, str]], known: Collection[str], alias: str
) -> tuple[tuple[tuple[str, str], ...], list[Refusal]]:
    """As `split`, for the configs that a topic of this name would be created with."""
    changes = (Change(Kind.TOPIC_CONFIG, (topic, name), None, value) for name, value in overrides)
    left, refused = split(changes, known, alias)
    return tuple((change.key[1], str(change.after)) for change in left), refused
