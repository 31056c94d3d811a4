"""Alters the configs of one entity: reads, validates, reads again, writes, and reads until the brokers show the change.

IncrementalAlterConfigs (KIP-339) is all or nothing for an entity, so the entity never stays half changed. If the
connection is lost, Lockstep reads the entity again and reports what it found.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.configs_tool.config_groups import GROUP_OF, INSTEAD, LISTENER, LISTENER_ANYWHERE, ConfigLevel, base_name
from app.configs_tool.precedence import open_value, own_levels
from sinks.faults import ItemFault, NoAnswer
from sinks.kafka.ports.cluster import Origin
from sinks.kafka.ports.config_levels import ConfigEntity, ConfigLevels, ConfigValues, Levels, ResourceType
from sinks.kafka.security.jaas import parse_jaas
from sinks.kafka.security.sasl import JAAS
from sinks.secret_values import without_secrets
from streaming.errors import LockstepError, WrongUsage
from streaming.message_words import nearest_hint

Wait = Callable[[float], bool]
"""Waits this many seconds. Returns True, at once, if the program is to end."""

POLL_EVERY = 0.25
POLLS = 40
"""Seconds between two readings of an entity until it shows what was written, and the limit of readings."""

MEND = frozenset({"INVALID_CONFIG", "INVALID_REQUEST", "POLICY_VIOLATION", "TOPIC_EXCEPTION"})
"""Errors of the request itself, which the operator corrects; not of the cluster."""

FAULT_WORDS = {"UNKNOWN_TOPIC_OR_PART": "there is no such topic"}
"""Texts for errors that brokers send without a message."""

ABSENT_ENTITY = frozenset({"UNKNOWN_TOPIC_OR_PART", "BROKER_NOT_AVAILABLE", "INVALID_TOPIC_EXCEPTION"})
"""Errors that mean that the entity does not exist."""


class ConcurrentAlteration(LockstepError):
    """Another client altered the same configs after they were read. Nothing was written."""


class Overwritten(LockstepError):
    """Another client wrote the same configs at the same time, after this write."""


@dataclass(frozen=True)
class Alteration:
    """The new configs of one entity: a value by name, None to delete it."""

    entity: ConfigEntity
    wanted: ConfigValues = field(repr=False)
    known: KnownConfigs = field(repr=False)

    def rows(self) -> list[dict[str, Any]]:
        """Returns each change as it may be shown: name, op, before, after."""
        own, known = own_levels(self.entity, self.known.before), {**self.known.there, **self.known.before}
        return [
            {
                "name": name,
                "op": "delete" if value is None else "update" if name in own else "create",
                "before": open_value(name, own[name] or "", known) if name in own else None,
                "after": open_value(name, value, known),
            }
            for name, value in self.wanted.items()
        ]


def known_configs(levels: ConfigLevels, entity: ConfigEntity) -> KnownConfigs:
    """Reads what exists before an alteration. Raises WrongUsage for an entity that does not exist, LockstepError."""
    brokers = levels.brokers()
    before = described(levels, entity, absent=WrongUsage)
    if entity.type is ResourceType.TOPIC or entity.name:
        return KnownConfigs(before, before, brokers)
    # The cluster-wide default knows what is set there; which configs there are, a broker knows.
    return KnownConfigs(before, described(levels, ConfigEntity(ResourceType.BROKER, brokers[0])), brokers)


def described(levels: ConfigLevels, entity: ConfigEntity, absent: type[LockstepError] = LockstepError) -> Levels:
    """Returns an entity's configs. Raises LockstepError with the reason; with the text `absent` if it does not
    exist."""
    seen = levels.describe([entity])
    if (fault := seen.errors.get(entity)) is not None:
        kind = absent if fault.code in ABSENT_ENTITY else LockstepError
        raise kind(f"{named(entity)}: {said(fault)}")
    return seen.items[entity]


def checked(
    entity: ConfigEntity, wanted: ConfigValues, known: KnownConfigs, custom: bool = False
) -> tuple[Alteration, list[str]]:
    """Returns the alteration and notes about it. Raises WrongUsage that lists all mistakes."""
    if wrong := objections(entity, wanted, known, custom):
        raise WrongUsage(*wrong, "nothing was written")
    return Alteration(entity, wanted, known), notes(entity, wanted, known)


def validate(levels: ConfigLevels, alteration: Alteration) -> None:
    """Lets the brokers validate the alteration. Raises WrongUsage with their reason, LockstepError for other errors."""
    fault = levels.alter({alteration.entity: alteration.wanted}, validate_only=True)[alteration.entity]
    if fault is not None:
        raise _refused(alteration, fault)


def write(levels: ConfigLevels, alteration: Alteration, wait: Wait) -> bool:
    """Writes the alteration, unless the entity changed since it was read. Returns whether the entity shows it by now.

    Brokers have no compare-and-set. If another client writes the same configs between the last reading and this write,
    its values are lost. Raises ConcurrentAlteration, Overwritten, WrongUsage, LockstepError; each tells whether
    anything was written.
    """
    entity = alteration.entity
    if altered := _altered(alteration, described(levels, entity), alteration.wanted):
        raise ConcurrentAlteration(
            f"{named(entity)}: another client altered it meanwhile: {altered}; nothing was written. Look with "
            "--describe, and repeat the command if you still want it"
        )
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
            f"{named(entity)}: written, but another client wrote at the same time, and its values won: {others}. "
            "Look with --describe, and repeat the command if you still want it"
        )
    return False


def shows(levels: ConfigLevels, alteration: Alteration, wait: Wait) -> bool:
    """Waits until the entity shows the alteration. Brokers apply it a moment after the controller has written it."""
    for number in range(POLLS):
        if holds(alteration.entity, alteration.wanted, described(levels, alteration.entity)):
            return True
        if number + 1 < POLLS and wait(POLL_EVERY):
            return False
    return False


def holds(entity: ConfigEntity, wanted: ConfigValues, now: Levels) -> bool:
    """Returns whether these values are set at the entity. For a hidden value, whether it is set at all."""
    own = own_levels(entity, now)
    return all(
        name not in own if value is None else name in own and own[name] in (None, value)
        for name, value in wanted.items()
    )


def named(entity: ConfigEntity) -> str:
    if entity.type is ResourceType.TOPIC:
        return f"topic {entity.name}"
    return f"broker {entity.name}" if entity.name else "the cluster-wide default of the brokers"


def _of_others(alteration: Alteration, now: Levels) -> str:
    """Returns a text of the configs that have neither the old nor the written value."""
    entity, wanted = alteration.entity, alteration.wanted
    return _altered(alteration, now, [name for name in wanted if not holds(entity, {name: wanted[name]}, now)])


def _altered(alteration: Alteration, now: Levels, names: Iterable[str]) -> str:
    """Returns a text of the configs that changed; "" if none did."""
    before, after = (own_levels(alteration.entity, levels) for levels in (alteration.known.before, now))
    known = {**alteration.known.there, **now}
    altered = [name for name in names if (name in before, before.get(name)) != (name in after, after.get(name))]
    return "; ".join(f"{name} is {_value(name, after, known)}, was {_value(name, before, known)}" for name in altered)


def _value(name: str, own: Mapping[str, str | None], known: Levels) -> str:
    if name not in own:
        return "not set"
    return open_value(name, own[name], known) or "set"


def _refused(alteration: Alteration, fault: ItemFault) -> LockstepError:
    entity = alteration.entity
    resource = ("TOPIC", entity.name) if entity.type is ResourceType.TOPIC else ("CLUSTER", "kafka-cluster")
    reason = without_secrets(said(fault.needing("ALTER_CONFIGS", *resource)), _secrets(alteration))
    kind = WrongUsage if fault.code in MEND else LockstepError
    return kind(f"{named(alteration.entity)}: refused: {reason}; nothing was written")


def _lost(levels: ConfigLevels, alteration: Alteration, reason: str, wait: Wait) -> LockstepError:
    """Returns the error for a request without an answer. Reads the entity to learn whether it was carried out."""
    where = named(alteration.entity)
    begin = f"{where}: the connection was lost while writing ({without_secrets(reason, _secrets(alteration))})"
    try:
        written = shows(levels, alteration, wait)
        others = "" if written else _of_others(alteration, described(levels, alteration.entity))
    except LockstepError:
        return LockstepError(
            f"{begin}, and the cluster does not answer. All of it was written, or nothing: check with --describe"
        )
    if written:
        return LockstepError(f"{begin}; --describe shows that all of it was written")
    if others:
        return LockstepError(f"{begin}, and another client wrote at the same time: {others}. Check with --describe")
    # A request that a broker has got and not begun with may come late.
    return LockstepError(
        f"{begin}; so far nothing of it was written. Check once more with --describe before you repeat the command"
    )


def _secrets(alteration: Alteration) -> list[str | None]:
    known = {**alteration.known.there, **alteration.known.before}
    return [value for name, value in alteration.wanted.items() if open_value(name, value, known) != value]


def said(fault: ItemFault) -> str:
    return fault.message or FAULT_WORDS.get(fault.code, fault.code)


# What is wrong with an alteration, as far as it can be known before a broker is asked, and what to do instead.


NEAR = 0.85
"""Similarity (0 to 1) from which an unknown name counts as a misspelt known one, not as a user's own config."""


