"""What may be a secret, and texts without secrets: the one rule of all that people and programs are shown. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote

IN_PLACE_OF_SECRET = "[hidden]"
"""Shown in place of a secret."""

SECRET_NAME = re.compile(
    r"passw|pwd|secret|jaas|token|passphrase|credential|private|webhook\.url|push\.url|keystore\.key|certificate"
    r"|(api|access|signing|encryption)[._-]?key|user\.info|authorization|auth\.header|headers|bearer|cookie|dsn"
    r"|connection\.string",
    re.IGNORECASE,
)
"""In the names of properties of Lockstep's and MM2's, of clients' settings, and of brokers' and topics' configs."""


def is_secret(name: str) -> bool:
    """Whether the value of a property or config may be a secret, by its name; its value is shown nowhere then."""
    return SECRET_NAME.search(name) is not None


def secret_values(values: Mapping[str, str | None]) -> tuple[str, ...]:
    """Of values by name, those that may be secrets."""
    return tuple(value for name, value in values.items() if value and is_secret(name))


def without_secrets(text: str, secrets: Iterable[str | None]) -> str:
    """A text of others, an error of a broker's or a plug-in's say, with these values hidden, should it repeat one.

    They are hidden as they are, and as Python, JSON and URLs write them.
    """
    forms = {form for value in secrets if value for form in (value, *_written(value))}
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, IN_PLACE_OF_SECRET)
    return text


def _written(value: str) -> Iterator[str]:
    """What stands between quotes; whether an apostrophe is escaped in a `repr` depends on what surrounds it."""
    for write in (repr, ascii):
        escaped = write(value + "'\"")[1:-4]
        yield from (escaped, escaped.replace("\\'", "'"))
    yield quote(value, safe="")
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
