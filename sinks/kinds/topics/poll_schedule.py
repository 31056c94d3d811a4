"""Chooses the topics whose configs a pass polls. Pure: callers pass times, in seconds of a monotonic clock.

Polls have a budget (`PollBudget`). If the metadata log tells of changes (`sinks.kafka.metadata_beat`), nothing is
polled without a signal. A signal starts polls, shard after shard, until as many topics differ as the signal had
records. For one change that is half of all topics on average. If no log tells of changes, topics take turns.

Topics that changed lately come first in any case, with up to half of the budget. A client that changes a config often
changes it, or its neighbours, again soon.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from math import ceil

from sinks.flow_settings import Pace

LATELY = 300.0
"""Seconds for which a changed topic counts as lately changed."""

TURN = 1.0
"""Seconds between two turns without a signal, and seconds until polls look again for a signal that they did not
explain."""

SHARDS = 8
"""About how many requests a poll of all topics is split into. No more are sent once they have shown every change that
the metadata log announced."""

SMALLEST = 100
"""Least topics in a shard, unless the rate allows fewer: a request for fewer costs nearly as much."""

ROUNDS = 2
"""Rounds over all topics after which a signal without a difference is dropped. The polled broker may lag behind the
log, so the second round may find what the first one missed."""


class PollSchedule:
    """Chooses the topics of one flow that a pass polls."""

    def __init__(self, pace: Pace) -> None:
        self._pace, self._budget = pace, PollBudget(pace)
        self._shards: list[tuple[str, ...]] = []
        self._topics: frozenset[str] = frozenset()
        self._next = 0
        self._changed: dict[str, float] = {}
        self._owed = self._blind = 0
        self._unexplained = 0
        self._signal_works = True

    def begin(self, topics: Collection[str], signal_works: bool) -> None:
        """Begin a pass. `topics`: all topics. `signal_works`: whether the metadata log tells of changes."""
        # New shards only for other topics, so that a poll can reuse what it built.
        if len(topics) != len(self._topics) or not self._topics.issuperset(topics):
            self._share_out(topics)
        if signal_works and not self._signal_works:
            # What changed until now gave no signal, so each topic is owed a poll that no difference spares.
            self._blind = len(self._shards)
            self._owed = max(self._owed, self._blind)
        self._signal_works = signal_works

    def _share_out(self, topics: Collection[str]) -> None:
        upcoming = self._shards[self._next][0] if self._shards else ""
        self._topics = frozenset(topics)
        size, ordered = self._shard_size(), sorted(topics)
        self._shards = [tuple(ordered[start : start + size]) for start in range(0, len(ordered), size)]
        # The turn stays where it was: where topics come and go, starting over would never reach the last ones.
        self._next = max(0, bisect_right([shard[0] for shard in self._shards], upcoming) - 1)
        self._changed = {topic: at for topic, at in self._changed.items() if topic in self._topics}
        # The turn may have gone back within its shard: one more then, so that the last ones are not left out.
        self._blind = min(self._blind + 1, len(self._shards)) if self._blind else 0
        self._owed = max(self._owed, self._blind) if self._shards else 0
        self._unexplained = self._unexplained if self._owed else 0

    def _shard_size(self) -> int:
        size = max(SMALLEST, ceil(len(self._topics) / SHARDS))
        if rate := self._pace.observe_rate:
            size = min(size, max(1, round(rate * TURN / SHARDS)))
        return min(size, self._pace.shard_topics)

    def all_shards(self) -> list[tuple[str, ...]]:
        """Returns every topic in shards, for a comparison of everything."""
        return list(self._shards)

    def turn(self, now: float, *, signalled: int = 0) -> Iterator[list[Sequence[str]]]:
        """Yield the shards to poll now, in groups. The caller calls `note_polled` for each group before it asks for the
        next one.

        `signalled`: number of changes in the metadata log since the last turn.
        """
        # Without a log that tells of changes, what a long pause saved up is not spent at once.
        self._budget.earn(now, len(self._topics), float("inf") if self._signal_works else 2 * TURN)
        if signalled:
            self.owe(signalled)
        if not self._signal_works:
            group = self._lately(now)
            left = self._budget.left - sum(map(len, group))
            # The next whole shards that the budget allows, each once.
            for _ in range(len(self._shards)):
                if len(self._shards[self._next]) > left:
                    break
                group.append(self._next_shard())
                left -= len(group[-1])
            yield group
        elif self._owed:
            yield from self._until_explained(now)

    def owe(self, signalled: int) -> None:
        """Note that polls must look for `signalled` changes, in this turn or in the next ones."""
        self._unexplained += signalled
        self._owed = ROUNDS * len(self._shards)

    def polled_all(self, unexplained: int) -> None:
        """Note that every topic was polled. `unexplained`: number of signalled changes without a difference. The polled
        broker may lag behind the log, so polls look for them once more."""
        self._blind = 0
        self._owed = self._owed if self._unexplained else 0
        if unexplained:
            self.owe(unexplained)

    def due(self, now: float, *, polls: bool = True, relists: bool = False) -> float:
        """Returns when the next turn is due without any signal. `polls`: False if nothing could be polled in it.

        `relists`: a signal came, and the broker that listed the topics may lag. No poll would find that out.
        """
        latest = now + TURN if relists else float("inf")
        if self._signal_works and not (polls and self._owed):
            return latest
        if not self._shards:
            return now + TURN
        wait = self._budget.wait_for(len(self._shards[self._next]))
        # A round that found nothing gives the brokers a moment before the next one.
        return min(latest, now + (wait if self._owed % len(self._shards) else max(wait, TURN)))

    def _until_explained(self, now: float) -> Iterator[list[Sequence[str]]]:
        """Yield one shard at a time, each once. The shard that explains the signal saves polls of the others."""
        if lately := self._lately(now):
            yield lately
        for _ in range(len(self._shards)):
            if not self._owed or not self._budget.affords(len(self._shards[self._next])):
                return
            yield [self._next_shard()]
            if self._owed and self._owed % len(self._shards) == 0:
                return

    def note_polled(
        self, group: Iterable[Sequence[str]], seconds: float, differing: Collection[str], now: float
    ) -> None:
        """Note the cost of a poll of a group, and which of its topics differ. Each of them explains one signalled
        record."""
        self._budget.spend(sum(map(len, group)), seconds)
        self._changed.update(dict.fromkeys(differing, now))
        self._unexplained = max(0, self._unexplained - len(differing))
        if not self._unexplained:
            self._owed = self._blind
        elif differing and self._shards:
            # The broker that is asked is not behind: one round tells of what is left, if it is of a topic at all.
            whole = len(self._shards)
            self._owed = max(self._blind, whole if self._owed == ROUNDS * whole else self._owed % whole)
            self._unexplained = self._unexplained if self._owed else 0

    def _next_shard(self) -> Sequence[str]:
        shard = self._shards[self._next]
        self._next = (self._next + 1) % len(self._shards)
        self._owed, self._blind = max(0, self._owed - 1), max(0, self._blind - 1)
        if not self._owed:
            self._unexplained = 0
        return shard

    def _lately(self, now: float) -> list[Sequence[str]]:
        """Returns one shard of topics that changed lately, the newest first, up to half of the budget that is left."""
        self._changed = {topic: at for topic, at in self._changed.items() if now - at < LATELY}
        newest = sorted(self._changed.items(), key=lambda row: (-row[1], row[0]))
        most = min(len(newest), max(0, int(self._budget.left / 2)))
        lately = sorted(topic for topic, _ in newest[:most])
        return [lately] if lately else []


# How many topics may be polled now: a share of the time, measured from what polls took. Pure: times come in, seconds.
#
# A poll costs the source's brokers about 75 µs of CPU a topic (bench/figures/benchmarks.md). What a small cluster does
# not feel would be all of a large one's time. So the budget is time, not topics. Each second adds
# `lockstep.observe.share`. A poll takes the least time that a topic needed lately, because waiting for others is not
# the broker's work. Unspent time is saved: up to `SAVED_FOR` seconds' worth, and at least two polls of all topics. So
# the first change after a pause is found at once, and a storm of changes costs no more than the share.
# `lockstep.observe.rate` also limits the number of topics.


SAVED_FOR = 30.0
"""Seconds of unused budget that may be saved."""

POLLS_SAVED = 2
"""Polls of all topics that the budget may always save."""

FIRST_GUESS = 1e-4
"""Assumed seconds per topic before the first poll was measured."""

DEARER = 1.1
"""Factor by which each poll raises the least measured time per topic, unless the poll was faster. So the schedule
notices a slow broker after a few polls."""

TELLING_TOPICS = 50
"""Least topics in a poll that measures the time per topic. With fewer, the request itself takes most of the time."""


class PollBudget:
    """Poll budget of one flow. It starts full."""

    def __init__(self, pace: Pace) -> None:
        self._share, self._rate = pace.observe_share, pace.observe_rate
        self._a_topic = FIRST_GUESS
        self._seconds = self._topics = float("inf")
        self._at: float | None = None

    def earn(self, now: float, topics: int, longest: float = float("inf")) -> None:
        """Add the budget earned since the last call, for at most `longest` seconds. `topics`: number of topics."""
        since = 0.0 if self._at is None else min(now - self._at, longest)
        self._at = now
        whole = POLLS_SAVED * topics
        most = max(self._share * SAVED_FOR, whole * self._a_topic)
        self._seconds = min(self._seconds + since * self._share, most)
        # Rounded, so that the sum of many small incomes is what it should be when it is compared with a shard's size.
        self._topics = round(min(self._topics + since * self._rate, max(whole, self._rate)), 6)

    def affords(self, topics: int) -> bool:
        return topics <= self.left

    @property
    def left(self) -> float:
        """Returns the number of topics that may be polled now."""
        by_time = self._seconds / self._a_topic
        return min(by_time, self._topics) if self._rate else by_time

    def spend(self, topics: int, seconds: float) -> None:
        if topics >= TELLING_TOPICS:
            self._a_topic = min(seconds / topics, self._a_topic * DEARER)
        self._seconds -= topics * self._a_topic
        self._topics -= topics

    def wait_for(self, topics: int) -> float:
        """Returns the seconds until the budget allows a poll of `topics` topics."""
        by_time = (topics * self._a_topic - self._seconds) / self._share
        by_rate = (topics - self._topics) / self._rate if self._rate else 0.0
        return max(0.0, by_time, by_rate)
