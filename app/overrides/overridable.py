"""Decides which of Lockstep's properties can be overridden while it runs, and which values they accept."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from app.properties import keys
from app.properties.keys import TABLE, Key, KeyScope, Live
from app.properties.known import ENDS, OUR_KEYS, ROLES, flow_names, kafka_names, top_names
from app.properties.mistakes import REFERENCE
from app.properties.scoped_keys import PREFIX
from app.properties.value_types import CLASS
from sinks.ledger.overrides import InLedger, Override, OverrideLevel, at_level
from sinks.model.changes import Kind
from sinks.secret_values import is_secret
from streaming.errors import LockstepError, WrongUsage
from streaming.message_words import nearest_hint


def overridable_keys(opened: Collection[str] = ()) -> list[Key[object]]:
    """Returns Lockstep's keys that can be overridden, by name, also those that can only be switched off. `opened`:
    further keys that the file allows."""
    return [key for name, key in sorted(TABLE.items()) if closed(name, False, opened, OFF) is None]


def own_name(written: str) -> str:
    """Returns a key's stored name: with the prefix `lockstep.` only if that is part of its own name."""
    bare = written.strip().removeprefix(PREFIX)
    return PREFIX + bare if PREFIX + bare in OUR_KEYS else bare


def checked_overrides(
    wanted: Mapping[str, str | None],
    set_there: Iterable[str],
    custom: bool = False,
    literal: bool = False,
    opened: Collection[str] = (),
) -> dict[str, str | None]:
    """Returns the wanted overrides by stored name; None deletes one. Raises WrongUsage with all mistakes, without
    values of secrets.

    `set_there`: the overrides at the level now; deleting anything else is a mistake. `literal`: references stay, and
    each job resolves them. `opened`: further keys that the file allows.
    """
    there, found, wrong = set(set_there), dict[str, str | None](), []
    for written, value in wanted.items():
        name = own_name(written)
        if name in found:
            problem: str | None = f"it is the same key as {name}: name it once"
        else:
            problem = _not_set(name, there) if value is None else _objection(name, value, custom, literal, opened)
        found[name] = value
        if problem:
            wrong.append(f"{written}: {problem}")
    if wrong:
        raise WrongUsage(*wrong)
    return found


def _not_set(name: str, there: Collection[str]) -> str | None:
    return None if name in there else f"it is not set here, so it cannot be deleted{nearest_hint(name, there)}"


def _objection(name: str, value: str, custom: bool, literal: bool, opened: Collection[str]) -> str | None:
    reference = literal and REFERENCE.search(value) is not None
    if reason := closed(name, reference, opened, value):
        return reason
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        return "its value is not in UTF-8"
    key = TABLE.get(name)
    if key is None:
        hint = nearest_hint(name, [one.name for one in overridable_keys(opened)])
        return None if custom else f"Lockstep has no such key{hint}; give --custom if your own plug-in reads it"
    if reference:
        # It is looked up by each job; what it is there, that job checks.
        return None
    try:
        key.type.parse(value)
    except ValueError:
        return key.type.complaint("its value" if is_secret(name) else repr(value), value)
    return None


# Which names no override may have, and what none may say unless the file opens it.
#
# Another writer of a ledger could misuse both. So the rules are checked when an override is written, and again when a
# ledger is read. One override that breaks a rule refuses all overrides of its ledger: they may have the same author.


CLIENT_SETTINGS = (*(f"{role}." for role in ROLES), *(f"{end}.{of}." for end in ENDS for of in (*ROLES, "cluster")))
"""Prefixes of a flow's own client settings. A client gets every key behind them."""

NAMES_THE_LEDGER = frozenset(key.name for key in (keys.POLICY, keys.SEPARATOR, keys.INTERNAL_SEPARATOR))

NameRule = tuple[Callable[[str], bool], str]
"""A test of names that are refused, and the reason."""

NAME_RULES: tuple[NameRule, ...] = (
    (
        lambda name: name in NAMES_THE_LEDGER,
        "it names the ledger that stores overrides: change it in the properties file",
    ),
    (
        lambda name: name.startswith(("lockstep.ledger.", "lockstep.audit.")),
        "it concerns the ledger that stores overrides: change it in the properties file",
    ),
    (
        lambda name: name.startswith("password.encoder."),
        "passwords in the ledger are encoded with it: change it in the properties file",
    ),
    (
        lambda name: name in TABLE and TABLE[name].scope is not KeyScope.FLOW,
        "it holds for the whole job, not for a flow: change it in the properties file",
    ),
    (
        lambda name: name in TABLE and TABLE[name].live is Live.JOB,
        "it cannot change while the job runs: change it in the properties file, and start the job again",
    ),
    (
        lambda name: name not in TABLE and (name in kafka_names()["client"] or name.startswith(CLIENT_SETTINGS)),
        "client settings cannot change while the job runs: change them in the properties file, and start the job again",
    ),
    (
        lambda name: name not in TABLE and name in flow_names() | top_names(),
        "it is for MM2 alone: Lockstep does not read it",
    ),
)


