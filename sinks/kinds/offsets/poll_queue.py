"""Groups that may have committed since they were polled last, in the order in which that became known. Pure."""

from __future__ import annotations

from collections.abc import Collection


class PollQueue:
    """Of the groups that are followed. What is not polled in one turn keeps its place for the next."""

    def __init__(self) -> None:
        self._followed: frozenset[str] = frozenset()
        self._waiting: dict[str, None] = {}

    def follow(self, groups: Collection[str]) -> None:
        """These are followed from now on: those that were not before wait, and the others that were wait no more."""
        now = frozenset(groups)
        for group in self._followed - now:
            self._waiting.pop(group, None)
        new, self._followed = now - self._followed, now
        self._waiting |= dict.fromkeys(sorted(new))

    def add(self, groups: Collection[str]) -> None:
        """These may have committed."""
        self._waiting |= dict.fromkeys(group for group in groups if group in self._followed)

    def turn(self, most: int) -> list[str]:
        """The first so many; they wait until `polled`."""
        return list(self._waiting)[:most]

    def polled(self, groups: Collection[str]) -> None:
        """These were asked for after they were added last."""
        for group in groups:
            self._waiting.pop(group, None)

    def __len__(self) -> int:
        """How many wait."""
        return len(self._waiting)
