"""Which values must not be shown: secrets, and what Kafka does not know, since it might be one."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sinks.cluster.levels import LevelledEntry
from sinks.configs.groups import BY_NAME, base_name

SECRET = re.compile(
    r"passw|secret|jaas|token|passphrase|credential|private|keystore\.key$|keystore\.certificate", re.IGNORECASE
)
HIDDEN = "[hidden]"


def is_secret(name: str, known: Mapping[str, LevelledEntry]) -> bool:
    """Whether a config's value is hidden: a broker says so of what it has (`known`), custom configs always are."""
    entry = known.get(name)
    if entry is not None:
        return entry.sensitive
    return SECRET.search(name) is not None or base_name(name) not in BY_NAME


def shown(name: str, value: str | None, known: Mapping[str, LevelledEntry]) -> str | None:
    """A value as it may be told."""
    return HIDDEN if value is not None and is_secret(name, known) else value


def without_secrets(text: str, secrets: Mapping[str, str | None]) -> str:
    """A text of a broker's with these values hidden, should it repeat one."""
    for value in sorted(filter(None, secrets.values()), key=len, reverse=True):
        text = text.replace(value, HIDDEN)
    return text
