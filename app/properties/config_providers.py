"""Kafka's config providers: `${env:NAME}`, `${file:PATH:KEY}`, `${dir:PATH:KEY}` in values.

Source: `ConfigTransformer` and `org.apache.kafka.common.config.provider`. The three work without a declaration. Where
`config.providers` declares names, only those count, with their classes and `param.`s. A reference that cannot be
resolved is a mistake. Kafka leaves it unchanged, so the text `${…}` becomes a password.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import javaproperties

from app.properties.mistakes import REFERENCE, Findings, PropertyLine
from sinks.secret_values import is_secret
from streaming.errors import LockstepError
from streaming.mm2.java_regex import compile_java

DECLARED = "config.providers"
KAFKA_PACKAGE = "org.apache.kafka.common.config.provider."


class ProviderError(LockstepError):
    """Why a reference cannot be resolved. The message shows no value."""


ConfigProvider = Callable[[str, str], str]
"""Returns the value of a path and a key, as Kafka's `ConfigProvider`. Raises ProviderError if there is none."""


def environment_provider(environ: Mapping[str, str], allowlist: str = ".*") -> ConfigProvider:
    """Returns a provider of environment variables whose whole name matches `allowlist.pattern`."""

    def get(path: str, key: str) -> str:
        if path:
            raise ProviderError("environment variables have no path: write ${env:NAME}")
        if not compile_java(allowlist).fullmatch(key):
            raise ProviderError(f"the allowlist.pattern {allowlist} does not match {key}")
        if key not in environ:
            raise ProviderError(f"the environment variable {key} is not set")
        return environ[key]

    return get


def file_provider(allowed: tuple[Path, ...] = ()) -> ConfigProvider:
    """Returns a provider of the keys of a properties file in UTF-8. `allowed`: folders that may hold it; empty: any."""

    def get(path: str, key: str) -> str:
        file = _allowed_path(path, allowed)
        try:
            with file.open(encoding="utf-8") as opened:
                values = javaproperties.load(opened)
        except (OSError, ValueError) as error:
            raise ProviderError(f"{path} cannot be read as properties: {_reason(error)}") from None
        if key not in values:
            raise ProviderError(f"{path} has no key {key}")
        return str(values[key])

    return get


def directory_provider(allowed: tuple[Path, ...] = ()) -> ConfigProvider:
    """Returns a provider of files in a folder, one UTF-8 value a file, as Kubernetes mounts secrets. `allowed`: as in
    `file_provider`.
    """

    def get(path: str, key: str) -> str:
        folder = _allowed_path(path, allowed)
        file = folder / key
        if not folder.is_dir() or file.parent != folder or not file.is_file():
            raise ProviderError(f"there is no directory {path}, or no file {key} in it")
        try:
            return file.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise ProviderError(f"{file} cannot be read: {_reason(error)}") from None

    return get


def foreign_provider(class_name: str) -> ConfigProvider:
    """Returns a provider for a declared class that Lockstep lacks. It fails only if a reference uses it."""

    def get(path: str, key: str) -> str:
        known = ", ".join(f"{KAFKA_PACKAGE}{name}" for name in CLASSES)
        raise ProviderError(f"Lockstep does not have the class {class_name}; it has: {known}")

    return get


CLASSES: Mapping[str, str] = {
    "EnvVarConfigProvider": "env",
    "FileConfigProvider": "file",
    "DirectoryConfigProvider": "dir",
}


def _reason(error: Exception) -> str:
    # The text of a UnicodeDecodeError or of an InvalidUEscapeError has a piece of the file in it.
    return (error.strerror or "input/output error") if isinstance(error, OSError) else "it is not UTF-8, or damaged"


def _allowed_path(path: str, allowed: tuple[Path, ...]) -> Path:
    if not path:
        raise ProviderError("the path is missing: write ${file:PATH:KEY} or ${dir:PATH:KEY}")
    if not allowed:
        return Path(path)
    normal = Path(os.path.normpath(path))
    if not any(normal.is_relative_to(folder) for folder in allowed):
        raise ProviderError(f"{path} is outside allowed.paths ({', '.join(map(str, allowed))})")
    return normal


def config_providers(
    entries: Mapping[str, PropertyLine], environ: Mapping[str, str], findings: Findings
) -> dict[str, ConfigProvider]:
    """Returns the providers by the name that references use."""
    found: dict[str, ConfigProvider] = {
        "env": environment_provider(environ),
        "file": file_provider(),
        "dir": directory_provider(),
    }
    declared = entries.get(DECLARED)
    for name in filter(None, map(str.strip, declared.value.split(","))) if declared else ():
        chosen = entries.get(f"{DECLARED}.{name}.class")
        if chosen is None and name not in found:
            findings.mistake(declared, f"{name} is declared, but {DECLARED}.{name}.class is missing")
            continue
        class_name = chosen.value if chosen else name
        kind = CLASSES.get(class_name.removeprefix(KAFKA_PACKAGE)) if chosen else name
        param = f"{DECLARED}.{name}.param."
        if kind == "env":
            found[name] = environment_provider(environ, _allowlist(entries.get(f"{param}allowlist.pattern"), findings))
        elif kind is None:
            found[name] = foreign_provider(class_name)
        else:
            allowed = _allowed(entries.get(f"{param}allowed.paths"), findings)
            found[name] = file_provider(allowed) if kind == "file" else directory_provider(allowed)
    return found


def _allowlist(entry: PropertyLine | None, findings: Findings) -> str:
    if entry is not None:
        try:
            compile_java(entry.value)
            return entry.value
        except LockstepError as error:
            findings.mistake(entry, str(error))
    return ".*"


def _allowed(entry: PropertyLine | None, findings: Findings) -> tuple[Path, ...]:
    folders = [Path(os.path.normpath(part)) for part in entry.value.split(",") if part] if entry else []
    for folder in folders:
        if not folder.is_absolute():
            findings.mistake(entry, f"{folder} is not absolute")
        elif not folder.exists():
            findings.mistake(entry, f"{folder} does not exist")
    return tuple(folders)


def resolve(entry: PropertyLine, providers: Mapping[str, ConfigProvider], findings: Findings) -> PropertyLine:
    """Returns the entry with its references replaced once, or with its `problem`. A value that looks like a reference
    stays.

    A provider that is not declared is a mistake in any key. For other problems, `check` decides whether they are
    mistakes.
    """
    problems: list[str] = []

    def look_up(match: re.Match[str]) -> str:
        name, path, key = match[1], match[3] or "", match[4]
        if name not in providers:
            written = "of that name" if is_secret(entry.key) else repr(name)
            problems.append(f"there is no config provider {written}; there are {', '.join(sorted(providers))}")
            return match[0]
        try:
            return providers[name](path, key)
        except ProviderError as error:
            problems.append(f"{match[0]}: {error}")
            return match[0]

    value = REFERENCE.sub(look_up, entry.raw).strip()
    problem = "; ".join(problems) or None
    if problem and any(match[1] not in providers for match in REFERENCE.finditer(entry.raw)):
        findings.mistake(entry, problem)
    return replace(entry, value=value, problem=problem)


def resolve_all(
    entries: Mapping[str, PropertyLine], environ: Mapping[str, str], findings: Findings
) -> dict[str, PropertyLine]:
    """Resolves all entries except those that declare providers."""
    providers = config_providers(entries, environ, findings)
    return {
        key: entry if key.startswith(DECLARED) else resolve(entry, providers, findings)
        for key, entry in entries.items()
    }
