"""Wording of messages: numbers with nouns (`1 record`), lists of names, suggestions for misspelt words."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Final


class Word(str, Enum):
    """An enum whose text is its value, as `enum.StrEnum` has it from Python 3.11 on."""

    def __str__(self) -> str:
        return str.__str__(self)


def noun_of(number: int, one: str, many: str = "") -> str:
    """Returns the noun for a number. `many`: the plural, unless it is `one` with an s."""
    return one if number == 1 else many or f"{one}s"


def number_of(number: int, one: str, many: str = "") -> str:
    """Returns the number with its noun, perhaps with a verb: `number_of(n, "topic is", "topics are")`."""
    return f"{number} {noun_of(number, one, many)}"


def first_names(names: Sequence[str], most: int = 10) -> str:
    """Returns a list for a message: the first `most` names, and how many more."""
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest


# Suggestions for misspelt words: the known word that is most like the given one. Pure.


LIKE: Final = 0.6
"""Least likeness (`difflib`'s ratio) of a suggestion with more typing errors than SLIPS allows."""

SLIPS: Final = 2
"""Most typing errors of a suggestion: letters left out, doubled, swapped or wrong. A word may have one for each LETTERS
of it."""

LETTERS: Final = 3


def nearest(word: str, words: Iterable[str], cutoff: float = LIKE, *, slips: int = SLIPS) -> str | None:
    """Returns the one of `words` that is most like `word`, ignoring case; None if none is like it.

    The word with the fewest typing errors wins, up to `slips`. Otherwise `difflib` chooses one with a ratio of `cutoff`
    or more.
    """
    by_fold = {candidate.casefold(): candidate for candidate in sorted(words)}
    said = word.casefold()
    allowed = min(slips, len(said) // LETTERS)
    near = [(count, other) for other in by_fold if (count := _slips(said, other, allowed)) <= allowed]
    if near:
        return by_fold[min(near)[1]]
    matches = difflib.get_close_matches(said, by_fold, 1, cutoff)
    return by_fold[matches[0]] if matches else None


def nearest_hint(word: str, words: Iterable[str]) -> str:
    """Returns the nearest word as the end of a message; empty if there is none."""
    near = nearest(word, words)
    return f"; nearest: {near}" if near else ""


def _slips(one: str, other: str, most: int) -> int:
    """Returns how many typing errors lead from one word to the other (optimal string alignment); exact up to `most`."""
    if abs(len(one) - len(other)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, 1):
        last, before, row = before, row, [at]
        for to, there in enumerate(other, 1):
            cost = min(before[to] + 1, row[to - 1] + 1, before[to - 1] + (letter != there))
            if at > 1 and to > 1 and letter == other[to - 2] and one[at - 2] == there:
                cost = min(cost, last[to - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return row[-1]
