"""When a list of the target's that is empty is believed. Pure: times come in, in monotonic seconds."""

from __future__ import annotations

from dataclasses import dataclass

from sinks.kinds.topics.absence import OBSERVATIONS, SECONDS


@dataclass
class EmptyList:
    """Since when nothing was shown, and how often that was seen: a broker that lags behind shows nothing, too."""

    _since: float | None = None
    _times: int = 0

    def observe(self, empty: bool, now: float) -> bool:
        """One list; whether it can be believed. One that has anything can."""
        if not empty:
            self._since, self._times = None, 0
            return True
        self._since = now if self._since is None else self._since
        self._times += 1
        return self._times >= OBSERVATIONS and now - self._since >= SECONDS
