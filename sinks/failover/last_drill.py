"""The document of a flow's last drill, kept in its ledger for status and page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import orjson

from sinks.engine.ledger_entries import Entry, EntryKey

DRILL_KEY: EntryKey = (Entry.DRILL, ("last",))


class Remembers(Protocol):
    """A ledger, as far as it is asked here."""

    def get(self, entry: Entry, *key: str) -> str | None:
        """The value remembered, or None."""


def drill_as_text(document: Mapping[str, Any], who: str, at: str) -> str:
    """As the ledger keeps it; `at`: UTC."""
    return orjson.dumps({**document, "who": who, "at": at}).decode()


def last_drill(ledger: Remembers) -> dict[str, Any] | None:
    """`lockstep drill`'s document with `who`, `at` and, where it did not come to its end, `error`; None without one.

    Also None for what cannot be read: nothing depends on it.
    """
    text = ledger.get(DRILL_KEY[0], *DRILL_KEY[1])
    try:
        found = orjson.loads(text) if text is not None else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
