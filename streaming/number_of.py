"""Numbers with their nouns in messages (`1 record`, `2 records`), and lists of names."""

from __future__ import annotations

from collections.abc import Sequence


def noun_of(number: int, one: str, many: str = "") -> str:
    """The noun for so many; `many`: where that is more than an s."""
    return one if number == 1 else many or f"{one}s"


def number_of(number: int, one: str, many: str = "") -> str:
    """The number and its noun, perhaps with a verb: `number_of(n, "topic is", "topics are")`."""
    return f"{number} {noun_of(number, one, many)}"


SHOWN = 3
"""How many names a list in a message gives."""


def first_names(names: Sequence[str]) -> str:
    """The first of some names."""
    return ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")
