"""Follows the groups of the cluster that they come from: which committed, and which a pass compares.

A poll asks only for groups that may have committed, by the ends of `__consumer_offsets` (`CommitEnds`).
"""

from __future__ import annotations

import logging
import struct
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Final, NamedTuple

from sinks.faults import RightsMissing
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.groups import GroupReader
from sinks.kafka.ports.watches import GroupWatch
from sinks.kinds.file_warnings import unmatched_groups
from sinks.kinds.offsets.direction import GroupOffset
from sinks.model.times import NEVER_AT
from streaming.durations import doubled
from streaming.mm2.records import TopicPartition

log = logging.getLogger(__name__)


class GroupChanges(NamedTuple):
    """Groups that committed, and groups that are gone or no longer chosen."""

    committed: Collection[str] = ()
    gone: Collection[str] = ()


class PolledGroups:
    """The followed groups of one cluster. Not thread-safe."""

    def __init__(
        self,
        settings: FlowSettings,
        groups: GroupReader,
        watch: GroupWatch,
        clock: Callable[[], float],
        requested: Collection[str] | None = None,
    ) -> None:
        """`requested`: follow only these groups; None: all that the filter selects."""
        self._settings, self._groups, self._watch = settings, groups, watch
        self._clock, self._asked = clock, requested
        self._polls, self._listings = PollPace(), PollPace()
        # Followed groups that wait for a poll. A group that one poll leaves out keeps its place for the next.
        self._waiting: dict[str, None] = {}
        self._ends, self._may_be_new = CommitEnds(groups), True
        self.chosen: frozenset[str] = frozenset()
        self.unmatched: Sequence[str] = ()
        """Warnings about names in the list of groups that matched no group at the last listing."""

    def poll(self, now: float, everything: bool, partitions: int = 0) -> GroupChanges:
        """Returns the groups that committed since the last poll, with as few requests as possible.

        `partitions`: number of partitions of `__consumer_offsets`, 0 if unknown. Raises ClusterUnreachable,
        RightsMissing, CoordinatorUnavailable.
        """
        if not (everything or now >= self._polls.due):
            return GroupChanges()
        start, gone = self._clock(), frozenset[str]()
        # Groups go on waiting if an error is raised after that. New groups wait by themselves.
        if everything:
            self._wait(self.chosen)
        moved = self._ends.moved(partitions, now)
        self._wait(self.chosen if moved is None else self._ends.groups_in(moved, self.chosen))
        self._may_be_new |= moved is None or bool(moved)
        if everything or (self._may_be_new and now >= self._listings.due):
            gone = self._list(now)
        asked = list(self._waiting)[: POLLED_IN_TURN if moved is None else POLLED_AT_ONCE]
        committed = self._watch.changed(self.chosen, asked) if asked else set()
        for group in asked:
            del self._waiting[group]
        self._ends.note_polled(set(asked).difference(self._watch.troubled), committed)
        self._polls.took(now, self._clock() - start, len(asked), len(committed))
        return GroupChanges(committed, gone)

    @property
    def due(self) -> float:
        """Returns when `poll` has work on its own, in monotonic seconds."""
        return self._polls.due

    def _list(self, now: float) -> frozenset[str]:
        """Lists the groups. Returns groups that are gone or no longer selected."""
        start, names = self._clock(), self._groups.names()
        groups = frozenset(
            chosen_groups(self._settings, names if self._asked is None else names.intersection(self._asked))
        )
        self.unmatched = unmatched_groups(self._settings, lambda: names)
        gone, new, self.chosen = self.chosen - groups, groups - self.chosen, groups
        self._ends.forget(gone)
        for group in gone:
            self._waiting.pop(group, None)
        self._wait(new)
        self._listings.took(now, self._clock() - start)
        self._may_be_new = False
        return gone

    def _wait(self, groups: Iterable[str]) -> None:
        self._waiting |= dict.fromkeys(sorted(groups))


POLL_SHARE, POLL_LEAST = 0.1, 0.5
"""Share of the time that polls may take, and least seconds between two polls."""

LAST_POLLS, POLL_LONGEST = 3, 5.0
"""Number of last polls, the shortest one counting as a poll's duration, so that a delayed one changes nothing; and most
seconds between two polls."""

