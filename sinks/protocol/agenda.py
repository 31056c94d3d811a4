"""The agenda of a flow: what it has to do, for every kind, and when. Pure: times come in, in monotonic seconds.

| what makes a pass due                                  | until                                            |
|--------------------------------------------------------|--------------------------------------------------|
| the source's metadata log tells of changes             | each kind was polled, or another explained them  |
| it is time to compare everything, on both sides        | all was polled                                   |
| a kind rested for its interval                         | it was polled                                    |
| a kind could not be polled or compared                 | it could; asked again after 1, 2, 4 ... 30 s     |
| the target refused a change (`backoff`)                | it takes it, or nothing wants it any more        |
| the target took a creation, and does not show it       | it shows it, or does not for `LAGS`              |

Deletions that wait have one place of their own (`deletions`): what they wait for is proof, not time alone. Which keys a
kind compares next is the kind's: topics are polled in shards, groups by their commits, all else as whole lists.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from sinks.flow_settings import Pace
from sinks.model.changes import Key, Kind, Op, Outcome
from sinks.model.plan import Plan, Unobserved
from sinks.protocol.backoff import Backoff
from sinks.protocol.listing import Freshness
from streaming.errors import LockstepError

NEVER = float("inf")

Kinds = frozenset[Kind]
"""Those that one controller keeps."""


@dataclass
class KindsAgenda:
    """What is to be done for the kinds of one controller.

    `signalled`: records of the source's metadata log for which these kinds were not polled yet. `error`: why the
    controller could not be asked last; `retries`: when it is asked again. `backed_off`: changes that were refused.
    `created`: what the target took and does not show yet.
    """

    signalled: int = 0
    error: LockstepError | None = None
    retries: RetrySchedule = field(default_factory=lambda: RetrySchedule())
    backed_off: Backoff = field(default_factory=Backoff)
    created: RecentCreations = field(default_factory=lambda: RecentCreations())

    def failed(self, error: LockstepError, now: float) -> None:
        """It could not be polled or compared, and is asked again ever less often."""
        self.retries.failed(now)
        self.error = error

    def works(self) -> None:
        """It could."""
        self.error = None
        self.retries.succeeded()

    def ready(self, plan: Plan, compared: Collection[str] | None, now: float) -> Plan:
        """The plan without the changes that are backed off. What of `compared` it wants no more is forgotten.

        `compared`: remote topics or groups, with which keys begin; None: the plan is of all there is.
        """
        if compared is None:
            self.backed_off.retain(plan.changes)
        else:
            self.backed_off.settled(compared, plan.changes)
        todo, waiting = self.backed_off.split(plan.changes, now)
        return replace(plan, changes=tuple(todo), refused=(*plan.refused, *waiting))

    def learn(self, outcomes: Collection[Outcome], now: float) -> None:
        """Backs off what was refused, and waits for what was created."""
        self.backed_off.learn(outcomes, now)
        self.created.note(outcomes, now)


class Agenda:
    """Of one flow. `full`, `intervals` and `listing` concern the flow as a whole; `of` has what concerns the kinds of
    each controller."""

    def __init__(self, pace: Pace | None = None, turns: FullTurns | None = None) -> None:
        """`turns`: of the job's full comparisons."""
        pace = pace or Pace()
        self.full = FullComparisons(pace.full_comparison_interval, turns or FullTurns())
        self.intervals = KindIntervals(pace.intervals)
        self.listing = FreshListing()
        self.of: defaultdict[Kinds, KindsAgenda] = defaultdict(KindsAgenda)

    def signal(self, controlled: Iterable[Kinds], records: int) -> None:
        """So many changes were signalled: owed to each of these until it was polled, for a signal comes once."""
        for kinds in controlled:
            self.of[kinds].signalled += records

    def polled(self, kinds: Kinds, explained: int) -> None:
        """These were polled, and found the changes of so many records: no other kind looks for these at once."""
        explained, self.of[kinds].signalled = min(self.of[kinds].signalled, explained), 0
        for other in self.of.values():
            other.signalled = max(0, other.signalled - explained)

    def due_at(self, wishes: Iterable[tuple[Kinds, float]], idle: Collection[Kind], others: Iterable[float]) -> float:
        """When the next pass is due: the earliest of what controllers want, what is tried again, and `others`.

        A controller whose kinds are all `idle` wants nothing: what it could not do now it cannot do before they wake.
        """
        wanted = list(others)
        for kinds, at in wishes:
            mine = self.of[kinds]
            if mine.error is not None:
                wanted.append(mine.retries.not_before)
            elif not kinds <= set(idle):
                wanted.append(at)
        return min(wanted, default=NEVER)


FIRST_WAIT, LONGEST_WAIT = 1.0, 30.0
"""Seconds until the second try, and between tries in the end."""


@dataclass
class RetrySchedule:
    """Waits that double from FIRST_WAIT to `longest` while something fails again and again."""

    longest: float = LONGEST_WAIT
    not_before: float = 0.0
    failures: int = 0

    def failed(self, now: float, at_least: float = 0.0) -> float:
        """Notes a failure; returns the seconds until the next try."""
        wait = max(at_least, min(FIRST_WAIT * 2.0 ** min(self.failures, 10), self.longest))
        self.failures += 1
        self.not_before = now + wait
        return wait

    def succeeded(self) -> None:
        """The next failure is the first one."""
        self.failures, self.not_before = 0, 0.0

    def is_due(self, now: float) -> bool:
        """Whether it may be tried now."""
        return now >= self.not_before


