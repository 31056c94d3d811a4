"""What may be a secret, and texts without secrets: the one rule of all that people and programs are shown. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

HIDDEN = "[hidden]"
"""Shown in place of a secret."""

SECRET_NAME = re.compile(
    r"passw|pwd|secret|jaas|token|passphrase|credential|private|webhook\.url|push\.url|keystore\.key|certificate"
    r"|api[._-]?key|access[._-]?key|user\.info",
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
    """A text of others, an error of a broker's or a plug-in's say, with these values hidden, should it repeat one."""
    for value in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(value, HIDDEN)
    return text
