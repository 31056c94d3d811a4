"""When a flow compares what: everything, a kind, the listed topics. Pure: times come in, in monotonic seconds.

| what makes a pass due                             | until                                            |
|---------------------------------------------------|--------------------------------------------------|
| the source's metadata log tells of changes        | each kind was polled, or another explained them  |
| it is time to compare everything, on both sides   | all was polled                                   |
| a kind rested for its interval                    | it was polled                                    |
| a kind could not be polled or compared            | it could; asked again after 1, 2, 4 ... 30 s     |
| a key of a kind is to be compared (`KindsAgenda`) | it was compared                                  |

Which keys a kind polls next is the kind's: topics are polled in shards, groups by their commits, all else as whole
lists.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from threading import Lock

from sinks.every_kind.absence import NEVER
from sinks.every_kind.comparison import Polled
from sinks.every_kind.kinds_agenda import KindsAgenda
from sinks.every_kind.listing import Freshness, Listed, TopicListing
from sinks.flow_settings import Pace
from sinks.model.changes import Kind

Kinds = frozenset[Kind]
"""Those that one controller keeps."""


class FlowAgenda:
    """Of one flow. `full`, `intervals` and `listing` concern the flow as a whole; `of` has what concerns the kinds of
    each controller."""

    def __init__(self, pace: Pace | None = None, turn: Lock | None = None) -> None:
        """`turn`: held by the flow of the job that compares everything now."""
        pace = pace or Pace()
        self.full = FullComparisons(pace.full_comparison_interval, turn or Lock())
        self.intervals = KindIntervals(pace.intervals)
        self.listing = ListingFreshness()
        self.of: defaultdict[Kinds, KindsAgenda] = defaultdict(KindsAgenda)

    def signal(self, controlled: Iterable[Kinds], records: int) -> None:
        """So many changes were signalled: owed to each of these until it was polled, for a signal comes once."""
        for kinds in controlled:
            self.of[kinds].signalled += records

    def polled(self, kinds: Kinds, found: Polled) -> None:
        """These were polled. Changes whose records they explain no other kind looks for at once."""
        one = self.of[kinds]
        one.polled, explained, one.signalled = found, min(one.signalled, found.explained), 0
        for other in self.of.values():
            other.signalled = max(0, other.signalled - explained)

    def due_at(self, wishes: Iterable[tuple[Kinds, float]], idle: Collection[Kind], others: Iterable[float]) -> float:
        """When the next pass is due: the earliest of what controllers want, what is tried again, and `others`.

        A controller whose kinds are all `idle` wants nothing: what it could not do now it cannot do before they wake.
        """
        wanted = list(others)
        for kinds, at in wishes:
            one = self.of[kinds]
            if one.error is not None:
                wanted.append(one.retries.not_before)
            elif not kinds <= set(idle):
                wanted.append(at)
        return min(wanted, default=NEVER)


LATEST = 1.5
"""Intervals after which a flow waits for no other any more."""


class FullComparisons:
    """When one flow compares everything; a pass at a time uses it.

    A comparison of thousands of topics, ACLs and groups keeps the interpreter busy for seconds, and a change of the
    flow waits for it. So the flows of a job take turns.
    """

    def __init__(self, interval: float, turn: Lock) -> None:
        """`interval`: seconds from one to the next. `turn`: one flow of the job holds it."""
        self._interval, self._turn = interval, turn
        self._at: float | None = None
        self._has_turn = False

    def begins(self, now: float, *, asked: bool) -> bool:
        """Whether the pass that begins compares everything: where it was `asked` for, where nothing holds that was
        known before, and where it is time and no other flow's turn. Until it is `done` nothing holds."""
        age = LATEST * self._interval if asked or self._at is None else now - self._at
        if age < self._interval:
            return False
        self._has_turn = self._has_turn or self._turn.acquire(blocking=False)
        if not self._has_turn and age < LATEST * self._interval:
            return False
        self._at = None
        return True

    def done(self, now: float) -> None:
        """All was polled."""
        self._at = now

    def forget(self) -> None:
        """Nothing that was found before holds any more."""
        self._at = None

    def over(self) -> None:
        """The pass has ended, however: another flow may have its turn."""
        if self._has_turn:
            self._has_turn = False
            self._turn.release()

    def due_at(self, now: float) -> float:
        """When the next is due, as far as that is known."""
        return (now if self._at is None else self._at) + self._interval


class KindIntervals:
    """Kinds that are not polled in every pass, of one flow."""

    def __init__(self, intervals: Mapping[Kind, float]) -> None:
        """`intervals`: seconds between two polls, of the kinds that have any."""
        self._intervals = intervals
        self._polled_at: dict[Kind, float] = {}

    def resting(self, now: float) -> frozenset[Kind]:
        """Kinds whose interval is not over."""
        polled = self._polled_at
        return frozenset(k for k, wait in self._intervals.items() if k in polled and now - polled[k] < wait)

    def polled(self, kinds: Collection[Kind], now: float) -> None:
        """These were read. One that could not be read is due again in the next pass."""
        self._polled_at |= dict.fromkeys(kinds, now)

    def waking(self, kinds: Collection[Kind], now: float) -> list[float]:
        """When the resting ones among these kinds are due again."""
        resting = self.resting(now) & set(kinds)
        return sorted(self._polled_at[kind] + self._intervals[kind] for kind in resting)


SETTLED_AFTER = 15.0
"""Seconds after a signal until each broker shows what it told of: the one that is asked may follow the metadata log
behind the one that told of it."""


class ListingFreshness:
    """How fresh the topics must be that a pass lists: thousands of them cost both the broker and the interpreter.

    What was listed of a source holds while its metadata log has not moved.
    """

    def __init__(self) -> None:
        self._moved_at, self._listed_at = float("inf"), float("-inf")
        self._wanted_anew = True
        self._source: Mapping[str, int] = {}

    def want_anew(self, wanted: bool = True) -> None:
        """Where it is `wanted`, the next listing is of both clusters, whatever was listed before: it was written."""
        self._wanted_anew = self._wanted_anew or wanted

    def list(self, topics: TopicListing, now: float, *, silent: bool, everything: bool, asked: bool) -> Listed:
        """Lists topics as fresh as a pass needs. Raises ClusterUnreachable, RightsMissing.

        `silent`: the log is followed, and nothing was signalled since the last call. `everything` will be compared;
        `asked`: because an operator wants it.
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
