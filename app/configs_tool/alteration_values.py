"""The values of an alteration: references resolved here, secrets asked for, and none in an error."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from app.configs_tool.arguments import parse_added, parse_added_file, parse_deleted
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
