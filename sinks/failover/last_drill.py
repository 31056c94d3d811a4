"""Reads and writes the ledger's document of a flow's last drill, for status and page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import orjson

from sinks.ledger.ledger import Ledger
from sinks.ledger.ledger_entries import Entry, EntryKey
from sinks.model.times import UTC_FORM, utc_text

DRILL_KEY: EntryKey = (Entry.DRILL, ("last",))

LONGEST_TEXT = 4096
"""Longest text that is kept, in characters. A name has 249 at most, an error a few hundred."""

MOST_ITEMS = 100
"""Most groups and steps that are kept. A drill has a few of each."""

Parse = Callable[[Any], Any]
"""Parses an untrusted value. Raises ValueError, KeyError, TypeError."""


LastDrill = dict[str, Any]
"""`lockstep drill`'s document, with the fields of `FIELDS` and `OPTIONAL`. `error`: why the drill failed; then it holds
none of the other optional fields."""


def drill_as_text(document: Mapping[str, Any], who: str, at: str) -> str:
    """Returns the text that the ledger keeps. `at`: UTC."""
    return orjson.dumps({**document, "who": who, "at": at}).decode()


def last_drill(ledger: Ledger) -> LastDrill | None:
    """Returns the last drill of a flow; None without one.

    Returns None for a damaged record too. Any client with write access to the ledger can put anything there, and status
    shows the result. So the result has these fields alone, flat, with its texts cut.
    """
    text = ledger.get(DRILL_KEY[0], *DRILL_KEY[1])
    try:
        return None if text is None else _record(orjson.loads(text), FIELDS, OPTIONAL)
    except (ValueError, KeyError, TypeError):
        return None


def _record(found: Any, fields: Mapping[str, Parse], optional: Mapping[str, Parse] | None = None) -> dict[str, Any]:
    """Returns the object's known fields. Raises KeyError where one of `fields` is missing."""
    more = {name: parse for name, parse in (optional or {}).items() if name in found}
    return {name: parse(found[name]) for name, parse in {**fields, **more}.items()}


def _is(kind: type) -> Parse:
    def parse(value: Any) -> Any:
        # A truth value is a number, too.
        if type(value) is not kind:
            raise TypeError(f"no {kind.__name__}")
        return value

    return parse


def _text(value: Any) -> str:
    text: str = _is(str)(value)
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"


def _time(value: Any) -> str:
    return utc_text(datetime.strptime(value, UTC_FORM))


def _seconds(value: Any) -> dict[str, float]:
    if not all(isinstance(one, int | float) for one in value.values()) or len(value) > MOST_ITEMS:
        raise TypeError("no seconds by step")
    return {_text(step): float(one) for step, one in value.items()}


def _groups(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list) or len(value) > MOST_ITEMS:
        raise TypeError("no groups")
    return [_record(one, GROUP) for one in value]


def _or_null(parse: Parse) -> Parse:
    return lambda value: None if value is None else parse(value)


FIELDS: Mapping[str, Parse] = {"topic": _text, "agrees": _is(bool), "who": _text, "at": _time}

OPTIONAL: Mapping[str, Parse] = {
    "error": _text,
    "loss": lambda value: _record(value, {"predicted": _is(int), "measured": _is(int)}),
    "fence_stops_this_principal": _or_null(_is(bool)),
    "groups": _groups,
    "seconds": _seconds,
}

GROUP: Mapping[str, Parse] = {"group": _text, "bound": _or_null(_is(int)), "read_twice": _is(int), "skipped": _is(int)}