LATEST = 1.5
"""Intervals after which a flow waits for no other any more."""


class FullTurns:
    """Of all flows of a job; one of them has its turn. From any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def take(self) -> bool:
        """Whether it is the caller's now."""
        return self._lock.acquire(blocking=False)

    def give_back(self) -> None:
        """By who took it."""
        self._lock.release()


class FullComparisons:
    """When one flow compares everything; a pass at a time uses it.

    A comparison of thousands of topics, ACLs and groups keeps the interpreter busy for seconds, and a change of the
    flow waits for it. So the flows of a job take turns.
    """

    def __init__(self, interval: float, turns: FullTurns) -> None:
        """`interval`: seconds from one to the next."""
        self._interval, self._turns = interval, turns
        self._at: float | None = None
        self._has_turn = False

    def begins(self, now: float, *, asked: bool) -> bool:
        """Whether the pass that begins compares everything: where somebody `asked` for it, where nothing holds that was
        known before, and where it is time and no other flow's turn. Until it is `done` nothing holds."""
        age = LATEST * self._interval if asked or self._at is None else now - self._at
        if age < self._interval:
            return False
        self._has_turn = self._has_turn or self._turns.take()
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
            self._turns.give_back()

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
        """When those of these kinds that rest now are due again."""
        resting = self.resting(now) & set(kinds)
        return sorted(self._polled_at[kind] + self._intervals[kind] for kind in resting)


SETTLED_AFTER = 15.0
"""Seconds after a signal until each broker shows what it told of: the one that is asked may follow the metadata log
behind the one that told of it."""


class FreshListing:
    """How fresh the topics must be that a pass lists: thousands of them cost both the broker and the interpreter.

    What was listed of a source holds while its metadata log has not moved.
    """

    def __init__(self) -> None:
        self._moved_at, self._listed_at = float("inf"), float("-inf")
        self._wanted_anew = True
        self._source: Mapping[str, int] = {}

    def sampled(self, now: float, silent: bool) -> None:
        """`silent`: the log is followed, and nothing was signalled since this was last called."""
        if not silent or self._moved_at == float("inf"):
            self._moved_at = now

    def want_anew(self, wanted: bool = True) -> None:
        """Where it is `wanted`, the next listing is of both clusters, whatever was listed before: it was written."""
        self._wanted_anew = self._wanted_anew or wanted

    def freshness(self, *, everything: bool, asked: bool) -> Freshness:
        """Of the listing that a pass needs. `everything` will be compared; `asked`: because an operator wants it.

        QUIET where the last listing shows all that was signalled, and nothing was signalled since.
        """
        if asked or self._wanted_anew:
            return Freshness.ALL_NOW
        if everything:
            return Freshness.ALL
        return Freshness.QUIET if self._listed_at - self._moved_at >= SETTLED_AFTER else Freshness.SOURCE_NOW

    def listed(self, began: float, freshness: Freshness, source: Mapping[str, int]) -> None:
        """Both were listed that fresh, from `began` on. Another list without a signal may be half of one: the silence
        counts from then on."""
        self._wanted_anew = False
        if freshness is Freshness.QUIET:
            return
        self._listed_at = began
        if source != self._source:
            self._source, self._moved_at = source, max(self._moved_at, began)


LAGS = 300.0
"""Seconds after which what was created and never shown counts as missing."""

NOT_SHOWN = "{} took {} creations and does not show them yet; they are tried again if it does not within minutes"


class RecentCreations:
    """What was created a moment ago, and the target does not show yet: it is not created once more.

    A broker that makes 10,000 partitions shows what it acknowledged minutes later. What was shown once and is missing
    then was deleted, and is created at once. So is what is not shown for longer than `LAGS`. Kinds say in their row
    (`shown_late`) that this concerns them.
    """

    def __init__(self) -> None:
        self._created: dict[Key, float] = {}
        self._missed: frozenset[Key] = frozenset()

    def note(self, outcomes: Iterable[Outcome], now: float) -> None:
        """Takes in what was created."""
        done = (outcome.change for outcome in outcomes if outcome.error is None and outcome.change.op is Op.CREATE)
        self._created |= {change.key: now for change in done if change.kind.row.shown_late}

    def awaited(self, is_shown: Callable[[Key], bool], now: float) -> Collection[Key]:
        """What must not be created again yet. `is_shown`: whether the target shows it now."""
        kept = ((key, at) for key, at in self._created.items() if now - at < LAGS and not is_shown(key))
        self._created = dict(kept)
        self._missed = frozenset(self._created)
        return self._missed

    @property
    def missed(self) -> Collection[Key]:
        """What was awaited when that was asked last; not what was created since."""
        return self._missed

    def unobserved(self, kind: Kind, wanted: Callable[[Key], bool], alias: str) -> list[Unobserved]:
        """Says of what is still wanted, and was missed, that the target of this alias does not show it yet."""
        waiting = sum(map(wanted, self._missed))
        return [Unobserved(kind, NOT_SHOWN.format(alias, waiting))] if waiting else []
