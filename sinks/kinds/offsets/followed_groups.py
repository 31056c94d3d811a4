"""The groups that a flow follows where they come from, and which of them committed: polled, or from the stream.

Polled are those alone that may have committed, as far as the ends of the commits' topic tell (`commit_ends`).

While a stream of commits lives nothing is asked of the cluster between two full comparisons. It is begun before all
offsets are read once, so that what is committed meanwhile comes, too; and they are read again at each full comparison,
so that nothing that a stream can lose (a log that was truncated, a type of record that is new) stays lost.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from sinks.faults import Observed
from sinks.flow_settings import FlowSettings, OffsetsSource
from sinks.kafka.ports.group_reader_around import GroupReaderAround
from sinks.kafka.ports.groups import GroupReader, Offsets
from sinks.kafka.ports.watches import GroupWatch
from sinks.kinds.controller import CommitsFrom
from sinks.kinds.offsets.chosen_groups import is_followed
from sinks.kinds.offsets.commit_ends import CommitEnds
from sinks.kinds.offsets.commit_feed import CommitFeed, NewCommits
from sinks.kinds.offsets.group_polls import POLLED_AT_ONCE, POLLED_IN_TURN, GroupPolls, PollPace
from sinks.kinds.offsets.poll_queue import PollQueue
from streaming.mm2.records import TopicPartition


class GroupChanges(NamedTuple):
    """Groups that committed, and groups that are gone or no longer chosen."""

    committed: Collection[str] = ()
    gone: Collection[str] = ()


class FollowedGroups(GroupReaderAround):
    """A `GroupReader` of one cluster that answers from the stream what the stream knows. Not thread-safe."""

    def __init__(
        self,
        settings: FlowSettings,
        groups: GroupReader,
        watch: GroupWatch,
        feed: CommitFeed,
        clock: Callable[[], float],
        requested: Collection[str] | None = None,
    ) -> None:
        """`requested`: follow these alone; None all that the filter lets through."""
        super().__init__(groups)
        self._settings, self._watch, self._feed = settings, watch, feed
        self._clock, self._asked = clock, requested
        self._polls, self._listings, self._queue = GroupPolls(), PollPace(), PollQueue()
        self._ends, self._may_be_new = CommitEnds(groups), True
        self._session: int | None = None
        self._known: dict[str, dict[TopicPartition, int]] = {}
        self.chosen: frozenset[str] = frozenset()

    def poll(self, now: float, everything: bool, partitions: int = 0) -> GroupChanges:
        """Which groups moved since the last time, as cheaply as can be known now.

        `partitions`: how many the commits' topic has there, 0 where that is not known.
        Raises ClusterUnreachable, RightsMissing, CoordinatorUnavailable.
        """
        new = self._feed.take()
        live = new.session is not None
        if not everything and live and new.session == self._session:
            return GroupChanges(self._take(new))
        if live and (everything or new.session != self._session):
            return self._read(now, new)
        if everything or self._session is not None or self._polls.is_due(now):
            return self._poll(now, everything or self._session is not None, partitions)
        return GroupChanges()

    def let_go(self) -> None:
        """Nobody asks for groups now: no stream need run for them."""
        self._feed.want(OffsetsSource.POLL, 0)

    @property
    def due(self) -> float:
        """When `poll` has something to do without any other reason, in monotonic seconds."""
        return self._polls.due if self._session is None else float("inf")

    @property
    def commits(self) -> CommitsFrom:
        """Where commits come from now."""
        if self._session is not None:
            return CommitsFrom(OffsetsSource.STREAM.value)
        return CommitsFrom(OffsetsSource.POLL.value, self._feed.reason)

    def _read(self, now: float, new: NewCommits) -> GroupChanges:
        # Whatever is raised from here on, what was heard is lost, so that all has to be read once more.
        self._session = None
        gone = self._list(now)
        # What was heard counts only once everything was read after it.
        committed = self._read_all(self.chosen)
        self._session = new.session
        return GroupChanges(committed, gone)

    def _poll(self, now: float, everything: bool, partitions: int) -> GroupChanges:
        start, gone = self._clock(), frozenset[str]()
        # What waits in the queue is asked for whatever is raised after that; groups that are new wait by themselves.
        if everything:
            self._queue.add(sorted(self.chosen))
        self._session = None
        moved = self._ends.moved(partitions, now)
        self._queue.add(sorted(self.chosen if moved is None else self._ends.groups_in(moved, self.chosen)))
        self._may_be_new |= moved is None or bool(moved)
        if everything or (self._may_be_new and self._listings.is_due(now)):
            gone = self._list(now)
        asked = self._queue.turn(POLLED_IN_TURN if moved is None else POLLED_AT_ONCE)
        committed = self._watch.changed(self.chosen, asked) if asked else set()
        self._queue.polled(asked)
        self._ends.polled(set(asked).difference(self._watch.troubled), committed)
        self._polls.polled(now, self._clock() - start, len(asked), len(committed))
        return GroupChanges(committed, gone)

    def _list(self, now: float) -> frozenset[str]:
        """Finds out which groups there are; those that are gone, or no longer chosen."""
        start, groups = self._clock(), frozenset(self._wanted())
        gone, self.chosen = self.chosen - groups, groups
        for group in gone:
            self._known.pop(group, None)
        self._ends.forget(gone)
        self._queue.follow(groups)
        self._feed.want(self._settings.group_offsets_source, len(groups))
        self._listings.took(now, self._clock() - start)
        self._may_be_new = False
        return gone

    def _wanted(self) -> list[str]:
        chosen = sorted(group for group in self._groups.names() if self._is_followed(group))
        return chosen if self._asked is None else [group for group in chosen if group in self._asked]

    def _is_followed(self, group: str) -> bool:
        return is_followed(self._settings, group)

    def _read_all(self, groups: Collection[str]) -> set[str]:
        seen = self._groups.committed(groups)
        before, self._known = self._known, {group: dict(offsets) for group, offsets in seen.items.items()}
        return {group for group in groups if before.get(group) != self._known.get(group, {})}

    def _take(self, new: NewCommits) -> set[str]:
        moved = set(new.unread)
        for group in new.unread:
            self._known.pop(group, None)
        for group, offsets in new.commits.items():
            if group in new.unread or not self._knows(group) or self._apply(group, offsets):
                moved.add(group)
        moved = {group for group in moved if self._is_followed(group)}
        self.chosen |= moved
        return moved

    def _knows(self, group: str) -> bool:
        """Whether all that it committed is known. One that was not there at the last reading has begun since."""
        return group in self._known or group not in self.chosen

    def _apply(self, group: str, offsets: Mapping[TopicPartition, int | None]) -> bool:
        """Whether anything is other than before: consumers commit the same offsets again and again."""
        known = self._known.setdefault(group, {})
        before = dict(known)
        for where, offset in offsets.items():
            if offset is None:
                known.pop(where, None)
            else:
                known[where] = offset
        return known != before

    def committed(self, groups: Collection[str]) -> Observed[str, Offsets]:
        """As `GroupReader` has it; of the cluster only what the stream does not know is asked."""
        if self._session is None:
            return self._groups.committed(groups)
        known: dict[str, Offsets] = {group: self._known[group] for group in groups if group in self._known}
        return self._with_others(known, groups)

    def close(self) -> None:
        """Lets go of the watch; the groups are the cluster's."""
        self._watch.close()