STORM, STORM_LEAST = 0.1, 200
"""Share and number of a poll's groups that committed from which on the next poll starts at once, because others commit
too."""

POLLED_AT_ONCE, POLLED_IN_TURN = 10_000, 2000
"""Most groups in one poll: of groups that may have committed; and if that is unknown, of all groups in turns."""


class PollPace:
    """Decides when to repeat work that may take a fixed share of the time."""

    def __init__(self) -> None:
        self.due = float("-inf")
        """When the work is due, in monotonic seconds."""
        self._took: deque[float] = deque(maxlen=LAST_POLLS)

    def took(self, now: float, seconds: float, groups: int = 0, committed: int = 0) -> None:
        """Notes that the work began at `now` and took `seconds`. `committed`: how many of the polled `groups` had
        committed."""
        self._took.append(seconds)
        self.due = now + min(max(POLL_LEAST, min(self._took) / POLL_SHARE), POLL_LONGEST)
        if committed >= max(STORM_LEAST, STORM * groups):
            self.due = now


def chosen_groups(settings: FlowSettings, names: Iterable[str]) -> list[str]:
    """Returns the groups that the filter selects, sorted. Leaves out the group without a name: brokers accept its
    commits for old consumers, but no Admin client can read or commit its offsets."""
    return sorted(group for group in names if group and settings.group_filter.should_replicate_group(group))


COMMITS_TOPIC: Final = "__consumer_offsets"

DOUBTED = 600.0
"""Seconds for which all groups are polled after a commit that moved no end. Each such commit restarts them."""


