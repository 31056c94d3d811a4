"""What is found where records of source and target are not the same. Plain values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from streaming.message_words import Word


class Difference(Word):
    """What is wrong with records, or why that is unknown."""

    MISSING = "MISSING"
    """On the source, and not on the target, which has later ones."""
    DUPLICATE = "DUPLICATE"
    """On the target once more: MM2 sends again what it cannot be sure of after a crash."""
    CHANGED = "CHANGED"
    """In its place on the target, with another key, value, header or timestamp."""
    REORDERED = "REORDERED"
    """On the target before or behind records that it followed or preceded on the source."""
    EXTRA = "EXTRA"
    """On the target only: another client writes there, a transaction was aborted, or the source's topic recreated."""
    UNVERIFIABLE = "UNVERIFIABLE"
    """Left on one side alone, since the other one has deleted what is so old."""


@dataclass(frozen=True, slots=True)
class FoundDifference:
    """`count` records from these offsets on; an offset is None on the side that has none.

    `fields`: those that differ in a CHANGED record. `timestamp`: in ms, of the first record.
    """

    difference: Difference
    upstream: int | None
    downstream: int | None
    count: int = 1
    fields: tuple[str, ...] = ()
    timestamp: int | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "difference": self.difference.value,
            "upstream_offset": self.upstream,
            "downstream_offset": self.downstream,
            "count": self.count,
            "fields": list(self.fields),
            "timestamp_ms": self.timestamp,
        }


def joined_findings(findings: Iterable[FoundDifference]) -> list[FoundDifference]:
    """Sorts by place, and joins findings of one kind at successive offsets."""
    found: list[FoundDifference] = []
    for one in sorted(findings, key=_order):
        last = found[-1] if found else None
        if last and _goes_on(last, one):
            found[-1] = FoundDifference(
                last.difference, last.upstream, last.downstream, last.count + one.count, last.fields, last.timestamp
            )
        else:
            found.append(one)
    return found


def _order(one: FoundDifference) -> tuple[str, int, int]:
    return (
        one.difference.value,
        -1 if one.upstream is None else one.upstream,
        -1 if one.downstream is None else one.downstream,
    )


def _goes_on(last: FoundDifference, one: FoundDifference) -> bool:
    return (last.difference, last.fields) == (one.difference, one.fields) and all(
        (before is None and after is None) or (before is not None and after == before + last.count)
        for before, after in ((last.upstream, one.upstream), (last.downstream, one.downstream))
    )
