"""Two records that are one, changed on its way: what they have in common, what they do not. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from sinks.verify.differences import Fields

MOST_COMPARED = 250_000
"""Pairs of records in one gap that are compared each with each; beyond, only neighbours are."""

Placed = Sequence[tuple[int, Fields]]
"""Offsets and fields, by offset."""

NULL = 0
"""The digest of a key or a value that is null."""


def changed_fields(ours: Fields, theirs: Fields) -> tuple[str, ...]:
    """Names of the fields that differ."""
    return tuple(name for name in Fields._fields if not _same(getattr(ours, name), getattr(theirs, name)))


def _same(one: int | None, other: int | None) -> bool:
    return one is None or other is None or one == other


def likeness(ours: Fields, theirs: Fields) -> int:
    """How much two records have in common."""
    alike = 0
    if ours.timestamp is not None and ours.timestamp == theirs.timestamp:
        alike += 3
    if ours.value == theirs.value != NULL:
        alike += 3
    if ours.key == theirs.key != NULL:
        alike += 2
    return alike + (ours.headers == theirs.headers)


TELLING_LIKENESS = 3
"""A likeness that tells one record from most others: timestamp or value are the same."""

CERTAIN = 5
"""A likeness that hardly two records have: timestamp and key, timestamp and value, or value and key are the same."""


def pair_up(ours: Placed, theirs: Placed, least: int = TELLING_LIKENESS) -> list[tuple[int, int]]:
    """Offsets of records that are most likely one, in order on both sides, each in one pair at most.

    `least`: likeness of those that are paired.
    """
    if len(ours) == len(theirs) or len(ours) * len(theirs) > MOST_COMPARED:
        neighbours = zip(ours, theirs, strict=False)
        pairs = [(one[0], other[0]) for one, other in neighbours if likeness(one[1], other[1]) >= least]
        if len(pairs) == len(ours) or len(ours) * len(theirs) > MOST_COMPARED:
            return pairs
    return _most_alike(ours, theirs, least)


def _most_alike(ours: Placed, theirs: Placed, least: int) -> list[tuple[int, int]]:
    """The pairs with the greatest sum of likeness: as in an edit distance, by a table of best sums from the end."""
    rows, columns = len(ours), len(theirs)
    best = [[0] * (columns + 1) for _ in range(rows + 1)]
    for row in range(rows - 1, -1, -1):
        for column in range(columns - 1, -1, -1):
            alike = likeness(ours[row][1], theirs[column][1])
            paired = best[row + 1][column + 1] + alike if alike >= least else 0
            best[row][column] = max(paired, best[row + 1][column], best[row][column + 1])
    pairs = []
    row = column = 0
    while row < rows and column < columns:
        if best[row][column] == best[row + 1][column]:
            row += 1
        elif best[row][column] == best[row][column + 1]:
            column += 1
        else:
            pairs.append((ours[row][0], theirs[column][0]))
            row, column = row + 1, column + 1
    return pairs
