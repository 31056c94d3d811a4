"""Tells items that are gone from items that one listing lacks. Pure: callers pass times, in monotonic seconds."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from sinks.model.times import NEVER_AT

K = TypeVar("K")

OBSERVATIONS, SECONDS = 3, 60.0
"""A topic must be missing from this many listings, over this many seconds, before Lockstep asks a broker for it by
name."""

SHRUNK = 0.5
"""A listing with less than this share of the one before is not believed. What it lacks counts as missing for the first
time."""


@dataclass
class Absence(Generic[K]):
    """Since when each missing item is missing, and in how many listings. An absence is lasting after this many
    `observations` over this many `seconds`."""

    observations: int = OBSERVATIONS
    seconds: float = SECONDS
    _missing: dict[K, tuple[float, float, int]] = field(default_factory=dict)
    _listed: int = 0

    def observe(self, missing: Collection[K], listed: int, now: float) -> None:
        """Note a listing of `listed` items that lacks `missing`. An item that is listed again is no longer missing."""
        believed = listed > 0 and listed >= SHRUNK * self._listed
        known = self._missing if believed else {}
        self._listed = listed
        counted = missing if listed else ()
        self._missing = {}
        for name in counted:
            since, _, times = known.get(name, (now, now, 0))
            self._missing[name] = since, now, times + 1

    def lasting(self) -> set[K]:
        """Items that were missing in enough observations over enough time."""
        return {one for one in self._missing if self._lasts(one)}

    def _lasts(self, one: K) -> bool:
        since, last, times = self._missing[one]
        return times >= self.observations and last - since >= self.seconds

    @property
    def has_any(self) -> bool:
        return bool(self._missing)

    def next_at(self) -> float:
        """When the next observation may make an absence lasting."""
        step = self.seconds / (self.observations - 1)
        waiting = [found for one, found in self._missing.items() if not self._lasts(one)]
        return min((since + step * min(times, self.observations - 1) for since, _, times in waiting), default=NEVER_AT)

    def forget(self, ones: Collection[K]) -> None:
        """Forget these absences. The next observation counts as the first one."""
        self._missing = {one: found for one, found in self._missing.items() if one not in ones}
