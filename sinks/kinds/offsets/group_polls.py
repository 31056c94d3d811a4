"""When groups are polled for commits. Pure: times come in as arguments, in monotonic seconds."""

from __future__ import annotations

from collections import deque

POLL_SHARE, POLL_LEAST = 0.1, 0.5
"""Of the time in which groups are polled, and seconds between two polls at least."""

LAST_POLLS, POLL_LONGEST = 3, 5.0
"""The shortest of so many polls says what one takes, so that one that was held up is no reason to wait; and seconds
between two polls at most."""

STORM = 0.5
"""Share of the groups of a poll that committed, from which on the others are polled at once: they may have, too."""


class GroupPolls:
    """When groups are polled for commits: as often as their share of the time allows."""

    def __init__(self) -> None:
        self.due = float("-inf")
        self._took: deque[float] = deque(maxlen=LAST_POLLS)

    def is_due(self, now: float) -> bool:
        """Whether groups may be polled now."""
        return now >= self.due

    def polled(self, now: float, seconds: float, groups: int, committed: int) -> None:
        """So many groups were polled, of which so many had committed. `now`: when the poll began."""
        storm = committed > STORM * groups and committed > 1
        self._took.append(seconds)
        self.due = now + (0.0 if storm else min(max(POLL_LEAST, min(self._took) / POLL_SHARE), POLL_LONGEST))
