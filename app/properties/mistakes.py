"""Collects the mistakes in a properties file with their lines. No message ever shows a secret's value."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from sinks.secret_values import without_secrets
from streaming.errors import WrongUsage

SANE_KEY = re.compile(r"[A-Za-z0-9._>-]+")
"""Matches what a key can look like. Other text may be the rest of a value whose line lost its backslash, and must not
be shown."""

REFERENCE = re.compile(r"\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}")
"""Kafka's `ConfigTransformer.DEFAULT_PATTERN`: provider (1), path (3), key (4)."""


@dataclass(frozen=True, slots=True)
class PropertyLine:
    """A line of the file. `raw`: as written. `value`: with references resolved. `problem`: why they cannot be resolved.
    `origin`: the source if it is not the file; the line number then has no meaning. `encoded`: the value was stored
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
        """Whether a part of the value comes from a reference. Such a value may be secret, whatever the key."""
        return REFERENCE.search(self.raw) is not None


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing to correct. `line`: None for a missing line. `key`: "" if the line has none to show."""

    file: str
    line: int | None
    key: str
    message: str

    def __str__(self) -> str:
        position = self.file if self.line is None else f"{self.file}:{self.line}"
        return ": ".join(part for part in (position, self.key, self.message) if part)


class ConfigurationError(WrongUsage):
    """A file that cannot be used. `mistakes`: all of them. `warnings`: other doubtful lines."""

    code = "CONFIGURATION"
    remedy: ClassVar[str | None] = "mend the properties file; `lockstep validate` lists all its mistakes"

    def __init__(self, mistakes: Iterable[Mistake], warnings: Iterable[Mistake] = ()) -> None:
        self.mistakes = tuple(mistakes)
        self.warnings = tuple(warnings)
        super().__init__(*map(str, self.mistakes), *self._warned)

    @property
    def lines(self) -> tuple[str, ...]:
        """One line for each warning or mistake. Mistakes come last, where a terminal shows them."""
        return *self._warned, *self.said

    @property
    def said(self) -> tuple[str, ...]:
        """The mistakes, a line each."""
        return tuple(map(str, self.mistakes))

    @property
    def _warned(self) -> tuple[str, ...]:
        return tuple(f"warning: {warning}" for warning in self.warnings)


class UnreadableFile(ConfigurationError):
    """The file cannot be read. The message says what to do."""

    remedy = None


class WrongFlow(ConfigurationError):
    """The user named a flow that the file does not enable. The file itself has no mistake."""

    code = WrongUsage.code
    remedy = WrongUsage.remedy

    def __init__(self, mistakes: Iterable[Mistake], warnings: Iterable[Mistake] = ()) -> None:
        """Keeps the mistakes and drops the `warnings`."""
        super().__init__(mistakes)


class Findings:
    """Collects mistakes and warnings of one file, each once."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._mistakes: dict[Mistake, None] = {}
        self._warnings: dict[Mistake, None] = {}
        self._hidden: tuple[str, ...] = ()

    def hide(self, texts: Iterable[str]) -> None:
        """Removes these texts from all later messages, even from a plug-in's."""
        self._hidden = tuple(texts)

    @property
    def mistakes(self) -> tuple[Mistake, ...]:
        """The mistakes in the order of the lines. Those without a line come first."""
        return tuple(sorted(self._mistakes, key=_by_line))

    @property
    def warnings(self) -> tuple[Mistake, ...]:
        """The warnings in the order of the lines. Those without a line come first."""
        return tuple(sorted(self._warnings, key=_by_line))

    def mistake(self, at: PropertyLine | int | None, message: str, key: str | None = None) -> None:
        """Adds a mistake: the file cannot be used until it is corrected. `at`: the line. `key`: named instead of the
        line's key."""
        self._mistakes[self._found(at, message, key)] = None

    def warn(self, at: PropertyLine | int | None, message: str, key: str | None = None) -> None:
        """Adds a warning: the line works, but probably not as intended. A line with a mistake gets no warning."""
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