@dataclass(frozen=True, slots=True)
class KnownConfigs:
    """What is known before an alteration: the entity's own configs, which entities exist, and the brokers' ids.
    `there`: all configs that the broker or topic describes, including Kafka's defaults.
    """

    before: Levels
    there: Levels
    brokers: Sequence[str]


def objections(entity: ConfigEntity, wanted: ConfigValues, known: KnownConfigs, custom: bool = False) -> list[str]:
    """Returns all mistakes, a line each, without values. `custom`: unknown names are intended."""
    return [
        f"{name}: {reason}"
        for name, value in wanted.items()
        if (reason := _wrong(entity, name, value, known, custom)) is not None
    ]


def notes(entity: ConfigEntity, wanted: ConfigValues, known: KnownConfigs) -> list[str]:
    """Returns remarks that do not stop the change: unknown names, deletions of unset configs, unused logins."""
    own = own_levels(entity, known.before)
    listeners = known.there["listeners"].value or "" if "listeners" in known.there else ""
    found = []
    for name, value in wanted.items():
        if value is None and name not in own:
            found.append(f"{name}: is not set there, nothing to delete{nearest_hint(name, own)}")
        elif value is not None and entity.type is ResourceType.BROKER and not _is_known(name, known):
            found.append(f"{name}: Kafka has no such config; brokers keep it for metrics reporters and other plug-ins")
        elif value is not None and (note := jaas_note(name, listeners)):
            found.append(f"{name}: {note}")
    return found


