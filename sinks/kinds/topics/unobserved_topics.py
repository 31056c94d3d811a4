"""Topics that could not be compared, and when that is tried again. Pure: times are monotonic seconds.

A right that is granted on the target is no change of the source, so that no signal comes of it; and what changed on the
source meanwhile was signalled before.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import islice

from sinks.engine.plan import Unobserved
from sinks.engine.retry_schedule import RetrySchedule
from sinks.kinds.topics.survey import TOPICS_IN_A_REQUEST


class UnobservedTopics:
    """Of one flow, by their names on the source. They are tried again after 1, 2, 4 ... 30 s, a request's worth at a
    time."""

    def __init__(self) -> None:
        self._why: dict[str, Unobserved] = {}
        self._retries = RetrySchedule()

    def names(self) -> Collection[str]:
        """All of them."""
        return self._why.keys()

    def reasons(self, topics: Collection[str]) -> tuple[Unobserved, ...]:
        """Why those of `topics` could not be compared."""
        return tuple(why for topic, why in self._why.items() if topic in topics)

    def turn(self, topics: Collection[str], now: float) -> set[str]:
        """Those of `topics` that are to be compared again now, if it is time; others are forgotten."""
        if not self._why or not self._retries.is_due(now):
            return set()
        self._why = {topic: why for topic, why in self._why.items() if topic in topics}
        self._retries.failed(now)
        return set(islice(self._why, TOPICS_IN_A_REQUEST))

    def settle(self, covered: Collection[str], found: Mapping[str, Unobserved], now: float) -> None:
        """`covered` were compared, but for those that were `found` to be unobserved: new ones are tried again soon."""
        is_new = not found.keys() <= self._why.keys()
        # Those of this turn go to the end, so that all have theirs.
        self._why = {topic: why for topic, why in self._why.items() if topic not in covered} | dict(found)
        if is_new:
            self._retries.succeeded()
            self._retries.failed(now)

    def next_at(self) -> float:
        """When the next are to be compared again; infinite without any."""
        return self._retries.not_before if self._why else float("inf")
