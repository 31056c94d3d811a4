"""Kinds that are not polled in every pass, and when each was polled last. Pure: times in monotonic seconds."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sinks.engine.model import Kind


class KindIntervals:
    """Of one flow."""

    def __init__(self, intervals: Mapping[Kind, float]) -> None:
        """`intervals`: seconds between two polls, of the kinds that have any."""
        self._intervals = intervals
        self._polled_at: dict[Kind, float] = {}

    def resting(self, now: float) -> frozenset[Kind]:
        """Kinds whose interval is not over."""
        polled = self._polled_at
        return frozenset(k for k, wait in self._intervals.items() if k in polled and now - polled[k] < wait)

    def polled(self, kinds: Collection[Kind], now: float) -> None:
        """These were read. One that could not be read is due again in the next pass."""
        self._polled_at |= dict.fromkeys(kinds, now)

    def waking(self, kinds: Collection[Kind], now: float) -> list[float]:
        """When those of these kinds that rest now are due again."""
        resting = self.resting(now) & set(kinds)
        return sorted(self._polled_at[kind] + self._intervals[kind] for kind in resting)
