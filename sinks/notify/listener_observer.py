"""Listeners as an observer of passes: they learn last, of what was seen, and nothing waits for them."""

from __future__ import annotations

from itertools import islice

from sinks.engine.report import Report
from sinks.flow_settings import FlowSettings
from sinks.kinds.offsets.direction import ClusterGroups, forward
from sinks.kinds.offsets.polled_groups import chosen_groups
from sinks.kinds.offsets.survey import replicated_offsets
from sinks.notify.announcements import Announcements
from sinks.protocol.listing import Listed, replicated_topics

GROUP_LIST_INTERVAL = 10.0
"""Seconds between two listings of groups."""

IDLE_IN_A_LISTING = 500
"""Groups without an offset on replicated topics whose offsets are read again with each listing."""

REPLACED_WITHIN = 2.0
"""Seconds that a flow waits for its old listeners' last calls when the file was changed."""


class ListenerObserver:
    """`groups`: whether anybody wants to know of groups."""

    def __init__(
        self,
        settings: FlowSettings,
        source: ClusterGroups,
        target: ClusterGroups,
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
        """Tells; a source that shows no topic at all is not believed. Raises ClusterUnreachable, RightsMissing."""
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
        names = frozenset(chosen_groups(self._settings, self._source.groups.names()))
        asked = names if report.everything else self._to_ask(names)
        seen = replicated_offsets(forward(self._settings, self._source, self._target, listed), asked)
        # One that could not be read is not gone.
        kept = self._announced & (names - asked | seen.errors.keys())
        self._announced = kept | frozenset(seen.items)
        self._announcements.announce_groups(self._announced)
        known = {name: None for name in self._idle if name in names and name not in asked}
        self._idle = known | dict.fromkeys(sorted(asked - self._announced))

    def _to_ask(self, names: frozenset[str]) -> frozenset[str]:
        """Groups that are new, and some of the idle ones in turns: a group is listed before it commits at first."""
        new = names - self._announced - self._idle.keys()
        return new | frozenset(islice((name for name in self._idle if name in names), IDLE_IN_A_LISTING))

    def due_at(self, now: float) -> float:
        """The next listing of groups."""
        if not self._groups:
            return float("inf")
        wanted = now if self._listed_at is None else self._listed_at + GROUP_LIST_INTERVAL
        # What is due now is listed at the end of this pass.
        return wanted if wanted > now else now + GROUP_LIST_INTERVAL

    def close(self, *, replaced: bool) -> None:
        """Lets the listeners hear the last, and go. At the end of the job they have as long as one call may take;
        where they are replaced, the flow goes on before, and they end by themselves."""
        self._announcements.close(REPLACED_WITHIN if replaced else None)
