"""The values of an alteration: references resolved here, secrets asked for, and none in an error."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import javaproperties

from app.properties.config_providers import ConfigProvider, resolve
from app.properties.mistakes import REFERENCE, Findings, PropertyLine
from streaming.errors import WrongUsage

PROMPT = "?"
"""A value that is asked for at the terminal."""

Ask = Callable[[str], str]
"""Asks for the secret of this config."""


def wanted_configs(added: Iterable[str], added_file: Path | None, deleted: Iterable[str]) -> dict[str, str | None]:
    """Per name the value as written, None to delete it. Raises WrongUsage."""
    wanted: dict[str, str | None] = {}
    for text in added:
        wanted |= parse_added(text)
    if added_file is not None:
        try:
            wanted |= parse_added_file(added_file.read_bytes())
        except OSError as error:
            raise WrongUsage(f"--add-config-file {added_file} cannot be read: {error.strerror}") from error
    names = parse_deleted(deleted)
    if both := [name for name in names if name in wanted]:
        raise WrongUsage(f"{', '.join(both)}: to be added and deleted at once; say one of them")
    wanted |= dict.fromkeys(names)
    if not wanted:
        raise WrongUsage("there is no config in --add-config, --add-config-file or --delete-config")
    return wanted


def resolved(
    wanted: Mapping[str, str | None], providers: Mapping[str, ConfigProvider] | None, ask: Ask
) -> dict[str, str | None]:
    """The values to be sent: references replaced (unless `providers` is None), `?` asked for.

    Raises WrongUsage for each reference that cannot be resolved: a broker would take `${…}` for the password.
    """
    values, wrong = dict(wanted), []
    for name, value in wanted.items():
        if value == PROMPT:
            values[name] = ask(name)
        elif value is not None and providers is not None and REFERENCE.search(value):
            entry = resolve(PropertyLine(name, value, 0, value), providers, Findings("--add-config"))
            values[name] = entry.value
            if entry.problem is not None:
                wrong.append(f"{name}: {entry.problem}; --literal keeps it as it is written")
    if wrong:
        raise WrongUsage(*wrong)
    return values


# `--add-config`, `--add-config-file` and `--delete-config` as kafka-configs reads them.
#
# Source: `kafka.admin.ConfigCommand`, `parseConfigsToBeAdded` and `parseConfigsToBeDeleted`. Values in square brackets
# may hold commas and equals signs; brackets are dropped wherever they are, so a value that needs them goes into a file.
# Names that no config can have are refused, as the tool did before Kafka 4. No error repeats a value: any of them may
# be a secret.


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
