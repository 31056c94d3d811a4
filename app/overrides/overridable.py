"""Which of Lockstep's properties can be overridden while it runs, and which values they take. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from app.overrides.closed import closed
from app.overrides.closed import is_hidden as is_hidden
from app.properties.keys import TABLE, Key
from app.properties.known import OUR_KEYS
from app.properties.mistakes import REFERENCE
from app.properties.scoped_keys import PREFIX
from sinks.secret_values import is_secret
from streaming.errors import WrongUsage
from streaming.nearest import nearest


def can_be_overridden(opened: Collection[str] = ()) -> list[Key[object]]:
    """All keys of Lockstep that can, by name. `opened`: what the file lets overrides say besides."""
    return [key for name, key in sorted(TABLE.items()) if closed(name, False, opened) is None]


def own_name(written: str) -> str:
    """A key as it is kept: with the prefix `lockstep.` only where that belongs to its own name."""
    bare = written.strip().removeprefix(PREFIX)
    return PREFIX + bare if PREFIX + bare in OUR_KEYS else bare


def checked(
    wanted: Mapping[str, str | None],
    set_there: Iterable[str],
    custom: bool = False,
    literal: bool = False,
    opened: Collection[str] = (),
) -> dict[str, str | None]:
    """What is wanted, by the keys' own names; None deletes.

    `set_there`: what is set at the level now; to delete anything else is a slip. `literal`: references are no values,
    each job looks them up. `opened`: what the file lets overrides say besides.

    Raises WrongUsage with everything that is wrong; values of secrets are not shown.
    """
    there, found, wrong = set(set_there), dict[str, str | None](), []
    for written, value in wanted.items():
        name = own_name(written)
        if name in found:
            problem: str | None = f"it is {name}, which is said already: say it once"
        else:
            problem = _not_set(name, there) if value is None else _objection(name, value, custom, literal, opened)
        found[name] = value
        if problem:
            wrong.append(f"{written}: {problem}")
    if wrong:
        raise WrongUsage(*wrong)
    return found


def _not_set(name: str, there: Iterable[str]) -> str | None:
    if name in there:
        return None
    near = nearest(name, list(there))
    return "it is not set here, so it cannot be deleted" + (f"; nearest: {near}" if near else "")


def _objection(name: str, value: str, custom: bool, literal: bool, opened: Collection[str]) -> str | None:
    reference = literal and REFERENCE.search(value) is not None
    if reason := closed(name, reference, opened):
        return reason
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        return "its value is not in UTF-8"
    key = TABLE.get(name)
    if key is None:
        near = nearest(name, [one.name for one in can_be_overridden(opened)])
        hint = f"; nearest: {near}" if near else ""
        return None if custom else f"Lockstep has no such key{hint}; --custom says that a plug-in of yours reads it"
    if reference:
        # It is looked up by each job; what it is there, that job checks.
        return None
    try:
        key.type.parse(value)
    except ValueError:
        return key.type.complaint("its value" if is_secret(name) else repr(value), value)
    return None
