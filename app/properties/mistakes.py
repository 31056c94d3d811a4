"""What is wrong in a properties file, and where. No message ever shows a secret's value."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from sinks.secret_values import without_secrets
from streaming.errors import WrongUsage

SANE_KEY = re.compile(r"[A-Za-z0-9._>-]+")
"""What a key can look like. Anything else may be the rest of a value whose line lost its backslash: not to be shown."""

REFERENCE = re.compile(r"\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}")
"""Kafka's `ConfigTransformer.DEFAULT_PATTERN`: provider (1), path (3), key (4)."""


@dataclass(frozen=True, slots=True)
class PropertyLine:
    """A line of the file. `raw`: as written. `value`: with references resolved. `problem`: why they cannot be.
    `origin`: where it comes from, if not from the file; then its line number means nothing. `encoded`: it was kept
    encrypted."""

    key: str
    raw: str = field(repr=False)
    line: int
    value: str = field(repr=False)
    problem: str | None = None
    origin: str | None = None
    encoded: bool = False

    @property
    def is_referred(self) -> bool:
        """Whether a part of the value comes from a reference. Then it may be a secret, whatever the key."""
        return REFERENCE.search(self.raw) is not None


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing to mend. `line`: None for a missing line. `key`: empty if the line has none to show."""

    file: str
    line: int | None
    key: str
    message: str

    def __str__(self) -> str:
        position = self.file if self.line is None else f"{self.file}:{self.line}"
        return ": ".join(part for part in (position, self.key, self.message) if part)


class ConfigurationError(WrongUsage):
    """A file that cannot be used. `mistakes`: all of them. `warnings`: what else looks wrong."""

    code = "CONFIGURATION"
    remedy: ClassVar[str | None] = "mend the properties file; `lockstep validate` lists all that is wrong in it"

    def __init__(self, mistakes: Iterable[Mistake], warnings: Iterable[Mistake] = ()) -> None:
        self.mistakes = tuple(mistakes)
        self.warnings = tuple(warnings)
        super().__init__(*map(str, self.mistakes), *self._warned)

    @property
    def lines(self) -> tuple[str, ...]:
        """One line for each mistake or warning. Mistakes come last, where a terminal shows them."""
        return *self._warned, *self.said

    @property
    def said(self) -> tuple[str, ...]:
        """The mistakes alone, a line each."""
        return tuple(map(str, self.mistakes))

    @property
    def _warned(self) -> tuple[str, ...]:
        return tuple(f"warning: {warning}" for warning in self.warnings)


class UnreadableFile(ConfigurationError):
    """The file cannot be read. The message says what to do."""

    remedy = None


class WrongFlow(ConfigurationError):
    """The user asked for a flow that the file, which is sound, does not enable."""

    code = WrongUsage.code
    remedy = WrongUsage.remedy

    def __init__(self, mistakes: Iterable[Mistake], warnings: Iterable[Mistake] = ()) -> None:
        """`warnings` are left out."""
        super().__init__(mistakes)


class Findings:
    """Collects mistakes and warnings of one file, each once."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._mistakes: dict[Mistake, None] = {}
        self._warnings: dict[Mistake, None] = {}
        self._hidden: tuple[str, ...] = ()

    def hide(self, texts: Iterable[str]) -> None:
        """Show these texts in no message from now on, not even in a plug-in's."""
        self._hidden = tuple(texts)

    @property
    def mistakes(self) -> tuple[Mistake, ...]:
        """Mistakes in the order of the lines. Ones without a line come first."""
        return tuple(sorted(self._mistakes, key=_by_line))

    @property
    def warnings(self) -> tuple[Mistake, ...]:
        """Warnings in the order of the lines. Ones without a line come first."""
        return tuple(sorted(self._warnings, key=_by_line))

    def mistake(self, at: PropertyLine | int | None, message: str, key: str | None = None) -> None:
        """Note something that must be mended. `at`: gives line and key, unless `key` names another one."""
        self._mistakes[self._found(at, message, key)] = None

    def warn(self, at: PropertyLine | int | None, message: str, key: str | None = None) -> None:
        """Note something that works, but probably not as meant. A line with a mistake gets no warning."""
        found = self._found(at, message, key)
        if found not in self._mistakes:
            self._warnings[found] = None

    def _found(self, at: PropertyLine | int | None, message: str, key: str | None) -> Mistake:
        file, line = self.file, at.line if isinstance(at, PropertyLine) else at
        if isinstance(at, PropertyLine) and at.origin is not None:
            file, line = at.origin, None
        name = key if key is not None else at.key if isinstance(at, PropertyLine) else ""
        said = without_secrets(message, self._hidden)
        return Mistake(file, line, name if SANE_KEY.fullmatch(name) else "", said)

    def raise_if_any(self, error: type[ConfigurationError] = ConfigurationError) -> None:
        """Raises this error with all mistakes, if there are any."""
        if self._mistakes:
            raise error(self.mistakes, self.warnings)


def _by_line(mistake: Mistake) -> int:
    return mistake.line or 0
