"""Altering the configs of one entity: read, validated, read again, written, and read until they show it.

The entity is in the state before or in the state after, never between: IncrementalAlterConfigs (KIP-339) is all or
nothing for an entity. What cannot be known, e.g. after a connection was lost, is read again, and said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from app.configs_tool.objections import KnownConfigs, notes, objections
from app.configs_tool.precedence import own_levels, shown
from sinks.faults import ItemFault, NoAnswer
from sinks.kafka.ports.config_levels import ConfigEntity, ConfigLevels, ConfigValues, Levels, ResourceType
from sinks.secret_values import without_secrets
from streaming.errors import LockstepError, WrongUsage

Wait = Callable[[float], bool]
"""Waits so many seconds; returns True at once when it is to end."""

POLL_EVERY = 0.25
POLLS = 40
"""How often, in seconds, and how many times at most, an entity is read until it shows what was written."""

MEND = frozenset({"INVALID_CONFIG", "INVALID_REQUEST", "POLICY_VIOLATION", "TOPIC_EXCEPTION"})
"""Faults of what was asked, not of the cluster."""

FAULT_WORDS = {"UNKNOWN_TOPIC_OR_PART": "there is no such topic"}
"""Faults that brokers send without a word."""

ABSENT_ENTITY = frozenset({"UNKNOWN_TOPIC_OR_PART", "BROKER_NOT_AVAILABLE", "INVALID_TOPIC_EXCEPTION"})
"""Faults of an entity that is not there, which is then said."""


class ConcurrentAlteration(LockstepError):
    """Another client altered the same configs after they were read. Nothing was written."""


class Overwritten(LockstepError):
    """It was written, and another client wrote the same configs at the same time: its values came last."""


@dataclass(frozen=True)
class Alteration:
    """What is to become of one entity: per name a value, None to delete it. Its `repr` shows no value."""

    entity: ConfigEntity
    wanted: ConfigValues
    known: KnownConfigs

    def __repr__(self) -> str:
        return f"Alteration({self.entity!r}, {sorted(self.wanted)})"

    def rows(self) -> list[dict[str, Any]]:
        """Each change as it may be shown: name, op, before, after."""
        own = own_levels(self.entity, self.known.before)
        known = {**self.known.there, **self.known.before}
        return [
            {
                "name": name,
                "op": "delete" if value is None else "update" if name in own else "create",
                "before": shown(name, own[name] or "", known) if name in own else None,
                "after": shown(name, value, known),
            }
            for name, value in self.wanted.items()
        ]


def known_configs(levels: ConfigLevels, entity: ConfigEntity) -> KnownConfigs:
    """What there is before an alteration. Raises WrongUsage for an entity that is not there, LockstepError."""
    brokers = levels.brokers()
    before = _first_description(levels, entity)
    if entity.type is ResourceType.TOPIC or entity.name:
        return KnownConfigs(before, before, brokers)
    # The cluster-wide default knows what is set there; which configs there are, a broker knows.
    return KnownConfigs(before, described(levels, ConfigEntity(ResourceType.BROKER, brokers[0])), brokers)


def _first_description(levels: ConfigLevels, entity: ConfigEntity) -> Levels:
    seen = levels.describe([entity])
    if entity in seen.errors and seen.errors[entity].code in ABSENT_ENTITY:
        raise WrongUsage(f"{named(entity)}: {said(seen.errors[entity])}")
    return described(levels, entity) if entity in seen.errors else seen.items[entity]


def described(levels: ConfigLevels, entity: ConfigEntity) -> Levels:
    """An entity's configs. Raises LockstepError that says what is wrong with the entity."""
    seen = levels.describe([entity])
    if entity in seen.errors:
        raise LockstepError(f"{named(entity)}: {said(seen.errors[entity])}")
    return seen.items[entity]


def checked(
    entity: ConfigEntity, wanted: ConfigValues, known: KnownConfigs, custom: bool = False
) -> tuple[Alteration, list[str]]:
    """The alteration, and what is worth a word about it. Raises WrongUsage with everything that is wrong."""
    if wrong := objections(entity, wanted, known, custom):
        raise WrongUsage(*wrong, "nothing was written")
    return Alteration(entity, wanted, known), notes(entity, wanted, known)


def validate(levels: ConfigLevels, alteration: Alteration) -> None:
    """Lets the brokers check it. Raises WrongUsage with their reason, LockstepError for other faults."""
    fault = levels.alter({alteration.entity: alteration.wanted}, validate_only=True)[alteration.entity]
    if fault is not None:
        raise _refused(alteration, fault)


