"""Listeners as a part of the walk: told last, of what was seen in it, and never waited for."""

from __future__ import annotations

from collections.abc import Sequence

from sinks.crossing import End, forward
from sinks.listeners import Announcements
from sinks.model import Outcome
from sinks.offsets import chosen_groups, replicated_offsets
from sinks.parts.base import Moment, Standing
from sinks.plan import Plan
from sinks.settings import FlowSettings
from sinks.survey import Listed

REST = 10.0
"""Seconds between two listings of groups."""

CLOSES_WITHIN = 2.0
"""Seconds for the listeners' last calls: a batch waits for them when the file was changed."""


def replicated_topics(listed: Listed) -> dict[str, str]:
    """Those that are on the target: name on the source to name there, as `lockstep topics` shows them."""
    return {topic: remote for topic, remote in sorted(listed.desired.remote.items()) if remote in listed.target}


class ListenerPart:
    """Plans nothing. `groups`: whether anybody wants to know of groups."""

    def __init__(
        self, settings: FlowSettings, source: End, target: End, announcements: Announcements, *, groups: bool
    ) -> None:
        self._settings, self._source, self._target = settings, source, target
        self._announcements, self._groups = announcements, groups
        self._listed_at: float | None = None
        self._names: frozenset[str] = frozenset()

    def look(self, moment: Moment) -> bool:
        """Never anything to compare."""
        return False

    def compare(self, moment: Moment) -> Plan:
        """Nothing."""
        return Plan(self._settings.flow)

    def before_writing(self, plan: Plan) -> None:
        """Nothing is kept that a write could make untrue."""

    def learn(self, moment: Moment, plan: Plan, outcomes: Sequence[Outcome]) -> None:
        """What was written shows in the next walk."""

    def standing(self, moment: Moment) -> Standing:
        """Tells; a source that shows no topic at all is not believed."""
        if moment.listed.source:
            self._announcements.tell_topics(replicated_topics(moment.listed))
            if self._groups:
                self._tell_groups(moment)
        return Standing()

    def _tell_groups(self, moment: Moment) -> None:
        rested = self._listed_at is None or moment.now - self._listed_at >= REST
        if not rested and not moment.everything:
            return
        self._listed_at = moment.now
        names = frozenset(chosen_groups(self._settings, self._source.groups.names()))
        if names != self._names or moment.everything:
            crossing = forward(self._settings, self._source, self._target, moment.listed)
            self._announcements.tell_groups(replicated_offsets(crossing, names).keys())
            self._names = names

    def close(self) -> None:
        """Lets the listeners hear the last, and go."""
        self._announcements.close(CLOSES_WITHIN)
