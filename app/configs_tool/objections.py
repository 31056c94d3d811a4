"""What is wrong with an alteration, as far as it can be known before a broker is asked, and what to do instead."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from app.configs_tool.broker_login import JAAS, jaas_note, jaas_objection
from app.configs_tool.config_groups import GROUP_OF, INSTEAD, LISTENER, LISTENER_ANYWHERE, ConfigLevel, base_name
from app.configs_tool.precedence import own_levels
from sinks.kafka.ports.cluster import Origin
from sinks.kafka.ports.config_levels import ConfigEntity, ConfigValues, Levels, ResourceType

NEAR = 0.85
"""How like a known name an unknown one must be to count as a slip, not as a config of a user's own."""


@dataclass(frozen=True, slots=True)
class KnownConfigs:
    """What is known before an alteration: the entity's own configs, those that there are, and the brokers' ids.

    `there`: as a broker, or the topic, describes itself; it has every config that Kafka knows.
    """

    before: Levels
    there: Levels
    brokers: Sequence[str]


def objections(entity: ConfigEntity, wanted: ConfigValues, known: KnownConfigs, custom: bool = False) -> list[str]:
    """Everything that is wrong, a line each. `custom`: unknown names are meant. No line shows a value."""
    return [
        f"{name}: {reason}"
        for name, value in wanted.items()
        if (reason := _wrong(entity, name, value, known, custom)) is not None
    ]


def notes(entity: ConfigEntity, wanted: ConfigValues, known: KnownConfigs) -> list[str]:
    """What is worth a word and no objection: unknown names, deletions of what is not set, idle logins."""
    own = own_levels(entity, known.before)
    listeners = known.there["listeners"].value or "" if "listeners" in known.there else ""
    found = []
    for name, value in wanted.items():
        if value is None and name not in own:
            near = _nearest(name, own, 0.6)
            found.append(f"{name}: is not set there, nothing to delete" + (f"; nearest: {near}" if near else ""))
        elif value is not None and entity.type is ResourceType.BROKER and not _is_known(name, known):
            found.append(f"{name}: no config of Kafka's; brokers keep it for metrics reporters and other plug-ins")
        elif value is not None and (note := jaas_note(name, listeners)):
            found.append(f"{name}: {note}")
    return found


def _wrong(entity: ConfigEntity, name: str, value: str | None, known: KnownConfigs, custom: bool) -> str | None:
    if value is None:
        return None
    if entity.type is ResourceType.TOPIC:
        return None if name in known.there else _unknown_topic_config(name, known.there)
    rules = (_read_only, _needs_listener, _needs_broker)
    found = next((reason for rule in rules if (reason := rule(entity, name, known))), None)
    if found is None and not custom:
        found = _slip(entity, name, known)
    return found or jaas_objection(name, value)


def _unknown_topic_config(name: str, there: Levels) -> str:
    near = _nearest(name, there, 0.6)
    broker = name in GROUP_OF
    hint = "; it is a config of brokers: --entity-type brokers" if broker else ""
    return "topics have no such config" + (f"; nearest: {near}" if near else "") + hint


def _read_only(entity: ConfigEntity, name: str, known: KnownConfigs) -> str | None:
    base = base_name(name)
    entry = known.there.get(name)
    if name in INSTEAD and (entry is None or entry.read_only):
        return f"brokers read it at their start only; {INSTEAD[name]} means the same, and changes at run time"
    if entry is None or not entry.read_only or base in GROUP_OF or entry.sensitive:
        # Brokers call custom configs read-only and sensitive, and take them all the same: they decide.
        return None
    return "brokers read it at their start only: change server.properties, and restart them one after the other"


def _needs_listener(entity: ConfigEntity, name: str, known: KnownConfigs) -> str | None:
    group = GROUP_OF.get(name)
    if group is None or not group.per_listener:
        return None
    return (
        f"changes at run time for one listener only: write listener.name.<listener>.{name}, the listener in lower "
        f"case, and {_per_broker(known.brokers)}"
    )


def _needs_broker(entity: ConfigEntity, name: str, known: KnownConfigs) -> str | None:
    if entity.name:
        return None
    listener = LISTENER.fullmatch(name)
    if listener is not None and listener[2] not in LISTENER_ANYWHERE:
        return f"belongs to a listener of one broker: set it per broker, {_per_broker(known.brokers)}"
    group = GROUP_OF.get(name)
    if group is not None and group.level is ConfigLevel.PER_BROKER:
        return (
            f"is one of {group.title}, which brokers have of their own: set it per broker, {_per_broker(known.brokers)}"
        )
    return None


def _slip(entity: ConfigEntity, name: str, known: KnownConfigs) -> str | None:
    if _is_known(name, known) or name in own_levels(entity, known.before):
        return None
    near = _nearest(base_name(name), _names(known))
    if near is None:
        return None
    prefix = name[: len(name) - len(base_name(name))]
    return (
        f"Kafka has no such config; is {prefix}{near} meant? If it is a config of a metrics reporter's or another "
        "plug-in's own, say --custom"
    )


def _is_known(name: str, known: KnownConfigs) -> bool:
    base = base_name(name)
    return base in _names(known) or base.endswith(f".{JAAS}") or _after_mechanism(base) in _names(known)


def _after_mechanism(base: str) -> str:
    return base.partition(".")[2]


def _names(known: KnownConfigs) -> set[str]:
    # A broker describes custom configs, too: as sensitive ones that it does not have itself.
    own = {name for name, entry in known.there.items() if entry.origin in (Origin.STATIC, Origin.DEFAULT)}
    return own | GROUP_OF.keys()


def _nearest(name: str, names: Collection[str], cutoff: float = NEAR) -> str | None:
    return next(iter(difflib.get_close_matches(name, sorted(names), 1, cutoff)), None)


def _per_broker(brokers: Sequence[str]) -> str:
    first = brokers[0] if brokers else "ID"
    others = f" (and so for {', '.join(brokers[1:])})" if len(brokers) > 1 else ""
    return f"--entity-type brokers --entity-name {first}{others}"
