"""Which of Lockstep's properties can be overridden while it runs, and which values they take. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from app.configs_tool.arguments import WrongArguments
from app.properties import keys
from app.properties.keys import TABLE, Key, Live, Scope
from app.properties.known import ENDS, OURS, ROLES, flow_names, kafka_names, top_names
from app.properties.mistakes import REFERENCE, is_secret
from app.properties.places import PREFIX
from app.properties.value_types import nearest

CLIENTS = (*(f"{role}." for role in ROLES), *(f"{end}.{of}." for end in ENDS for of in (*ROLES, "cluster")))
"""What a flow's own client settings begin with: whatever comes after it, a client gets it."""

NAMES_THE_LEDGER = frozenset(key.name for key in (keys.POLICY, keys.SEPARATOR, keys.INTERNAL_SEPARATOR))

Rule = tuple[Callable[[str], bool], str]
"""Which names are refused, and why."""

RULES: tuple[Rule, ...] = (
    (
        lambda name: name in NAMES_THE_LEDGER,
        "it names the ledger in which overrides are kept: change it in the properties file",
    ),
    (
        lambda name: name.startswith("password.encoder."),
        "passwords in the ledger are encoded with it: change it in the properties file",
    ),
    (
        lambda name: name in TABLE and TABLE[name].scope is Scope.JOB,
        "it holds for the whole job, not for a flow: change it in the properties file",
    ),
    (
        lambda name: name in TABLE and TABLE[name].live is Live.JOB,
        "it cannot change while the job runs: change it in the properties file, and start the job again",
    ),
    (
        lambda name: name not in TABLE and (name in kafka_names()["client"] or name.startswith(CLIENTS)),
        "client settings cannot change while the job runs: change them in the properties file, and start the job again",
    ),
    (
        lambda name: name not in TABLE and name in flow_names() | top_names(),
        "it is for MM2 alone: Lockstep does not read it",
    ),
)


def can_be_overridden() -> list[Key[object]]:
    """All keys of Lockstep that can, by name."""
    return [key for name, key in sorted(TABLE.items()) if not any(refused(name) for refused, _ in RULES)]


def own_name(written: str) -> str:
    """A key as it is kept: with the prefix `lockstep.` only where that belongs to its own name."""
    bare = written.strip().removeprefix(PREFIX)
    return PREFIX + bare if PREFIX + bare in OURS else bare


def is_hidden(name: str) -> bool:
    """Whether a value is not shown: that of a secret, and of a plug-in's own key, which might be one."""
    return is_secret(name) or name not in TABLE


def checked(
    wanted: Mapping[str, str | None], set_there: Iterable[str], custom: bool = False, literal: bool = False
) -> dict[str, str | None]:
    """What is wanted, by the keys' own names; None deletes.

    `set_there`: what is set at the level now; to delete anything else is a slip. `literal`: references are no values,
    each job looks them up. Raises WrongArguments with everything that is wrong; values of secrets are not shown.
    """
    there, found, wrong = set(set_there), dict[str, str | None](), []
    for written, value in wanted.items():
        name = own_name(written)
        if name in found:
            problem: str | None = f"it is {name}, which is said already: say it once"
        else:
            problem = _not_set(name, there) if value is None else _objection(name, value, custom, literal)
        found[name] = value
        if problem:
            wrong.append(f"{written}: {problem}")
    if wrong:
        raise WrongArguments("\n".join(wrong))
    return found


def _not_set(name: str, there: Iterable[str]) -> str | None:
    if name in there:
        return None
    near = nearest(name, list(there))
    return "it is not set here, so it cannot be deleted" + (f"; nearest: {near}" if near else "")


def _objection(name: str, value: str, custom: bool, literal: bool) -> str | None:
    for refused, reason in RULES:
        if refused(name):
            return reason
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        return "its value is not in UTF-8"
    key = TABLE.get(name)
    if key is None:
        near = nearest(name, [one.name for one in can_be_overridden()])
        hint = f"; nearest: {near}" if near else ""
        return None if custom else f"Lockstep has no such key{hint}; --custom says that a plug-in of yours reads it"
    if literal and REFERENCE.search(value):
        # It is looked up by each job; what it is there, that job checks.
        return None
    try:
        key.type.parse(value)
    except ValueError:
        return key.type.complaint("its value" if is_secret(name) else repr(value), value)
    return None
