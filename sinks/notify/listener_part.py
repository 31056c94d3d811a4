"""Listeners as a part of the walk: told last, of what was seen in it, and never waited for."""

from __future__ import annotations

from collections.abc import Sequence

from sinks.engine.model import Outcome
from sinks.engine.plan import Plan
from sinks.flow_settings import FlowSettings
from sinks.kinds.controller import ControllerStatus, PassContext
from sinks.kinds.offsets.direction import ClusterGroups, forward
from sinks.kinds.offsets.survey import chosen_groups, replicated_offsets
from sinks.kinds.topics.survey import Listed
from sinks.notify.listeners import Announcements

REST = 10.0
"""Seconds between two listings of groups."""

CLOSES_WITHIN = 2.0
"""Seconds for the listeners' last calls: a batch waits for them when the file was changed."""


def replicated_topics(listed: Listed) -> dict[str, str]:
    """Those that are on the target: name on the source to name there, as `lockstep topics` shows them."""
    return {topic: remote for topic, remote in sorted(listed.desired.remote.items()) if remote in listed.target}


class ListenerController:
    """Plans nothing. `groups`: whether anybody wants to know of groups."""

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
        self._names: frozenset[str] = frozenset()

    def look(self, context: PassContext) -> bool:
        """Never anything to compare."""
        return False

    def compare(self, context: PassContext) -> Plan:
        """Nothing."""
        return Plan(self._settings.flow)

    def before_writing(self, plan: Plan) -> None:
        """Nothing is kept that a write could make untrue."""

    def learn(self, context: PassContext, plan: Plan, outcomes: Sequence[Outcome]) -> None:
        """What was written shows in the next walk."""

    def status(self, context: PassContext) -> ControllerStatus:
        """Tells; a source that shows no topic at all is not believed."""
        if context.listed.source:
            self._announcements.tell_topics(replicated_topics(context.listed))
            if self._groups:
                self._tell_groups(context)
        return ControllerStatus()

    def _tell_groups(self, context: PassContext) -> None:
        rested = self._listed_at is None or context.now - self._listed_at >= REST
        if not rested and not context.everything:
            return
        self._listed_at = context.now
        names = frozenset(chosen_groups(self._settings, self._source.groups.names()))
        if names != self._names or context.everything:
            direction = forward(self._settings, self._source, self._target, context.listed)
            self._announcements.tell_groups(replicated_offsets(direction, names).keys())
            self._names = names

    def close(self) -> None:
        """Lets the listeners hear the last, and go."""
        self._announcements.close(CLOSES_WITHIN)
