"""How many bytes the running job may read for a comparison: `lockstep.verify.rate`, saved up for a while. Pure."""

from __future__ import annotations

LARGEST_SECONDS = 60.0
"""The largest piece that is read at once, in seconds of the rate."""

UNKNOWN_SIZE = 1024.0
"""Assumed bytes per offset of a topic that was not read yet."""

CAUTIOUS = 10_000
"""Offsets of such a topic that are read at once."""

LEAST_OFFSETS = 1_000
"""Least offsets of a piece. A smaller one costs more than it is worth."""

LEAST_SIZE = 64.0
"""Least bytes per offset, even if transactions and compaction leave offsets without a record."""

NEWEST = 0.5
"""The weight of the newest measurement."""


class ByteBudget:
    """The budget of one flow, for each side. Times are monotonic seconds."""

    def __init__(
        self, rate: int, burst: float, now: float, *, least: int = LEAST_OFFSETS, cautious: int = CAUTIOUS
    ) -> None:
        """`rate`: bytes a second. `burst`: most seconds of the rate that are saved up. `least`: least offsets of a
        piece. `cautious`: offsets that may be read at once in any case."""
        self.rate, self._burst, self._least, self._cautious = rate, burst, least, cautious
        self._level, self._at = rate * burst, now
        self._sizes: dict[str, float] = {}

    def level(self, now: float) -> float:
        """Bytes that may be read now; negative after too much was read."""
        self._level = min(self.rate * self._burst, self._level + self.rate * (now - self._at))
        self._at = now
        return self._level

    def spend(self, size: float) -> None:
        """Notes bytes that were read, of the side with more of them."""
        self._level -= size

    def measured(self, topic: str, offsets: int, size: int) -> None:
        """Learns a topic's bytes per offset from what was read."""
        if offsets > 0:
            known = self._sizes.get(topic)
            found = max(LEAST_SIZE, size / offsets)
            self._sizes[topic] = found if known is None else NEWEST * found + (1 - NEWEST) * known

    def size(self, topic: str, offsets: int) -> float:
        """Expected bytes of so many offsets of a topic."""
        return self._sizes.get(topic, UNKNOWN_SIZE) * offsets

    def offsets(self, topic: str, size: float) -> int:
        """Expected offsets of a topic in so many bytes, and no fewer than are worth a read."""
        known = self._sizes.get(topic)
        found = min(self._cautious, int(size / UNKNOWN_SIZE)) if known is None else int(size / known)
        return max(self._least, found)

    def largest(self, topic: str) -> int:
        """Most offsets that may be read at once, however long the wait afterwards is."""
        return max(self._cautious, int(LARGEST_SECONDS * self.rate / self._sizes.get(topic, UNKNOWN_SIZE)))
