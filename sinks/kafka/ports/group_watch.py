"""Which consumer groups committed since the last poll: the protocol, and a plain one over any reader."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from sinks.kafka.ports.groups import GroupReader, Offsets

POLLED_AT_ONCE = 2000
"""Groups in one poll at most: more of them take turns, so that a poll costs the same."""


class GroupWatch(Protocol):
    """Finds differences since its own last poll, as cheaply as it can. Not thread-safe."""

    def changed(self, groups: Collection[str]) -> set[str]:
        """Those of `groups` whose committed offsets differ from their last poll; at the first one, all.

        Where there are thousands, a poll may leave some for the next one.

        A group that could not be seen by itself counts as changed: reading it in full tells why. Raises
        ClusterUnreachable, RightsMissing.
        """

    def close(self) -> None:
        """Lets go of its client."""


class PlainGroupWatch:
    """Compares in Python. The contract's reference for `JvmGroupWatch`."""

    def __init__(self, groups: GroupReader) -> None:
        self._groups = groups
        self._last: dict[str, Offsets] = {}

    def changed(self, groups: Collection[str]) -> set[str]:
        seen = self._groups.committed(groups)
        found = {group for group, offsets in seen.items.items() if self._last.get(group) != offsets}
        self._last = dict(seen.items)
        return found | set(seen.errors)

    def close(self) -> None:
        """Whoever made the reader closes it."""
