"""Numbers with their nouns in messages: `1 record`, `2 records`."""

from __future__ import annotations


def noun_of(number: int, one: str, many: str = "") -> str:
    """The noun for so many; `many`: where that is more than an s."""
    return one if number == 1 else many or f"{one}s"


def number_of(number: int, one: str, many: str = "") -> str:
    """The number and its noun, perhaps with a verb: `number_of(n, "topic is", "topics are")`."""
    return f"{number} {noun_of(number, one, many)}"
