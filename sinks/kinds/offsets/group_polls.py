"""When groups are polled for commits, and how many. Pure: times come in as arguments, in monotonic seconds."""

from __future__ import annotations

from collections import deque

POLL_SHARE, POLL_LEAST = 0.1, 0.5
"""Of the time in which groups are polled, and seconds between two polls at least."""

LAST_POLLS, POLL_LONGEST = 3, 5.0
"""The shortest of so many polls says what one takes, so that one that was held up is no reason to wait; and seconds
between two polls at most."""

STORM, STORM_LEAST = 0.1, 200
"""Share of the groups of a poll that committed, and their number, from which on the next poll comes at once: others
are about to, or did meanwhile."""

POLLED_AT_ONCE, POLLED_IN_TURN = 10_000, 2000
"""Groups in one poll at most: of those that may have committed; and where nobody can tell, so that all take turns."""


class PollPace:
    """When something is done again that may take its share of the time."""

    def __init__(self) -> None:
        self.due = float("-inf")
        self._took: deque[float] = deque(maxlen=LAST_POLLS)

    def is_due(self, now: float) -> bool:
        """Whether it may be done now."""
        return now >= self.due

    def took(self, now: float, seconds: float) -> None:
        """It was begun at `now`, and took so long."""
        self._took.append(seconds)
        self.due = now + min(max(POLL_LEAST, min(self._took) / POLL_SHARE), POLL_LONGEST)


class GroupPolls(PollPace):
    """When groups are polled for commits: as often as their share of the time allows."""

    def polled(self, now: float, seconds: float, groups: int, committed: int) -> None:
        """So many groups were polled, of which so many had committed. `now`: when the poll began."""
        self.took(now, seconds)
        if committed >= max(STORM_LEAST, STORM * groups):
            self.due = now