class CommitEnds:
    """Tells which groups may have committed, from the ends of `__consumer_offsets` at the last two looks: one request
    for any number of groups.

    Every change of a group's offsets is a record in the group's partition of that topic: a commit, a deletion, an
    expiry, the end of a transaction. Reading the ends needs DESCRIBE on the topic. Without that right every group is
    polled.

    A cluster may keep commits in another way than Kafka does. That shows when a group has new offsets although the end
    of its partition has not moved since the group's last poll. Then every group is polled for some minutes.
    """

    def __init__(self, groups: GroupReader) -> None:
        self._groups = groups
        self._count = 0
        self._ends: dict[int, int] = {}
        self._before: dict[int, int] = {}
        self._moved: frozenset[int] = frozenset()
        self._partition: dict[str, int] = {}
        self._since: dict[str, int] = {}
        self._expected: dict[int, int] = {}
        self._doubted_until = float("-inf")

    def moved(self, partitions: int, now: float) -> frozenset[int] | None:
        """Returns the partitions that moved since the last look, or in the look before. None: unknown.

        Each is returned twice, because an end may be seen a moment before its coordinator shows the commit. The first
        look returns all. `partitions`: number of partitions of the topic, 0 if unknown. If the number changes, the ends
        tell nothing: each broker uses the number from its own start (`GroupCoordinatorService.startup`). `now`: in
        monotonic seconds. Raises ClusterUnreachable.
        """
        # Coordinators spread groups over the number of partitions that was seen first, as far as Lockstep can know.
        self._count = self._count or partitions
        seen = self._seen(partitions) if 0 < partitions == self._count else {}
        stayed = {number: end for number, end in self._expected.items() if seen.get(number) == end}
        self._before, self._ends, self._expected = self._ends, seen, {}
        if stayed:
            self._doubt(stayed, now)
        here = frozenset(
            number for number in range(partitions) if number not in seen or self._before.get(number) != seen[number]
        )
        moved, self._moved = here | self._moved, here if seen else frozenset()
        return moved if seen and now >= self._doubted_until else None

    def groups_in(self, moved: Collection[int], groups: Collection[str]) -> list[str]:
        """Returns the groups whose commits are in a partition that moved."""
        if len(moved) == self._count:
            return list(groups)
        return [group for group in groups if self._partition_of(group) in moved]

    def note_polled(self, asked: Collection[str], committed: Collection[str]) -> None:
        """Notes groups that were polled after the ends were seen. `asked`: all polled groups. `committed`: groups with
        new offsets.

        A group with new offsets whose partition has not moved has just committed. By the next look the end must have
        moved. A group's last poll counts from the ends before it, because a coordinator may lag behind them.
        """
        for group in asked if self._ends else ():
            number = self._partition_of(group)
            if (end := self._ends.get(number)) is None:
                continue
            if group in committed and self._since.get(group) == end:
                self._expected[number] = end
            if (before := self._before.get(number)) is not None:
                self._since[group] = before

    def forget(self, groups: Collection[str]) -> None:
        for group in groups:
            self._since.pop(group, None)
            self._partition.pop(group, None)

    def _partition_of(self, group: str) -> int:
        # There can be many groups with long names, and each is looked up again and again.
        if group not in self._partition:
            self._partition[group] = commit_partition(group, self._count)
        return self._partition[group]

    def _doubt(self, stayed: Mapping[int, int], now: float) -> None:
        if now >= self._doubted_until:
            number, end = min(stayed.items())
            log.warning(
                "a group of partition %d of %s has new offsets, but the partition still ends at %d. Lockstep polls all"
                " groups until this has not happened for %d minutes",
                *(number, COMMITS_TOPIC, end, DOUBTED // 60),
            )
        self._doubted_until = now + DOUBTED

    def _seen(self, partitions: int) -> dict[int, int]:
        try:
            found = self._groups.latest([TopicPartition(COMMITS_TOPIC, number) for number in range(partitions)])
        except RightsMissing:
            return {}
        return {where.partition: end for where, end in found.items.items()}


def commit_partition(group: str, partitions: int) -> int:
    """Returns the partition of `__consumer_offsets` (with `partitions` partitions) that has a group's commits.

    Source: Kafka's `GroupCoordinatorService.partitionFor`, which is `Utils.abs(group.hashCode()) % partitions`.
    """
    hashed = 0
    for (unit,) in struct.iter_unpack(">H", group.encode("utf-16-be", "surrogatepass")):
        hashed = (31 * hashed + unit) & 0xFFFFFFFF
    signed = hashed - (1 << 32) if hashed >> 31 else hashed
    return (0 if signed == -(1 << 31) else abs(signed)) % partitions


# Which of the groups a pass compares. Pure: times come in as arguments, in monotonic seconds.


SECONDS_IN_A_PASS, LEAST_IN_A_PASS, OTHERS_IN_A_PASS, OTHERS_WHILE_BEHIND = 4.0, 1000, 500, 50
"""Limits of the groups that a pass compares. The groups that waited longest come first; the rest wait for the next
pass.

Groups that have just committed: as many as recently took the first number of seconds, and at least the second number. A
pass has a fixed cost, above all two listings of all groups, which equals the cost of hundreds of groups. Other groups:
the third number, or the fourth while more have just committed than the pass takes. They are few, so that a commit never
waits for a long pass.
"""

JUST_COMMITTED = 0.0
"""The due time of a group that has just committed: before all others."""

SEARCH = 0.75
"""Seconds until a group is compared again while a search for its records runs. One search takes that long."""

REST, LONGEST_REST = 2.0, 60.0
"""First and longest wait, in seconds, until a group is compared again whose offset is not exact or not written."""


class GroupSchedule:
    """When each group is due."""

    def __init__(self) -> None:
        self._due: dict[str, float] = {}
        self._tries: dict[str, int] = {}
        self._most = LEAST_IN_A_PASS
        self.behind = False
        """Whether more groups had committed than the last turn compared."""

    def took(self, groups: int, seconds: float) -> None:
        """Notes the seconds that a comparison of `groups` groups took, its writes included."""
        if groups >= LEAST_IN_A_PASS or seconds > SECONDS_IN_A_PASS:
            self._most = max(LEAST_IN_A_PASS, int(groups * SECONDS_IN_A_PASS / max(seconds, 1e-3)))

    def compare_all(self, groups: Collection[str], now: float) -> None:
        """Makes all these groups due now. Groups that already wait keep their places."""
        for group in groups:
            self._due.setdefault(group, now)

    def checkpointed(self, groups: Collection[str], now: float) -> None:
        """Notes that MM2 wrote a checkpoint of these groups. A group that has just committed stays before all others,
        because MM2 writes a checkpoint for the same commit."""
        self._due |= {group: min(now, self._due.get(group, now)) for group in groups}
        self._begin_anew(groups)

    def committed(self, groups: Collection[str]) -> None:
        """Notes that these groups have just committed. Groups that committed earlier stay before them."""
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
        """Returns when the next group is due; NEVER_AT if none is."""
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
        """Schedules the next comparison of a group that was just compared."""
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
