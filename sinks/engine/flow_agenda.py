"""Decides what a flow compares when: everything, one kind, the listed topics. Pure: callers pass times, in monotonic
seconds.

| what makes a pass due                             | until                                            |
|---------------------------------------------------|--------------------------------------------------|
| the source's metadata log tells of changes        | each kind was polled, or another explained them  |
| it is time to compare everything, on both sides   | all was polled                                   |
| a kind rested for its interval                    | it was polled                                    |
| a kind could not be polled or compared            | it could; asked again after 1, 2, 4 ... 30 s     |
| a key of a kind is to be compared (`KindsAgenda`) | it was compared                                  |

Each kind decides which keys it polls next: topics in shards, groups by their commits, all others as whole lists.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from threading import Lock

from sinks.every_kind.comparison import Polled
from sinks.every_kind.kinds_agenda import KindsAgenda
from sinks.every_kind.listing import Freshness, Listed, TopicListing
from sinks.flow_settings import Pace
from sinks.model.changes import Kind

Kinds = frozenset[Kind]
"""The kinds of one controller."""


class FlowAgenda:
    """Agenda of one flow. `full`, `intervals` and `listing` concern the whole flow. `of` has one agenda for each
    controller."""

    def __init__(self, pace: Pace | None = None, turn: Lock | None = None) -> None:
        """`turn`: the lock that one flow of the job holds while it compares everything."""
        pace = pace or Pace()
        self.full = FullComparisons(pace.full_comparison_interval, turn or Lock())
        self.intervals = KindIntervals(pace.intervals)
        self.listing = ListingFreshness()
        self.of: defaultdict[Kinds, KindsAgenda] = defaultdict(KindsAgenda)

    def signal(self, controlled: Iterable[Kinds], records: int) -> None:
        """Note `records` new records in the source's metadata log. Each of these controllers must poll, because a
        signal comes only once."""
        for kinds in controlled:
            self.of[kinds].signalled += records

    def note_polled(self, kinds: Kinds, found: Polled) -> None:
        """Note a poll of these kinds. Other kinds no longer look for the signalled changes that it explains."""
        one = self.of[kinds]
        one.polled, explained, one.signalled = found, min(one.signalled, found.explained), 0
        for other in self.of.values():
            other.signalled = max(0, other.signalled - explained)

    def due_at(
        self,
        now: float,
        polls: Iterable[tuple[Kinds, float]],
        *,
        idle: Collection[Kind],
        awake: Collection[Kind],
        others: Iterable[float],
    ) -> float:
        """Returns when the next pass is due: at the earliest full comparison, poll of a controller, retry, or time in
        `others`.

        A controller is not polled while all its kinds are `idle`, because it can do nothing before one of them wakes.
        `awake`: kinds that make a pass due once they have rested.
        """
        wanted = [self.full.due_at(now), *self.intervals.waking(awake, now), *others]
        for kinds, at in polls:
            one = self.of[kinds]
            if one.error is not None:
                wanted.append(one.retries.not_before)
            elif not kinds <= set(idle):
                wanted.append(at)
        return min(wanted)


LATEST = 1.5
"""Intervals after which a flow compares everything without waiting for another flow."""


class FullComparisons:
    """Decides when one flow compares everything.

    A comparison of thousands of topics, ACLs and groups keeps the interpreter busy for seconds, and changes wait for
    it. So the flows of a job take turns.
    """

    def __init__(self, interval: float, turn: Lock) -> None:
        """`interval`: seconds between two full comparisons. `turn`: the lock that one flow of the job holds during
        one."""
        self._interval, self._turn = interval, turn
        self._at: float | None = None
        self._has_turn = False

    def begins(self, now: float, *, asked: bool) -> bool:
        """Whether the pass that begins compares everything.

        It does so if `asked`, after `forget`, or if it is time and no other flow has its turn. Until `done` is called,
        nothing that was known before counts.
        """
        age = LATEST * self._interval if asked or self._at is None else now - self._at
        if age < self._interval:
            return False
        self._has_turn = self._has_turn or self._turn.acquire(blocking=False)
        if not self._has_turn and age < LATEST * self._interval:
            return False
        self._at = None
        return True

    def done(self, now: float) -> None:
        """Note that this pass polled everything. The next full comparison is due one interval after `now`."""
        self._at = now

    def forget(self) -> None:
        """Drop what was found before: the next pass compares everything."""
        self._at = None

    def over(self) -> None:
        """Note that the pass has ended, even by an error: another flow may have its turn."""
        if self._has_turn:
            self._has_turn = False
            self._turn.release()

    def due_at(self, now: float) -> float:
        """Returns when the next full comparison is due."""
        return (now if self._at is None else self._at) + self._interval


class KindIntervals:
    """Kinds of one flow that rest for an interval between two polls."""

    def __init__(self, intervals: Mapping[Kind, float]) -> None:
        """`intervals`: seconds between two polls, for the kinds that have an interval."""
        self._intervals = intervals
        self._polled_at: dict[Kind, float] = {}

    def resting(self, now: float) -> frozenset[Kind]:
        """Returns the kinds whose interval is not over."""
        polled = self._polled_at
        return frozenset(k for k, wait in self._intervals.items() if k in polled and now - polled[k] < wait)

    def note_polled(self, kinds: Collection[Kind], now: float) -> None:
        """Note that these kinds were read. A kind that could not be read is due again in the next pass."""
        self._polled_at |= dict.fromkeys(kinds, now)

    def waking(self, kinds: Collection[Kind], now: float) -> list[float]:
        """Returns when the resting kinds among `kinds` are due again."""
        resting = self.resting(now) & set(kinds)
        return sorted(self._polled_at[kind] + self._intervals[kind] for kind in resting)


SETTLED_AFTER = 15.0
"""Seconds after a signal until each broker shows the signalled change. The broker that is asked may lag behind the one
that sent the signal."""


class ListingFreshness:
    """Decides how fresh a pass needs its list of topics. Listing thousands of topics costs the broker and the
    interpreter.

    A list of the source stays valid while the source's metadata log does not move.
    """

    def __init__(self) -> None:
        self._moved_at, self._listed_at = float("inf"), float("-inf")
        self._wanted_anew = True
        self._source: Mapping[str, int] = {}

    def want_anew(self) -> None:
        """Have the next pass list both clusters again, because this pass writes to them."""
        self._wanted_anew = True

    def list(self, topics: TopicListing, now: float, *, silent: bool, everything: bool, asked: bool) -> Listed:
        """List the topics, from an earlier listing where the pass allows it. Raises ClusterUnreachable, RightsMissing.

        `silent`: Lockstep follows the metadata log, and the log has not moved since the last call. `everything`: this
        pass compares all items. `asked`: an operator asked for the pass.
        """
        if not silent or self._moved_at == float("inf"):
            self._moved_at = now
        if asked or self._wanted_anew:
            freshness = Freshness.ALL_NOW
        elif everything:
            freshness = Freshness.ALL
        elif self._listed_at - self._moved_at >= SETTLED_AFTER:
            # The last listing shows all that was signalled.
            freshness = Freshness.QUIET
        else:
            freshness = Freshness.SOURCE_NOW
        listed = topics.list_topics(freshness)
        self._wanted_anew = False
        if freshness is not Freshness.QUIET:
            self._listed_at = now
            if listed.source != self._source:
                # Another list without a signal may be half of one: the silence counts from now on.
                self._source, self._moved_at = listed.source, max(self._moved_at, now)
        return listed
