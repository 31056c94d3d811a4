"""Types of values: they parse text, and describe what is allowed if that fails."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from streaming.durations import seconds_of
from streaming.errors import LockstepError
from streaming.message_words import nearest_hint
from streaming.mm2.java_regex import compile_java

T_co = TypeVar("T_co", covariant=True)

WORD = r"[A-Za-z_]\w*"
WHOLE = re.compile(r"[+-]?[0-9]+")
COMMA_AND_SPACE = re.compile(r"\s*,\s*")


@dataclass(frozen=True)
class ValueType(Generic[T_co]):
    """A type. `parse`: raises ValueError for text that is not `allowed`. `words`: the allowed values, if they can be
    listed."""

    parse: Callable[[str], T_co]
    allowed: str
    words: tuple[str, ...] = ()

    def complaint(self, shown: str, text: str) -> str:
        """Returns a message about a wrong `text`: what is allowed, and the nearest word. `shown`: the text as the
        message may show it."""
        return f"{shown} is not allowed; allowed: {self.allowed}{nearest_hint(text, self.words)}"


def items(text: str) -> tuple[str, ...]:
    """Splits a list as Kafka's `ConfigDef` does: at commas, without white space. Empty text is an empty list."""
    return tuple(part for part in COMMA_AND_SPACE.split(text.strip()) if part)


def matching(pattern: str, allowed: str) -> ValueType[str]:
    """Returns the type of text that matches the whole pattern. `allowed`: its description."""
    compiled = re.compile(pattern, re.DOTALL)

    def parse(text: str) -> str:
        if not compiled.fullmatch(text):
            # The text may be a secret.
            raise ValueError(f"not {allowed}")
        return text

    return ValueType(parse, allowed)


def secret(note: str = "") -> ValueType[str]:
    """Returns the type of a secret of Lockstep's own. `note`: added to a complaint."""
    return matching(f".{{{SECRET_LENGTH},}}", f"text of at least {SECRET_LENGTH} characters{note}")


def _patterns(text: str) -> tuple[str, ...]:
    parts = COMMA_AND_SPACE.split(text.strip())
    if "" in parts and len(parts) > 1:
        raise ValueError("there is nothing between two commas, or at an end: take that comma out")
    try:
        compile_java("|".join(parts))
    except LockstepError as error:
        raise ValueError(str(error)) from error
    return items(text)


def _folder(text: str) -> Path:
    if not text or "://" in text:
        raise ValueError(text)
    return Path(text)


def one_of(*words: str) -> ValueType[str]:
    """Returns the type of one of these words, case-sensitive, as Kafka's `ValidString`."""
    return ValueType(lambda text: words[words.index(text)], ", ".join(words), words)


def some_of(*words: str) -> ValueType[tuple[str, ...]]:
    """Returns the type of a list of these words, which may be empty."""
    return ValueType(
        lambda text: tuple(words[words.index(part)] for part in items(text)), "a list of " + ", ".join(words), words
    )


def integer(least: int, most: int | None = None, besides: tuple[int, ...] = (), unit: str = "") -> ValueType[int]:
    """Returns the type of a whole number from `least` to `most`, or one of `besides`."""

    def parse(text: str) -> int:
        if not WHOLE.fullmatch(text):
            raise ValueError(text)
        whole = int(text)
        if whole not in besides and not (whole >= least and (most is None or whole <= most)):
            raise ValueError(text)
        return whole

    span = f"a whole number{unit and ' of ' + unit}, {least} or more" if most is None else f"{least} to {most}"
    return ValueType(parse, " or ".join([*map(str, besides), span]))


def number(least: float, most: float) -> ValueType[float]:
    """Returns the type of a number from `least` to `most`."""

    def parse(text: str) -> float:
        value = float(text)
        if not least <= value <= most:
            raise ValueError(text)
        return value

    return ValueType(parse, f"a number, {least:g} to {most:g}")


BOOLEANS = ("true", "false")
SECRET_LENGTH = 16
"""Minimum length, in characters, of Lockstep's own secrets."""

BOOLEAN = ValueType(lambda text: not BOOLEANS.index(text.lower()), ", ".join(BOOLEANS), BOOLEANS)
TEXT = matching(".+", "some text")
TOKEN = matching(f"[!-~]{{{SECRET_LENGTH},}}", f"at least {SECRET_LENGTH} characters of ASCII, without spaces")
TOPIC_PART = matching("[a-zA-Z0-9._-]+", "characters that a topic's name can have: a-z A-Z 0-9 . _ -")
WORDS = ValueType(items, "a list, separated by commas")
PATTERNS = ValueType(_patterns, "names and regular expressions, separated by commas")
CLASS = matching(
    rf"{WORD}(\.{WORD})*([:$]{WORD})?", "package.module:Class, or one of the Java classes that Kafka ships"
)
FOLDER = ValueType(_folder, "a folder on this machine")
DURATION_SECONDS = ValueType(
    seconds_of, 'a time above zero, such as "1 second", "500 milliseconds", "2 minutes", or plain seconds'
)