def write(levels: ConfigLevels, alteration: Alteration, wait: Wait) -> bool:
    """Writes it, unless the entity has changed since it was read; returns whether the entity shows it by now.

    Brokers have no compare-and-set: what another client writes between the last reading and the write is
    overwritten, in these configs alone. Raises AlteredMeanwhile, Overwritten, WrongUsage and LockstepError; each says
    whether anything was written.
    """
    entity = alteration.entity
    _raise_if_altered(alteration, described(levels, entity))
    try:
        fault = levels.alter({entity: alteration.wanted})[entity]
    except NoAnswer as error:
        raise _lost(levels, alteration, str(error), wait) from error
    if fault is not None and fault.retriable:
        raise _lost(levels, alteration, said(fault), wait)
    if fault is not None:
        raise _refused(alteration, fault)
    if shows(levels, alteration, wait):
        return True
    if others := _of_others(alteration, described(levels, entity)):
        raise Overwritten(
            f"{named(entity)}: written, but another client wrote at the same time, and came last: {others}. Look with "
            "--describe, and repeat the command if you still want it"
        )
    return False


def shows(levels: ConfigLevels, alteration: Alteration, wait: Wait, polls: int = POLLS) -> bool:
    """Whether the entity has it, waited for: brokers apply a moment later what the controller has written."""
    for number in range(polls):
        if holds(alteration.entity, alteration.wanted, described(levels, alteration.entity)):
            return True
        if number + 1 < polls and wait(POLL_EVERY):
            return False
    return False


def holds(entity: ConfigEntity, wanted: ConfigValues, now: Levels) -> bool:
    """Whether these values are what is set at the entity; of one that is not shown, whether it is set."""
    own = own_levels(entity, now)
    return all(
        name not in own if value is None else name in own and own[name] in (None, value)
        for name, value in wanted.items()
    )


def named(entity: ConfigEntity) -> str:
    """An entity in words."""
    if entity.type is ResourceType.TOPIC:
        return f"topic {entity.name}"
    return f"broker {entity.name}" if entity.name else "the cluster-wide default of the brokers"


def _raise_if_altered(alteration: Alteration, now: Levels) -> None:
    if altered := _altered(alteration, now, alteration.wanted):
        raise ConcurrentAlteration(
            f"{named(alteration.entity)}: another client altered it meanwhile: {altered}; nothing was written. Look "
            "with --describe, and repeat the command if you still want it"
        )


def _of_others(alteration: Alteration, now: Levels) -> str:
    """What is neither as it was nor as it was to be, in words."""
    entity, wanted = alteration.entity, alteration.wanted
    return _altered(alteration, now, [name for name in wanted if not holds(entity, {name: wanted[name]}, now)])


def _altered(alteration: Alteration, now: Levels, names: Iterable[str]) -> str:
    """Which of these are not as they were, in words; empty when they all are."""
    before, after = (own_levels(alteration.entity, levels) for levels in (alteration.known.before, now))
    known = {**alteration.known.there, **now}
    altered = [name for name in names if (name in before, before.get(name)) != (name in after, after.get(name))]
    return "; ".join(f"{name} is {_value(name, after, known)}, was {_value(name, before, known)}" for name in altered)


def _value(name: str, own: Mapping[str, str | None], known: Levels) -> str:
    if name not in own:
        return "not set"
    return shown(name, own[name], known) or "set"


def _refused(alteration: Alteration, fault: ItemFault) -> LockstepError:
    entity = alteration.entity
    resource = ("TOPIC", entity.name) if entity.type is ResourceType.TOPIC else ("CLUSTER", "kafka-cluster")
    reason = without_secrets(said(fault.needing("ALTER_CONFIGS", *resource)), _secrets(alteration))
    kind = WrongUsage if fault.code in MEND else LockstepError
    return kind(f"{named(alteration.entity)}: refused: {reason}; nothing was written")


def _lost(levels: ConfigLevels, alteration: Alteration, reason: str, wait: Wait) -> LockstepError:
    """The request was sent and not answered: what became of it is to be seen at the entity."""
    where = named(alteration.entity)
    begin = f"{where}: the connection was lost while writing ({without_secrets(reason, _secrets(alteration))})"
    try:
        written = shows(levels, alteration, wait)
        others = "" if written else _of_others(alteration, described(levels, alteration.entity))
    except LockstepError:
        return LockstepError(
            f"{begin}, and the cluster does not answer: it is written whole or not at all, check with --describe"
        )
    if written:
        return LockstepError(f"{begin}; --describe shows that all of it was written")
    if others:
        return LockstepError(f"{begin}, and another client wrote at the same time: {others}. Look with --describe")
    # A request that a broker has got and not begun with may come late.
    return LockstepError(
        f"{begin}; so far nothing of it was written. Check once more with --describe before you repeat the command"
    )


def _secrets(alteration: Alteration) -> list[str | None]:
    known = {**alteration.known.there, **alteration.known.before}
    return [value for name, value in alteration.wanted.items() if shown(name, value, known) != value]


def said(fault: ItemFault) -> str:
    """A fault in words."""
    return fault.message or FAULT_WORDS.get(fault.code, fault.code)
