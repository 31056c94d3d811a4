"""Who learns which topics and groups are replicated (KAFKA-14903): the interfaces, and Kafka's own that do nothing."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Protocol, TypeVar

T = TypeVar("T")

log = logging.getLogger(__name__)


class TopicListener(Protocol):
    """MM2's `TopicListener`. It may also have `configure(properties)`, which must not connect, and `close()`."""

    def topics_changed(self, upstream_to_downstream: Mapping[str, str]) -> None:
        """All replicated topics: name on the source to name on the target. A call that raises is repeated later."""


class GroupListener(Protocol):
    """MM2's `GroupListener`. It may also have `configure(properties)`, which must not connect, and `close()`."""

    def groups_changed(self, groups: AbstractSet[str]) -> None:
        """All replicated consumer groups. A call that raises is repeated later."""


class DefaultTopicListener:
    """Kafka's `DefaultTopicListener`: does nothing."""

    def topics_changed(self, upstream_to_downstream: Mapping[str, str]) -> None:
        """Nobody wants to know."""


class DefaultGroupListener:
    """Kafka's `DefaultGroupListener`: does nothing."""

    def groups_changed(self, groups: AbstractSet[str]) -> None:
        """Nobody wants to know."""


def wants_nothing(listener: object) -> bool:
    """Whether it is one of Kafka's own that do nothing; what inherits from them may do something."""
    return type(listener) in (DefaultTopicListener, DefaultGroupListener)
