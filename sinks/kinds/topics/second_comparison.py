"""Topics that are compared although no watch saw them differ. Pure.

The broker that was polled may have shown a change that the one that was read did not show yet, and a watch reports a
difference once. What differs is therefore compared in the next pass, too. At first that is every topic, and to read all
of them twice at once would double what a start takes: they take turns. And a broker that stays behind for longer hides
a change from both passes: so a few topics are compared with each full comparison, whatever the watches say.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection

AT_ONCE = 500
"""Topics that are compared again in one pass: as many as one request describes."""

IN_TURN = 100
"""Topics that are compared with each full comparison, so that 2,000 are within twenty of them."""


class SecondComparison:
    """Upstream topics that are owed one."""

    def __init__(self) -> None:
        self._owed: set[str] = set()
        self._last = ""

    @property
    def is_owed(self) -> bool:
        """Whether there are any."""
        return bool(self._owed)

    def owe(self, topics: Collection[str]) -> None:
        """These are compared now, and are to be compared again."""
        self._owed |= set(topics)

    def owe_some(self, topics: Collection[str]) -> None:
        """The next few of all topics, by their names."""
        ordered = sorted(topics)
        start = bisect_right(ordered, self._last)
        some = ordered[start : start + IN_TURN] or ordered[:IN_TURN]
        self._last = some[-1] if some else ""
        self.owe(some)

    def turn(self, topics: Collection[str], busy: Collection[str]) -> set[str]:
        """Those of `topics` whose turn it is; what is `busy` has not been compared once yet, and keeps its place."""
        self._owed &= set(topics)
        turn = set(sorted(self._owed.difference(busy))[:AT_ONCE])
        self._owed -= turn
        return turn
