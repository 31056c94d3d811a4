"""Which consumer groups a pass compares. Pure: times come in as arguments, in monotonic seconds."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from operator import itemgetter

from sinks.kinds.offsets.direction import GroupOffset

SECONDS_IN_A_PASS, LEAST_IN_A_PASS, OTHERS_IN_A_PASS, OTHERS_WHILE_BEHIND = 4.0, 1000, 500, 50
"""A pass compares as many groups that have just committed as it did in so many seconds lately, never fewer than the
second number: what it costs whatever their number, two listings of all groups above all, is as much as hundreds do.
And of others the third, or the fourth where more have just committed than it takes. The rest wait for the next pass,
those that waited longest first. Few of the others, so that a commit never waits for a long pass to end.
"""

JUST_COMMITTED = 0.0
"""When a group is due that has just committed: before all others."""

SEARCH = 0.75
"""Seconds until a group is compared again whose records are being looked for: so long one search takes."""

REST, LONGEST_REST = 2.0, 60.0
"""Seconds after which a group is compared again whose offsets could be nearer, or are not written: the first time, and
in the end; twice as long each time until then."""


class GroupSchedule:
    """When each group is due."""

    def __init__(self) -> None:
        self._due: dict[str, float] = {}
        self._tries: dict[str, int] = {}
        self._most = LEAST_IN_A_PASS
        self.behind = False
        """Whether more groups had committed than the last turn took."""

    def took(self, groups: int, seconds: float) -> None:
        """A comparison of so many groups took so long, with what was written of it."""
        if groups >= LEAST_IN_A_PASS or seconds > SECONDS_IN_A_PASS:
            self._most = max(LEAST_IN_A_PASS, int(groups * SECONDS_IN_A_PASS / max(seconds, 1e-3)))

    def compare_all(self, groups: Collection[str], now: float) -> None:
        """All of these are due now, where nothing made them due before; those that wait keep their places."""
        for group in groups:
            self._due.setdefault(group, now)

    def checkpointed(self, groups: Collection[str], now: float) -> None:
        """MM2 wrote something about these. One that has just committed stays where it is, before all others: MM2 sees
        the same commit and writes a checkpoint for it."""
        self._due |= {group: min(now, self._due.get(group, now)) for group in groups}
        self._begin_anew(groups)

    def committed(self, groups: Collection[str]) -> None:
        """These have just committed; those that did so before come before them."""
        for group in sorted(groups):
            if self._due.get(group) != JUST_COMMITTED:
                self._due.pop(group, None)
                self._due[group] = JUST_COMMITTED
        self._begin_anew(groups)

    def _begin_anew(self, groups: Collection[str]) -> None:
        for group in groups:
            self._tries.pop(group, None)

    def forget(self, groups: Collection[str]) -> None:
        """Groups that are gone."""
        for group in groups:
            self._due.pop(group, None)
            self._tries.pop(group, None)

    def next_at(self) -> float:
        """When the next group is to be compared; infinite where none is."""
        return min(self._due.values(), default=float("inf"))

    def is_due(self, now: float) -> bool:
        """Whether any group is to be compared now."""
        return any(due <= now for due in self._due.values())

    def turn(self, now: float, *, everyone: bool = False) -> list[str]:
        """The groups to compare now; `everyone`: however many they are."""
        due = sorted(((due, group) for group, due in self._due.items() if due <= now), key=itemgetter(0))
        committed = [group for at, group in due if at == JUST_COMMITTED]
        others = [group for at, group in due if at != JUST_COMMITTED]
        self.behind = not everyone and len(committed) > self._most
        if everyone:
            return committed + others
        return committed[: self._most] + others[: OTHERS_WHILE_BEHIND if self.behind else OTHERS_IN_A_PASS]

    def compared(self, group: str, rows: Sequence[GroupOffset], now: float) -> None:
        """What a comparison found says when the group is compared again."""
        self._due.pop(group, None)
        if any(row.sought for row in rows):
            self._due[group] = now + SEARCH
        elif any(row.held for row in rows):
            self._due[group] = now + REST
        elif any(not row.settled for row in rows):
            tries = self._tries.get(group, 0)
            self._due[group] = now + min(REST * 2 ** min(tries, 10), LONGEST_REST)
            self._tries[group] = tries + 1
        else:
            self._tries.pop(group, None)
