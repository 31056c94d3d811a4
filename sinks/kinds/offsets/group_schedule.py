"""Which consumer groups a pass compares. Pure: times come in as arguments, in monotonic seconds."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from operator import itemgetter

from sinks.kinds.offsets.direction import GroupOffset
from sinks.model.times import NEVER_AT
from streaming.durations import doubled

SECONDS_IN_A_PASS, LEAST_IN_A_PASS, OTHERS_IN_A_PASS, OTHERS_WHILE_BEHIND = 4.0, 1000, 500, 50
"""How many groups a pass compares. The groups that waited longest come first; the rest wait for the next pass.

Groups that have just committed: as many as took so many seconds lately, and never fewer than the second number. A pass
has a fixed price, above all two listings of all groups, which is as much as hundreds of groups cost. Other groups: the
third number, or the fourth while more have just committed than the pass takes. They are few, so that a commit never
waits for a long pass.
"""

JUST_COMMITTED = 0.0
"""The due time of a group that has just committed: before all others."""

SEARCH = 0.75
"""Seconds until a group is compared again while its records are searched for. One search takes that long."""

REST, LONGEST_REST = 2.0, 60.0
"""First and longest time in seconds until a group is compared again that has no exact offset yet, or an unwritten one.
The time doubles with each try."""


class GroupSchedule:
    """When each group is due."""

    def __init__(self) -> None:
        self._due: dict[str, float] = {}
        self._tries: dict[str, int] = {}
        self._most = LEAST_IN_A_PASS
        self.behind = False
        """Whether more groups had committed than the last turn took."""

    def took(self, groups: int, seconds: float) -> None:
        """Notes how long a comparison of so many groups took, its writes included."""
        if groups >= LEAST_IN_A_PASS or seconds > SECONDS_IN_A_PASS:
            self._most = max(LEAST_IN_A_PASS, int(groups * SECONDS_IN_A_PASS / max(seconds, 1e-3)))

    def compare_all(self, groups: Collection[str], now: float) -> None:
        """Makes all of these due now. Groups that already wait keep their places."""
        for group in groups:
            self._due.setdefault(group, now)

    def checkpointed(self, groups: Collection[str], now: float) -> None:
        """MM2 wrote a checkpoint of these groups. A group that has just committed stays before all others, because MM2
        writes a checkpoint for the same commit."""
        self._due |= {group: min(now, self._due.get(group, now)) for group in groups}
        self._begin_anew(groups)

    def committed(self, groups: Collection[str]) -> None:
        """These groups have just committed. Groups that committed earlier stay before them."""
        for group in sorted(groups):
            if self._due.get(group) != JUST_COMMITTED:
                self._due.pop(group, None)
                self._due[group] = JUST_COMMITTED
        self._begin_anew(groups)

    def _begin_anew(self, groups: Collection[str]) -> None:
        for group in groups:
            self._tries.pop(group, None)

    def forget(self, groups: Collection[str]) -> None:
        for group in groups:
            self._due.pop(group, None)
            self._tries.pop(group, None)

    def next_at(self) -> float:
        """When the next group is due; NEVER_AT if none is."""
        return min(self._due.values(), default=NEVER_AT)

    def turn(self, now: float, *, everyone: bool = False) -> list[str]:
        """Returns the groups to compare now. `everyone`: without a limit."""
        due = sorted(((due, group) for group, due in self._due.items() if due <= now), key=itemgetter(0))
        committed = [group for at, group in due if at == JUST_COMMITTED]
        others = [group for at, group in due if at != JUST_COMMITTED]
        self.behind = not everyone and len(committed) > self._most
        if everyone:
            return committed + others
        return committed[: self._most] + others[: OTHERS_WHILE_BEHIND if self.behind else OTHERS_IN_A_PASS]

    def compared(self, group: str, rows: Sequence[GroupOffset], now: float) -> None:
        """Says when a group that was just compared is compared again."""
        self._due.pop(group, None)
        if any(row.sought for row in rows):
            self._due[group] = now + SEARCH
        elif any(row.held for row in rows):
            self._due[group] = now + REST
        elif any(not row.settled for row in rows):
            self._tries[group] = self._tries.get(group, 0) + 1
            self._due[group] = now + doubled(REST, self._tries[group], LONGEST_REST)
        else:
            self._tries.pop(group, None)
