"""Decides by its name whether a value may be a secret, and hides secrets in texts. Pure.

`app.properties.shown_values` has a stricter rule for the values of a properties file."""

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
"""Matches names of properties and configs whose values may be secrets: of Lockstep, MM2, clients, brokers and
topics."""


def is_secret(name: str) -> bool:
    """Whether the value of a property or config may be a secret, by its name. Such a value is shown nowhere."""
    return SECRET_NAME.search(name) is not None


def secret_values(values: Mapping[str, str | None]) -> tuple[str, ...]:
    """Returns the values that may be secrets, judged by their names."""
    return tuple(value for name, value in values.items() if value and is_secret(name))


def without_secrets(text: str, secrets: Iterable[str | None]) -> str:
    """Returns a text, such as an error of a broker or plug-in, with these values hidden.

    They are hidden as they are, and as Python, JSON and URLs write them.
    """
    forms = {form for value in secrets if value for form in (value, *_written(value))}
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, IN_PLACE_OF_SECRET)
    return text


def _written(value: str) -> Iterator[str]:
    """Yields what may stand between quotes for a value; whether `repr` escapes an apostrophe depends on the text around
    it."""
    for write in (repr, ascii):
        escaped = write(value + "'\"")[1:-4]
        yield from (escaped, escaped.replace("\\'", "'"))
    yield quote(value, safe="")
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
