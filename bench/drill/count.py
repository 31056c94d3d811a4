"""What a group that moves to the target skips, and what it reads twice: counted record by record, by their ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Entry = tuple[int, int]
"""The offset of a record and its id; a log is a sequence of these, by offset."""


@dataclass(frozen=True, slots=True)
class Moved:
    """What would happen to one partition of one group. Records.

    `skipped`: the group has not read them, they are on the target, and it does not get them. `again`: those that it
    gets although it has read them, or gets a second time. `least`: what it would get again if it started at the last
    offset that skips nothing, which no offset can better.
    """

    skipped: int
    again: int
    least: int


@dataclass(frozen=True)
class Partition:
    """A partition on both clusters.

    `written`: id to source offset, of all records that a consumer of the source could ever read: neither aborted ones
    nor, once more, what compaction took since. `source`, `target`: the logs as they are. `end`: of the target's log at
    the moment that counts; what is there later had not been copied yet.
    """

    written: Mapping[int, int]
    source: Sequence[Entry]
    target: Sequence[Entry]
    end: int

    def moved(self, position: int, start: int) -> Moved:
        """For a group at `position` on the source that goes on at `start` on the target."""
        return Moved(self._skipped(position, start), self._again(position, start), self.least(position))

    def least(self, position: int) -> int:
        """Records read twice from the last offset that skips nothing."""
        return self._again(position, self.last_safe(position))

    def last_safe(self, position: int) -> int:
        """The first of the last copies of what a group at `position` needs; the end, where it needs nothing."""
        last = {name: offset for offset, name in self._copied()}
        needed = (last[name] for name in self._needed(position) if name in last)
        return min(needed, default=self.end)

    def missing(self, position: int) -> int:
        """Number of records that a group at `position` needs and the target does not have. No offset could help."""
        return len(self._needed(position) - {name for _, name in self._copied()})

    def _skipped(self, position: int, start: int) -> int:
        below = {name for offset, name in self._copied() if offset < start}
        return len(self._needed(position) & (below - set(self._got(start))))

    def _again(self, position: int, start: int) -> int:
        known = [name for name in self._got(start) if name in self.written]
        return len(known) - len({name for name in known if self.written[name] >= position})

    def _needed(self, position: int) -> set[int]:
        return {name for offset, name in self.source if offset >= position}

    def _got(self, start: int) -> list[int]:
        return [name for offset, name in self._copied() if offset >= start]

    def _copied(self) -> list[Entry]:
        return [entry for entry in self.target if entry[0] < self.end]
