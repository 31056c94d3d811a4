"""How many topics may be polled now: a share of the time, measured from what polls took. Pure: times come in, seconds.

A poll costs the source's brokers about 75 µs of CPU a topic (docs/benchmarks.md), so that what a small cluster does
not feel would be the whole of a large one's time. So the budget is time, not topics: `lockstep.observe.share` of each
second comes in, and what polls take goes out: the least that a topic took lately, for what a poll waits for others is
not the broker's work. What is not spent is saved, up to `SAVED_FOR` seconds' worth, but never less than two polls of
all topics: the first change after a while without any is found at once, and a storm of changes costs no more than the
share. `lockstep.observe.rate` limits the topics besides.
"""

from __future__ import annotations

from sinks.flow_settings import Pace

SAVED_FOR = 30.0
"""Seconds whose share may be saved."""

POLLS_SAVED = 2
"""Polls of all topics that may be saved in any case."""

FIRST_GUESS = 1e-4
"""Seconds a topic, before any poll was measured."""

DEARER = 1.1
"""Times which a poll makes the least that a topic took dearer, unless it took less: so a broker that became slow is
known to be after a few polls."""

TELLING_TOPICS = 50
"""Topics in a poll that says what a topic takes; of fewer, most of the time is the request's own."""


class PollBudget:
    """Of one flow. It begins with all that may be saved."""

    def __init__(self, pace: Pace) -> None:
        self._share, self._rate = pace.observe_share, pace.observe_rate
        self._a_topic = FIRST_GUESS
        self._seconds = self._topics = float("inf")
        self._at: float | None = None

    def earn(self, now: float, topics: int, longest: float = float("inf")) -> None:
        """Takes in what came since the last time, for at most `longest` seconds; `topics`: how many there are."""
        since = 0.0 if self._at is None else min(now - self._at, longest)
        self._at = now
        whole = POLLS_SAVED * topics
        most = max(self._share * SAVED_FOR, whole * self._a_topic)
        self._seconds = min(self._seconds + since * self._share, most)
        # Rounded, so that the sum of many small incomes is what it should be when it is compared with a shard's size.
        self._topics = round(min(self._topics + since * self._rate, max(whole, self._rate)), 6)

    def affords(self, topics: int) -> bool:
        """Whether so many topics may be polled now."""
        return topics <= self.left

    @property
    def left(self) -> float:
        """Topics that may be polled now."""
        by_time = self._seconds / self._a_topic
        return min(by_time, self._topics) if self._rate else by_time

    def spend(self, topics: int, seconds: float) -> None:
        """A poll of so many topics took so long."""
        if topics >= TELLING_TOPICS:
            self._a_topic = min(seconds / topics, self._a_topic * DEARER)
        self._seconds -= topics * self._a_topic
        self._topics -= topics

    def wait_for(self, topics: int) -> float:
        """Seconds until so many topics can be afforded."""
        by_time = (topics * self._a_topic - self._seconds) / self._share
        by_rate = (topics - self._topics) / self._rate if self._rate else 0.0
        return max(0.0, by_time, by_rate)
