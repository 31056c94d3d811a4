"""Which values must not be shown: secrets, and what Kafka does not know, since it might be one."""

from __future__ import annotations

import re
from collections.abc import Mapping

from app.configs_tool.config_groups import GROUP_OF, base_name
from sinks.kafka.ports.config_levels import LevelledEntry
from sinks.notify.secret_texts import HIDDEN

SECRET = re.compile(
    r"passw|secret|jaas|token|passphrase|credential|private|keystore\.key$|keystore\.certificate", re.IGNORECASE
)


def is_secret(name: str, known: Mapping[str, LevelledEntry]) -> bool:
    """Whether a config's value is hidden: a broker says so of what it has (`known`), custom configs always are."""
    entry = known.get(name)
    if entry is not None:
        return entry.sensitive
    return SECRET.search(name) is not None or base_name(name) not in GROUP_OF


def shown(name: str, value: str | None, known: Mapping[str, LevelledEntry]) -> str | None:
    """A value as it may be shown."""
    return HIDDEN if value is not None and is_secret(name, known) else value
