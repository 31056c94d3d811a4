"""Tells the listeners of a flow which topics and groups it replicates now, without harm to a micro-batch.

A listener gets the whole current set at the start and after each change of it, under every replication policy. Lockstep
calls it in a thread of its own. If it raises, hangs or is slow, Lockstep counts and logs that, and no batch waits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import TypeVar

from sinks.engine.report import Report
from sinks.every_kind.listing import Listed, replicated_topics
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.groups import GroupReader
from sinks.kinds.offsets.direction import Direction
from sinks.kinds.offsets.polled_groups import chosen_groups
from sinks.kinds.offsets.survey import replicated_offsets
from sinks.model.times import NEVER_AT
from sinks.notify.notifier import Notifier, Patience, end_together
from sinks.plugins.listeners import GroupListener, TopicListener, wants_nothing
from streaming.flow import Flow

T = TypeVar("T")

TOPIC, GROUP = "topic", "group"
"""Names of a flow's two listeners in metrics and logs: of `topic.listener.class` and `group.listener.class`."""

CountCall = Callable[[Flow, str, str], None]
"""Called with (flow, `topic` or `group`, the value of a `CallResult`) for every call of a listener, from any thread."""


class Announcements:
    """Announces to the listeners of one flow what is replicated now. After a failed observation nothing is announced,
    not even an empty set."""

    def __init__(
        self,
        flow: Flow,
        topics: TopicListener,
        groups: GroupListener,
        count: CountCall = lambda *call: None,
        patience: Patience | None = None,
        secrets: Sequence[str] = (),
    ) -> None:
        """`topics`, `groups`: listeners that are configured already. `secrets`: texts that no log may show, because a
        listener's error may hold them."""
        self._patience = patience or Patience()

        def notifier(kind: str, listener: object, call: Callable[[T], None]) -> Notifier[T]:
            cls, close = type(listener), getattr(listener, "close", None)
            return Notifier(
                f"{flow.name}: the {kind} listener {cls.__module__}:{cls.__qualname__}",
                call,
                close if callable(close) else lambda: None,
                lambda result: count(flow, kind, result.value),
                self._patience,
                secrets,
            )

        self._topics: Notifier[dict[str, str]] | None = None
        if not wants_nothing(topics):
            # A copy for each call: what a listener does to its argument is its own affair.
            self._topics = notifier(TOPIC, topics, lambda current: topics.topics_changed(dict(current)))
        self._groups: Notifier[frozenset[str]] | None = None
        if not wants_nothing(groups):
            self._groups = notifier(GROUP, groups, groups.groups_changed)

    def announce_topics(self, upstream_to_downstream: Mapping[str, str]) -> None:
        """Announce all topics that are replicated now, if they changed. Returns at once."""
        if self._topics is not None:
            self._topics.deliver(dict(upstream_to_downstream))

    def announce_groups(self, groups: AbstractSet[str]) -> None:
        """Announce all groups that are replicated now, if they changed. Returns at once."""
        if self._groups is not None:
            self._groups.deliver(frozenset(groups))

    def close(self, within: float | None = None) -> bool:
        """Deliver the newest sets and close both listeners. `within`: seconds to wait, by default the time limit of one
        call. Returns whether both are closed."""
        seconds = self._patience.limit if within is None else within
        return not end_together(filter(None, (self._topics, self._groups)), seconds)


GROUP_LIST_INTERVAL = 10.0
"""Seconds between two listings of groups."""

IDLE_IN_A_LISTING = 500
"""Most idle groups (without an offset on a replicated topic) whose offsets are read again with each listing."""

REPLACED_WITHIN = 2.0
"""Seconds for the last calls of a flow's old listeners after a change of the properties file."""


class ListenerObserver:
    """Announces after each pass. `groups`: whether a listener wants groups."""

    def __init__(
        self,
        settings: FlowSettings,
        source: GroupReader,
        target: GroupReader,
        announcements: Announcements,
        *,
        groups: bool,
    ) -> None:
        self._settings, self._source, self._target = settings, source, target
        self._announcements, self._groups = announcements, groups
        self._listed_at: float | None = None
        self._announced: frozenset[str] = frozenset()
        # Groups without an offset on replicated topics, those that were asked longest ago first.
        self._idle: dict[str, None] = {}

    def passed(self, report: Report) -> None:
        """Announce what the pass found. A source that shows no topic at all is not believed. Raises ClusterUnreachable,
        RightsMissing."""
        if report.listed is None or not report.listed.source:
            return
        self._announcements.announce_topics(replicated_topics(report.listed))
        if self._groups:
            self._announce_groups(report, report.listed)

    def _announce_groups(self, report: Report, listed: Listed) -> None:
        rested = self._listed_at is None or report.now - self._listed_at >= GROUP_LIST_INTERVAL
        if not rested and not report.everything:
            return
        self._listed_at = report.now
        names = frozenset(chosen_groups(self._settings, self._source.names()))
        asked = names if report.everything else self._to_ask(names)
        seen = replicated_offsets(Direction(self._settings, self._source, self._target, listed), asked)
        # One that could not be read is not gone.
        kept = self._announced & (names - asked | seen.errors.keys())
        self._announced = kept | frozenset(seen.items)
        self._announcements.announce_groups(self._announced)
        known = {name: None for name in self._idle if name in names and name not in asked}
        self._idle = known | dict.fromkeys(sorted(asked - self._announced))

    def _to_ask(self, names: frozenset[str]) -> frozenset[str]:
        """Returns the groups whose offsets to read: new ones, and some idle ones in turns, because a group is listed
        before its first commit."""
        new = names - self._announced - self._idle.keys()
        return new | frozenset(islice((name for name in self._idle if name in names), IDLE_IN_A_LISTING))

    def due_at(self, now: float) -> float:
        """Returns when groups are listed next, in monotonic seconds."""
        if not self._groups:
            return NEVER_AT
        wanted = now if self._listed_at is None else self._listed_at + GROUP_LIST_INTERVAL
        # What is due now is listed at the end of this pass.
        return wanted if wanted > now else now + GROUP_LIST_INTERVAL

    def close(self, *, replaced: bool) -> None:
        """Deliver the last set to the listeners, and end them. At the end of the job they have as long as one call may
        take. If the listeners are `replaced`, the flow goes on, and they end in the background."""
        self._announcements.close(REPLACED_WITHIN if replaced else None)
