"""`--add-config`, `--add-config-file` and `--delete-config` as kafka-configs reads them.

Source: `kafka.admin.ConfigCommand`, `parseConfigsToBeAdded` and `parseConfigsToBeDeleted`. Values in square brackets
may hold commas and equals signs; brackets are dropped wherever they are, so a value that needs them goes into a file.
Names that no config can have are refused, as the tool did before Kafka 4. No error repeats a value: any of them may
be a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import javaproperties

from streaming.errors import WrongUsage

OUTSIDE_BRACKETS = r"(?=[^\]]*(?:\[|$))"
COMMA = re.compile(rf",{OUTSIDE_BRACKETS}", re.ASCII)
EQUALS = re.compile(rf"\s*=\s*{OUTSIDE_BRACKETS}", re.ASCII)
BRACKETS = re.compile(r"\[?\]?")
LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]*")
TRIMMED = "".join(map(chr, range(0x21)))
"""What Java's `String.trim` takes away."""


def parse_added(text: str) -> dict[str, str]:
    """The configs of `k1=v1,k2=[v1,v2],k3=`, by name; the last one of a name holds. Raises WrongUsage."""
    parts = COMMA.split(text)
    while len(parts) > 1 and not parts[-1]:
        # Java's split drops empty strings at the end.
        parts.pop()
    if len(parts) == 1 and not parts[0] and text:
        return {}
    added: dict[str, str] = {}
    for number, part in enumerate(parts, 1):
        pair = EQUALS.split(part)
        if len(pair) != 2:
            raise WrongUsage(
                f"--add-config: config {number} is not in the form key=value; write a value that has commas or equals "
                "signs in square brackets, key=[value1,value2], and what has brackets itself into --add-config-file"
            )
        added[pair[0].strip(TRIMMED)] = BRACKETS.sub("", pair[1]).strip(TRIMMED)
    _check_names(added, "--add-config")
    return added


def parse_added_file(data: bytes) -> dict[str, str]:
    """The configs of a properties file, as `java.util.Properties` reads it. Raises WrongUsage."""
    try:
        added: dict[str, str] = javaproperties.loads(data.decode("iso-8859-1"))
    except ValueError:
        raise WrongUsage("--add-config-file cannot be read as properties: write a config a line, key=value") from (None)
    _check_names(added, "--add-config-file")
    return added


def parse_deleted(texts: Iterable[str]) -> tuple[str, ...]:
    """The names of `k1,k2`, given once or more often, each name once."""
    names = (name.strip(TRIMMED) for text in texts for name in text.split(","))
    return tuple(dict.fromkeys(filter(None, names)))


def _check_names(added: Iterable[str], flag: str) -> None:
    for number, name in enumerate(added, 1):
        if not name or not LEGAL_NAME.fullmatch(name):
            # Not shown: where brackets are missing, a part of a password stands in the place of a name.
            raise WrongUsage(f"{flag}: the name of config {number} is empty or has characters besides a-zA-Z0-9._-")
