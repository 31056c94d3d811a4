"""When groups are polled for commits. Pure: times come in as arguments, in monotonic seconds."""

from __future__ import annotations

POLL_SHARE, POLL_LEAST = 0.1, 0.5
"""Of the time in which groups are polled, and seconds between two polls at least."""

STORM = 0.5
"""Share of the groups of a poll that committed, from which on the others are polled at once: they may have, too."""


class GroupPolls:
    """When groups are polled for commits: as often as their share of the time allows."""

    def __init__(self) -> None:
        self.due = float("-inf")

    def is_due(self, now: float) -> bool:
        """Whether groups may be polled now."""
        return now >= self.due

    def polled(self, now: float, seconds: float, groups: int, committed: int) -> None:
        """So many groups were polled, of which so many had committed. `now`: when the poll began."""
        storm = committed > STORM * groups and committed > 1
        self.due = now + (0.0 if storm else max(POLL_LEAST, seconds / POLL_SHARE))
