"""Watches that find what differs since the last poll: in configs, in groups, in all metadata.

An `Unwatched…` class is for a caller that polls only once: it reports all as changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol


class Watch(Protocol):
    """Finds topics whose configs differ from its last poll, as cheaply as it can. Not thread-safe."""

    def changed(self, shards: Sequence[Sequence[str]]) -> set[str]:
        """Returns topics whose configs differ from their last poll; at the first poll, all of them. A topic that could
        not be read counts as changed, because reading it in full tells why."""

    def forget(self, topics: Iterable[str]) -> None:
        """Make the next poll report these as changed."""


class GroupWatch(Protocol):
    """Finds groups whose committed offsets differ from its last poll, as cheaply as it can. Not thread-safe.
    `troubled`: groups that the last poll could not read."""

    troubled: Collection[str]

    def changed(self, groups: Collection[str], asked: Collection[str] | None = None) -> set[str]:
        """Returns the groups in `asked` whose committed offsets differ from their last poll; at the first poll, all.

        `groups`: all groups that are followed; others are forgotten. `asked`: some of them; None: all. A group that
        could not be read counts as changed, because reading it in full tells why. Raises ClusterUnreachable,
        RightsMissing.
        """


class MetadataSignal(Protocol):
    """Tells whether a cluster's metadata changed, without polling it. It may miss a change."""

    @property
    def works(self) -> bool:
        """Whether the metadata log is watched now, so that no signal means no change."""

    @property
    def highest_epoch(self) -> int:
        """The highest metadata epoch that a broker told; -1 if none did."""

    def take_signalled(self) -> int:
        """Returns how many changes were signalled since the last call."""

    def close(self) -> None: ...


MetadataEpochs = Callable[[], Sequence[int]]
"""Returns how far the brokers that now answer a cluster's clients follow its metadata log; none without KRaft. Raises
LockstepError."""


def no_epochs() -> Sequence[int]:
    """Returns none: for clusters whose brokers tell of no epoch."""
    return ()


class NoSignal:
    """For clusters whose metadata log cannot be watched. It never signals."""

    works = False
    highest_epoch = -1

    def take_signalled(self) -> int:
        return 0

    def close(self) -> None:
        """Nothing is open."""


class UnwatchedConfigs:
    """A `Watch` that reports every topic."""

    def changed(self, shards: Sequence[Sequence[str]]) -> set[str]:
        return {topic for shard in shards for topic in shard}

    def forget(self, topics: Iterable[str]) -> None:
        """Nothing is remembered."""


class UnwatchedList:
    """A watch of a whole list, such as all ACLs, that always reports a change."""

    def changed(self) -> bool:
        return True

    def forget(self) -> None:
        """Nothing is remembered."""


class UnwatchedGroups:
    """A `GroupWatch` that reports every group."""

    def __init__(self) -> None:
        self.troubled: Collection[str] = ()

    def changed(self, groups: Collection[str], asked: Collection[str] | None = None) -> set[str]:
        self.troubled = frozenset(groups if asked is None else asked)
        return set(self.troubled)
