"""How many bytes the running job may read for a comparison now: `lockstep.verify.rate`, saved up for a while. Pure."""

from __future__ import annotations

LARGEST_SECONDS = 60.0
"""Of the rate: no piece that is read at once is larger."""

UNKNOWN_SIZE = 1024.0
"""Assumed bytes per offset for a topic that was not read yet."""

CAUTIOUS = 10_000
"""Offsets that are read at once of such a topic."""

LEAST_OFFSETS = 1_000
"""Offsets of a piece at least: smaller ones would cost more than they are worth."""

LEAST_SIZE = 64.0
"""Bytes an offset counts as at least, also where transactions and compaction leave offsets without a record."""

NEWEST = 0.5
"""The weight of the newest measurement."""


class ByteBudget:
    """Of one flow, for each side. Times in seconds of any clock that only goes on."""

    def __init__(
        self, rate: int, burst: float, now: float, *, least: int = LEAST_OFFSETS, cautious: int = CAUTIOUS
    ) -> None:
        """`rate`: bytes a second; `burst`: as many seconds' worth are saved up at most. `least`: offsets of a piece at
        least; `cautious`: offsets that may be read at once in any case."""
        self.rate, self._burst, self._least, self._cautious = rate, burst, least, cautious
        self._level, self._at = rate * burst, now
        self._sizes: dict[str, float] = {}

    def level(self, now: float) -> float:
        """Bytes that may be read now; less than none while too much was read before."""
        self._level = min(self.rate * self._burst, self._level + self.rate * (now - self._at))
        self._at = now
        return self._level

    def spend(self, size: float) -> None:
        """So many bytes were read of the side of which more were."""
        self._level -= size

    def measured(self, topic: str, offsets: int, size: int) -> None:
        """What was read of a topic."""
        if offsets > 0:
            known = self._sizes.get(topic)
            found = max(LEAST_SIZE, size / offsets)
            self._sizes[topic] = found if known is None else NEWEST * found + (1 - NEWEST) * known

    def size(self, topic: str, offsets: int) -> float:
        """Bytes that so many offsets of a topic will most likely be."""
        return self._sizes.get(topic, UNKNOWN_SIZE) * offsets

    def offsets(self, topic: str, size: float) -> int:
        """How many offsets of a topic that many bytes are, and so many at least that reading them is worth it."""
        known = self._sizes.get(topic)
        found = min(self._cautious, int(size / UNKNOWN_SIZE)) if known is None else int(size / known)
        return max(self._least, found)

    def largest(self, topic: str) -> int:
        """Offsets that may be read at once, however long is waited afterwards."""
        return max(self._cautious, int(LARGEST_SECONDS * self.rate / self._sizes.get(topic, UNKNOWN_SIZE)))