def is_hidden(name: str) -> bool:
    """Returns whether a value is hidden: a secret, or the value of a plug-in's own key, which might be one."""
    return is_secret(name) or name not in TABLE


ADDRESS_ENDINGS = (
    *(".url", ".urls", ".uri", ".uris", ".servers", ".host", ".hosts", ".address", ".addresses", ".endpoint"),
    *(".endpoints", ".path", ".paths", ".file", ".files", ".location", ".dir", ".directory", ".store"),
)
"""Endings of keys that hold an address, also in plug-ins."""

CLASS_ENDINGS = (".class", ".classes")
"""Endings of keys that name a class to import."""

LIMIT_KEYS = frozenset(
    key.name
    for key in (
        keys.MAX_DELETE_PERCENT,
        keys.MAX_DELETE_MINIMUM,
        keys.MAX_CREATE,
        keys.FAILOVER_MAX_LOSS,
        keys.FAILOVER_MAX_LOSS_AGE,
        keys.FAILOVER_MAX_DRIFT,
        keys.FAILOVER_MAX_GROUPS_SKIPPING,
        keys.FAILOVER_FENCE_PROOF,
        keys.FAILOVER_ENDS_INTERVAL,
        keys.ACL_STAGE_WRITES,
        keys.ACL_WILDCARD_DENIES,
    )
)

SWITCHES = frozenset(switch.name for kind in Kind for switch in kind.row.enabled_by) | {keys.EMIT_CHECKPOINTS.name}
"""What has Lockstep write a kind, or checkpoints."""

OFF = "false"
"""The value of a switch that any override may have: less is written then."""

KIND_KEYS = SWITCHES | {
    key.name
    for key in (
        keys.CONFIG_EXCLUDE,
        keys.BROKER_CONFIG_PROPERTIES,
        keys.ACL_PRINCIPALS,
        keys.ACL_PRINCIPALS_EXCLUDE,
        keys.COPIER,
        keys.COPIER_KEEPS,
    )
}
"""What widens what is written to the target, beyond the topics and groups that the flow names."""

CLOSED: Mapping[str, Callable[[str], bool]] = {
    "addresses": lambda name: name.endswith(ADDRESS_ENDINGS),
    "classes": lambda name: name.endswith(CLASS_ENDINGS) or (name in TABLE and TABLE[name].type is CLASS),
    "deletions": lambda name: name in (keys.TOPIC_DELETES.name, keys.ACL_DELETES.name),
    "kinds": lambda name: name in KIND_KEYS,
    "limits": lambda name: name in LIMIT_KEYS,
    "mappings": lambda name: name in (keys.ACL_MAPPING.name, keys.ACL_PROTECTED.name, keys.SCRAM_ADOPT.name),
}
"""Tests of protected keys, by the word of `lockstep.overrides.allowed` that opens them."""

REFERENCES = "references"


def permitted(properties: Mapping[str, str]) -> frozenset[str]:
    """Returns the words in `lockstep.overrides.allowed` of the job's properties, which no override can change."""
    written = properties.get(keys.OVERRIDES_ALLOWED.name)
    try:
        return frozenset(keys.OVERRIDES_ALLOWED.type.parse(written or ""))
    except ValueError:
        return frozenset()


def closed(name: str, reference: bool, opened: Collection[str], value: str = "") -> str | None:
    """Why no override may say this, or None. Without `value`: any value."""
    for refused, reason in NAME_RULES:
        if refused(name):
            return reason
    is_off = name in SWITCHES and value == OFF
    words = [word for word, is_one in CLOSED.items() if is_one(name) and not is_off] + [REFERENCES] * reference
    for word in words:
        if word not in opened:
            return (
                f"only the properties file may set {word}, because other writers of the ledger could misuse them: "
                f"write it there, or add {word} to {keys.OVERRIDES_ALLOWED.name}"
            )
    return None


def refusals(stored: InLedger, opened: Collection[str]) -> list[str]:
    """Returns the mistakes in a ledger's overrides, without values. One mistake disables all overrides."""
    found: list[str] = []
    for level in OverrideLevel:
        try:
            overrides = at_level(stored, level)
        except LockstepError:
            # Damaged: said where they are decoded, with the name.
            continue
        for name, override in overrides.items():
            if reason := closed(name, override.reference, opened, override.value) or _misplaced(name, override):
                found.append(f"{name}: {reason}")
    return found


def _misplaced(name: str, override: Override) -> str | None:
    if override.encoded and not is_hidden(name):
        return "an encoded password is stored under a key whose value Lockstep shows, so anyone could read it"
    if is_secret(name) and not override.encoded and not override.reference:
        return "a secret that is not encoded was not written by Lockstep"
    return None


def refused_text(problems: Collection[str]) -> str:
    """Returns the problems as one message."""
    return (
        "Lockstep refuses all overrides in its ledger, because some could not have been written with `lockstep "
        f"configs` under this properties file: {'; '.join(problems)}. Check who wrote them (`lockstep audit`, "
        "`lockstep validate --rights`), then delete them with `lockstep configs --alter --delete-config`"
    )
