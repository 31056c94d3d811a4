"""Tells the listeners of a flow what is replicated now, so that no listener can hurt a batch.

A listener gets the whole current set at the start and after each change of it, under every replication policy. It is
called in a thread of its own. One that raises, hangs or is slow is counted and logged, and costs a batch nothing.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import TypeVar

from sinks.notify.latest import Patience
from sinks.notify.notifier import CallResult, Notifier
from sinks.plugins.listeners import GroupListener, TopicListener, wants_nothing
from streaming.flow import Flow

T = TypeVar("T")

log = logging.getLogger(__name__)

TOPIC, GROUP = "topic", "group"
"""What the two listeners of a flow are called in metrics and logs, after `topic.listener.class` and its sister."""

CountCall = Callable[[Flow, str, str], None]
"""Called with (flow, `topic` or `group`, the value of a `CallResult`) for every call of a listener, from any thread."""


def count_no_call(flow: Flow, listener: str, result: str) -> None:
    """A `CountCall` for those who do not count."""


class Announcements:
    """Announces to the listeners of one flow what is replicated now.

    Only what was really seen may be announced: after an observation that failed, nothing, not the empty set.
    """

    def __init__(
        self,
        flow: Flow,
        topics: TopicListener,
        groups: GroupListener,
        count: CountCall = count_no_call,
        patience: Patience | None = None,
        secrets: Sequence[str] = (),
    ) -> None:
        """Listeners come configured. `secrets`: texts that no log may show, should a listener's error hold one."""
        self._patience = patience or Patience()

        def notifier(kind: str, listener: object, call: Callable[[T], None]) -> Notifier[T]:
            cls = type(listener)
            name = f"{flow.name}: the {kind} listener {cls.__module__}:{cls.__qualname__}"
            return Notifier(name, call, _closing(listener), partial(_count, count, flow, kind), self._patience, secrets)

        self._topics: Notifier[dict[str, str]] | None = None
        if not wants_nothing(topics):
            # A copy for each call: what a listener does to its argument is its own affair.
            self._topics = notifier(TOPIC, topics, lambda current: topics.topics_changed(dict(current)))
        self._groups: Notifier[frozenset[str]] | None = None
        if not wants_nothing(groups):
            self._groups = notifier(GROUP, groups, groups.groups_changed)

    def announce_topics(self, upstream_to_downstream: Mapping[str, str]) -> None:
        """All topics that are replicated now; whether anything differs is found out here. Returns at once."""
        if self._topics is not None:
            self._topics.deliver(dict(upstream_to_downstream))

    def announce_groups(self, groups: AbstractSet[str]) -> None:
        """All groups that are replicated now; whether anything differs is found out here. Returns at once."""
        if self._groups is not None:
            self._groups.deliver(frozenset(groups))

    def close(self, within: float | None = None) -> bool:
        """Delivers what waits, closes both listeners; whether both were, after at most so many seconds.

        None: as long as one call may take. 0 returns at once: what waits is dropped, and a call that runs goes on
        by itself. A listener that hangs is left behind, and closed if it comes back.
        """
        seconds = self._patience.limit if within is None else within
        deadline = time.monotonic() + seconds
        notifiers = [notifier for notifier in (self._topics, self._groups) if notifier is not None]
        for notifier in notifiers:
            notifier.end(drop=seconds <= 0)
        left = [notifier.name for notifier in notifiers if not notifier.join(max(0.0, deadline - time.monotonic()))]
        if seconds > 0:
            for name in left:
                log.warning("%s did not end within %g s and is left behind", name, seconds)
        return not left


def _closing(listener: object) -> Callable[[], object]:
    close = getattr(listener, "close", None)
    return close if callable(close) else lambda: None


def _count(count: CountCall, flow: Flow, kind: str, result: CallResult) -> None:
    count(flow, kind, result.value)
