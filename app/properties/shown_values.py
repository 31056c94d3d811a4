"""Decides which values of a file may be shown to people: in messages, logs, reloads, the audit topic.

A value is shown only if its key is in the table of keys and is not secret. It must also be written in plain text: not
as a reference, and not as an encoded override. Any other value may be a secret, whatever its key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from app.properties.keys import TABLE
from app.properties.known import RENAMED, flow_names, top_names
from app.properties.mistakes import PropertyLine
from app.properties.scoped_keys import Properties, ScopedKey
from sinks.kafka.security.jaas import option_texts
from sinks.secret_values import is_secret

SHORTEST_TEXT = 4
"""Minimum length of a text that is removed from messages wherever it occurs. Shorter ones reveal nothing."""

PLAIN_WORDS = frozenset({"true", "false", "none", "null", "default"})
IN_URL = re.compile(r"//([^/@\s]*?):?([^/@:\s]*)@")
"""Matches user (1) and password (2) in a URL."""


def may_be_shown(where: ScopedKey, entry: PropertyLine) -> bool:
    """Returns whether the value may be shown."""
    return _is_open(where, entry) and not entry.is_referred


def shown_value(where: ScopedKey, entry: PropertyLine) -> str:
    """Returns the value as a message may show it. A value with a reference is shown as written."""
    if not _is_open(where, entry):
        return "its value"
    return repr(entry.raw.strip() if entry.is_referred else entry.value)


def _is_open(where: ScopedKey, entry: PropertyLine) -> bool:
    ours = RENAMED.get(where.name, where.name) in TABLE and not isinstance(where.scope, str)
    return ours and not is_secret(where.name) and not entry.encoded


def shown_keys(properties: Properties) -> frozenset[ScopedKey]:
    """Returns the keys whose values may be shown."""
    return frozenset(where for where, entry in properties.by_key.items() if may_be_shown(where, entry))


def hidden_texts(properties: Properties) -> tuple[str, ...]:
    """Returns texts that a message of other software must not repeat: secrets, values of references, values of
    plug-ins."""
    found = {
        text
        for where, entry in properties.by_key.items()
        if entry.problem is None and _may_be_secret(where, entry)
        for text in _texts(entry.value)
        if len(text) >= SHORTEST_TEXT and text.lower() not in PLAIN_WORDS
    }
    return tuple(sorted(found))


def _may_be_secret(where: ScopedKey, entry: PropertyLine) -> bool:
    known = where.name in flow_names() | top_names()
    return is_secret(where.name) or entry.is_referred or entry.encoded or not known


def _texts(value: str) -> Iterator[str]:
    """Returns the value and its secret parts: options of JAAS, user and password in a URL."""
    yield value
    yield from (part for match in IN_URL.findall(value) for part in match)
    yield from option_texts(value)
