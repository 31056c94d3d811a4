"""Which topics to look at in this trigger. Pure: time comes in as an argument, in seconds of a monotonic clock.

A look costs the source's brokers about 85 µs of CPU a topic, so it has a budget, `lockstep.observe.rate` topics a
second. Topics that changed lately are looked at first, at every trigger, with up to half of the budget; the others
take turns, in shards, with what is left. Who changes a config often changes it, or its neighbours, again soon.

Where the metadata log can be listened to (`sinks.kafka.metadata_beat`) the budget is spent when it is of use: while the
log is quiet only a quarter of it, and the rest is saved; at a signal, what was saved, shard by shard, until as many
topics were found to differ as there are records of it. For one change that is half of all topics on average.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from math import ceil

from sinks.flow_settings import Pace

LATELY = 300.0
"""A topic that changed within so many seconds counts as lately changed, and is polled at every trigger."""

SHARDS_A_TRIGGER = 4
"""Into how many requests one trigger's topics are split: while one answer is compared, the broker makes the next."""


QUIET_SHARE = 0.25
"""Of the budget that is spent while the metadata log says that nothing changes: what a beat may hide is found by it."""

ROUNDS_AT_NEWS = 2
"""Rounds through all topics until a signal that no difference explains is given up: the broker that is asked may be a
moment behind the log, so that the first round misses what the second one finds."""


class PollSchedule:
    """The turns of one flow's topics."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._shards: list[tuple[str, ...]] = []
        self._topics: frozenset[str] = frozenset()
        self._next = 0
        self._saved = 0.0
        self._last_turn: float | None = None
        self._changed: dict[str, float] = {}
        self._owed = 0
        self._unexplained = 0
        self._spared = 0.0

    def members(self, topics: Collection[str]) -> None:
        """Says which topics there are. New shards only when they differ, so that a look can reuse what it built."""
        if len(topics) == len(self._topics) and self._topics.issuperset(topics):
            return
        upcoming = self._shards[self._next][0] if self._shards else ""
        self._topics = frozenset(topics)
        size, ordered = self._shard_size(), sorted(topics)
        self._shards = [tuple(ordered[start : start + size]) for start in range(0, len(ordered), size)]
        # The turn stays where it was: where topics come and go, starting over would never reach the last ones.
        self._next = max(0, bisect_right([shard[0] for shard in self._shards], upcoming) - 1)
        self._changed = {topic: at for topic, at in self._changed.items() if topic in self._topics}

    def _shard_size(self) -> int:
        if self._pace.observe_rate == 0:
            return max(1, min(self._pace.shard_topics, ceil(len(self._topics) / SHARDS_A_TRIGGER)))
        a_trigger = self._pace.observe_rate * self._pace.trigger_interval
        return max(1, min(self._pace.shard_topics, round(a_trigger / SHARDS_A_TRIGGER)))

    def changed(self, topics: Iterable[str], now: float) -> None:
        """Notes topics that were seen to differ."""
        self._changed.update(dict.fromkeys(topics, now))

    def all_shards(self) -> list[tuple[str, ...]]:
        """Every topic, for a comparison of everything."""
        return list(self._shards)

    def turn(self, now: float, *, quiet: bool = False, news: int = 0) -> Iterator[list[Sequence[str]]]:
        """The shards to look at now, in groups; together no more topics than the budget that came in and was not spent.

        `found` is to be told of each group before the next one is asked for. `quiet`: the metadata log is listened
        to. `news`: how many records it has beyond its beat since the last turn.
        """
        if self._pace.observe_rate == 0:
            yield list(self._shards)
            return
        self._earn(now, quiet)
        if news:
            self._unexplained += news
            self._owed = ROUNDS_AT_NEWS * len(self._shards)
        if not quiet:
            lately = self._paid(self._lately(now))
            yield [*lately, *self._paid(self._shards_within(self._saved))]
        elif not self._owed:
            yield self._paid(self._shards_within(min(self._spared, self._saved)))
        else:
            yield from self._until_explained(now)

    def _until_explained(self, now: float) -> Iterator[list[Sequence[str]]]:
        """One shard at a time: the one that explains the signal spares all that would come after it."""
        group: list[Sequence[str]] = self._lately(now)
        for _ in range(len(self._shards)):
            if group:
                yield self._paid(group)
            if not self._owed or len(self._shards[self._next]) > self._saved:
                return
            group = [self._next_shard()]
        yield self._paid(group)

    def found(self, differing: int) -> None:
        """How many topics of the last group differed: so many records of the signal are explained."""
        self._unexplained = max(0, self._unexplained - differing)
        if not self._unexplained:
            self._owed = 0

    def _paid(self, group: list[Sequence[str]]) -> list[Sequence[str]]:
        spent = sum(len(shard) for shard in group)
        self._saved -= spent
        self._spared = max(0.0, self._spared - spent)
        return group

    def _earn(self, now: float, quiet: bool) -> None:
        since = self._pace.trigger_interval if self._last_turn is None else now - self._last_turn
        self._last_turn = now
        income = since * self._pace.observe_rate
        everything = len(self._topics) + len(self._changed)
        # Without a log to listen to, what a long pause saved up is not spent at once: two triggers' worth at most.
        a_trigger = self._pace.observe_rate * self._pace.trigger_interval
        most = max(everything if quiet else min(everything, 2 * a_trigger), a_trigger + self._shard_size())
        # Rounded, so that the sum of many small budgets is what it should be when a shard's size is compared with it.
        self._saved = round(min(self._saved + income, most), 6)
        self._spared = round(min(self._spared, self._shard_size()) + income * QUIET_SHARE, 6)

    def _shards_within(self, budget: float) -> list[Sequence[str]]:
        """Whole shards, in turn, as many as the budget allows, none twice."""
        turn: list[Sequence[str]] = []
        while len(turn) < len(self._shards) and len(self._shards[self._next]) <= budget:
            turn.append(self._next_shard())
            budget -= len(turn[-1])
        return turn

    def _next_shard(self) -> Sequence[str]:
        shard = self._shards[self._next]
        self._next = (self._next + 1) % len(self._shards)
        self._owed = max(0, self._owed - 1)
        if not self._owed:
            self._unexplained = 0
        return shard

    def _lately(self, now: float) -> list[Sequence[str]]:
        """What changed lately as one shard, newest first up to half of what is saved."""
        self._changed = {topic: at for topic, at in self._changed.items() if now - at < LATELY}
        newest = sorted(self._changed.items(), key=lambda row: (-row[1], row[0]))
        lately = sorted(topic for topic, _ in newest[: int(self._saved / 2)])
        return [lately] if lately else []
