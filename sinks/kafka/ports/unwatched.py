"""Watches for a single comparison: everything counts as changed, and nothing is asked for it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence


class UnwatchedConfigs:
    """A `Watch`."""

    def changed(self, shards: Sequence[Sequence[str]]) -> set[str]:
        return {topic for shard in shards for topic in shard}

    def forget(self, topics: Iterable[str]) -> None:
        """Nothing is remembered."""

    def close(self) -> None:
        """Nothing to let go of."""


class UnwatchedList:
    """A watch of a whole list, of ACLs say."""

    def changed(self) -> bool:
        return True

    def forget(self) -> None:
        """Nothing is remembered."""

    def close(self) -> None:
        """Nothing to let go of."""


class UnwatchedGroups:
    """A `GroupWatch`."""

    def changed(self, groups: Collection[str]) -> set[str]:
        return set(groups)

    def close(self) -> None:
        """Nothing to let go of."""
