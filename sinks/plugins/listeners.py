"""Interfaces of the listeners that learn which topics and groups are replicated (KAFKA-14903) and which states a
failover reaches.

The default listeners are here too. They do nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Protocol


class TopicListener(Protocol):
    """MM2's `TopicListener`. It may also have `configure(properties)`, which must not connect, and `close()`."""

    def topics_changed(self, upstream_to_downstream: Mapping[str, str]) -> None:
        """Gets all replicated topics: remote name by upstream name. A call that raises is repeated later."""


class GroupListener(Protocol):
    """MM2's `GroupListener`. It may also have `configure(properties)`, which must not connect, and `close()`."""

    def groups_changed(self, groups: AbstractSet[str]) -> None:
        """Gets all replicated consumer groups. A call that raises is repeated later."""


class DefaultTopicListener:
    """Kafka's `DefaultTopicListener`: does nothing."""

    def topics_changed(self, upstream_to_downstream: Mapping[str, str]) -> None:
        """Does nothing."""


class DefaultGroupListener:
    """Kafka's `DefaultGroupListener`: does nothing."""

    def groups_changed(self, groups: AbstractSet[str]) -> None:
        """Does nothing."""


def wants_nothing(listener: object) -> bool:
    """Whether the listener is one of Kafka's defaults, which do nothing. A subclass of them may do something."""
    return type(listener) in (DefaultTopicListener, DefaultGroupListener)


class FailoverListener(Protocol):
    """Lockstep's own listener for the states of a failover. It can switch clients over, because Lockstep moves no
    client and no DNS. It may also have `configure(properties)` and `close()`."""

    def state_changed(self, state: Mapping[str, Any]) -> None:
        """Called by the command once for each state, in order, after the ledger has it. An exception stops nothing.

        `state` holds `source`, `target`, `before`, `state`, `doing`, `topics`, `who`, `why`, `at`, as in `lockstep
        failover -o json`.
        """


class DefaultFailoverListener:
    """Does nothing."""

    def state_changed(self, state: Mapping[str, Any]) -> None:
        """Does nothing."""