def _wrong(entity: ConfigEntity, name: str, value: str | None, known: KnownConfigs, custom: bool) -> str | None:
    if value is None:
        return None
    if entity.type is ResourceType.TOPIC:
        if name in known.there:
            return None
        hint = "; it is a config of brokers: --entity-type brokers" if name in GROUP_OF else ""
        return f"topics have no such config{nearest_hint(name, known.there)}{hint}"
    rules = (_read_only, _needs_listener, _needs_broker)
    found = next((reason for rule in rules if (reason := rule(entity, name, known))), None)
    if found is None and not custom:
        found = _slip(entity, name, known)
    return found or jaas_objection(name, value)


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
    near = difflib.get_close_matches(base_name(name), sorted(_names(known)), 1, NEAR)
    if not near:
        return None
    prefix = name[: len(name) - len(base_name(name))]
    return (
        f"Kafka has no such config; is {prefix}{near[0]} meant? If it is a config of a metrics reporter's or another "
        "plug-in's own, say --custom"
    )


def _is_known(name: str, known: KnownConfigs) -> bool:
    base = base_name(name)
    after_mechanism = base.partition(".")[2]
    return base in _names(known) or base.endswith(f".{JAAS}") or after_mechanism in _names(known)


def _names(known: KnownConfigs) -> set[str]:
    # A broker describes custom configs, too: as sensitive ones that it does not have itself.
    own = {name for name, entry in known.there.items() if entry.origin in (Origin.STATIC, Origin.DEFAULT)}
    return own | GROUP_OF.keys()


def _per_broker(brokers: Sequence[str]) -> str:
    first = brokers[0] if brokers else "ID"
    others = f" (and so for {', '.join(brokers[1:])})" if len(brokers) > 1 else ""
    return f"--entity-type brokers --entity-name {first}{others}"


# `sasl.jaas.config` of a broker: `listener.name.<listener>.<mechanism>.sasl.jaas.config`, checked before it is sent.
#
# A broker that cannot read it, or ignores it, says so in its log only. Source: KIP-226,
# `JaasContext.loadServerContext`.
# No error repeats a value.


FORM = f"listener.name.<listener>.<mechanism>.{JAAS}"
LISTENER_AND_MECHANISM = re.compile(rf"listener\.name\.([^.]+)\.([^.]+)\.{re.escape(JAAS)}")

LOGIN_MODULE_OF: Mapping[str, str] = {
    "plain": "PlainLoginModule",
    "scram-sha-256": "ScramLoginModule",
    "scram-sha-512": "ScramLoginModule",
    "oauthbearer": "OAuthBearerLoginModule",
}
"""The login module of Kafka for each SASL mechanism. The operator may name another class instead."""


def jaas_objection(name: str, value: str) -> str | None:
    """Returns why a broker would refuse or ignore this login; None if it accepts it, or if the config is not a
    login."""
    if name != JAAS and not name.endswith(f".{JAAS}"):
        return None
    parts = LISTENER_AND_MECHANISM.fullmatch(name)
    if parts is None:
        return f"brokers would ignore it: write {FORM}, e.g. listener.name.sasl_ssl.scram-sha-512.{JAAS}"
    if name != name.lower():
        return f"brokers would ignore it: write listener and mechanism in lower case, {name.lower()}"
    return _form(parts[2], value)


def jaas_note(name: str, listeners: str) -> str | None:
    """Returns a note about a login for a running listener: brokers store and show it, but use it only after a restart.
    `listeners`: the broker's listeners in force.
    """
    running = {listener.partition("://")[0].strip().lower() for listener in listeners.split(",")}
    parts = LISTENER_AND_MECHANISM.fullmatch(name)
    if parts is None or parts[1] not in running:
        return None
    return f"the listener {parts[1]} runs already: brokers use its new login from their next start on"


def _form(mechanism: str, value: str) -> str | None:
    try:
        module = parse_jaas(value)
    except LockstepError as error:
        return str(error).replace("a client has one", "there must be one")
    wanted = LOGIN_MODULE_OF.get(mechanism)
    if wanted is not None and module.simple_name != wanted and module.simple_name in LOGIN_MODULE_OF.values():
        return f"its login module is {module.simple_name}, but {mechanism} needs {wanted}"
    has_user = any(name.startswith("user_") or name in ("username", "password") for name in module.options)
    if mechanism == "plain" and module.simple_name == wanted and not has_user:
        # Without a single user no client gets in at the listener, and no broker complains.
        return 'it has no user: write them as user_NAME="PASSWORD"'
    return None
