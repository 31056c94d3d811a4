"""Whether what was listed of a source still holds, since its metadata log has not moved. Pure; monotonic seconds."""

from __future__ import annotations

SETTLED_AFTER = 15.0
"""Seconds after a signal until each broker shows what it told of: the one that is asked may follow the metadata log
behind the one that told of it."""


class Quiet:
    """Of one flow's source."""

    def __init__(self) -> None:
        self._moved_at, self._listed_at = float("inf"), float("-inf")

    def sampled(self, now: float, silent: bool) -> None:
        """`silent`: the log is followed, and nothing was signalled since this was last called."""
        if not silent or self._moved_at == float("inf"):
            self._moved_at = now

    def listed(self, began: float) -> None:
        """The source was listed; `began`: before it was asked."""
        self._listed_at = began

    @property
    def is_since_listed(self) -> bool:
        """Whether the last listing shows all that was signalled, and nothing was signalled since."""
        return self._listed_at - self._moved_at >= SETTLED_AFTER
