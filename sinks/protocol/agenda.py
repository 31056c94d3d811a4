"""The agenda of a flow: what it has to do, for every kind, and when. Pure: times come in, in monotonic seconds.

| what makes a pass due                                  | until                                            |
|--------------------------------------------------------|--------------------------------------------------|
| the source's metadata log tells of changes             | each kind was polled, or another explained them  |
| it is time to compare everything, on both sides        | all was polled                                   |
| a kind rested for its interval                         | it was polled                                    |
| a kind could not be polled or compared                 | it could; asked again after 1, 2, 4 ... 30 s     |
| the target refused a change (`backoff`)                | it takes it, or nothing wants it any more        |
| the target took a creation, and does not show it       | it shows it, or does not for `LAGS`              |
| a poll found a key to differ                           | it was compared now, and in the next pass        |
| a key could not be compared, or what it needed passes  | it could; compared again after 1, 2, 4 ... 30 s  |
| a kind depends on something that changed               | it was compared                                  |

Deletions that wait have one place of their own (`deletions`): what they wait for is proof, not time alone. Which keys a
kind polls next is the kind's: topics are polled in shards, groups by their commits, all else as whole lists.

A poll reports a difference once, and the broker that was polled may be ahead of the one that is read. So what differs
is compared in the next pass, too. After a start that is every key: to read all of them twice at once would double what
a start takes, so they take turns. A broker that stays behind for longer hides a change from both passes. So a few keys
are compared with each full comparison, whatever the polls say.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice

from sinks.flow_settings import Pace
from sinks.model.changes import Key, Kind, Op, Outcome
from sinks.model.plan import Unobserved
from sinks.protocol.absence import NEVER, Absence
from sinks.protocol.backoff import Backoff
from sinks.protocol.comparison import Comparison, ControllerStatus, Polled
from sinks.protocol.kind_findings import KindFindings
from sinks.protocol.listing import Freshness
from streaming.errors import LockstepError
from streaming.flow import Flow

log = logging.getLogger(__name__)

Kinds = frozenset[Kind]
"""Those that one controller keeps."""


@dataclass
class KindsAgenda:
    """What is to be done for the kinds of one controller.

    `signalled`: records of the source's metadata log for which these kinds were not polled yet. `error`: why the
    controller could not be asked last; `retries`: when it is asked again. `backed_off`: changes that were refused.
    `created`: what the target took and does not show yet. `keys`: what is to be compared. `written`: what was written,
    by its name on the target, since the last poll; `unpolled`: keys of that which were not polled since. `inputs`: what
    the last comparison depended on. `rests`: what could not be compared in full waits for the next poll. `polled`: what
    the last poll found. `findings`: what comparisons found, for status. `lacked`: kinds without any item on the
    target, though some were ours.
    """

    signalled: int = 0
    error: LockstepError | None = None
    retries: RetrySchedule = field(default_factory=lambda: RetrySchedule())
    backed_off: Backoff = field(default_factory=Backoff)
    created: RecentCreations = field(default_factory=lambda: RecentCreations())
    keys: DirtyKeys = field(default_factory=lambda: DirtyKeys())
    written: set[str] = field(default_factory=set)
    unpolled: set[str] = field(default_factory=set)
    inputs: object = None
    rests: bool = False
    polled: Polled = field(default_factory=lambda: Polled(differs=False))
    findings: KindFindings = field(default_factory=KindFindings)
    lacked: Absence[Kind] = field(default_factory=lambda: Absence[Kind]())

    def failed(self, error: LockstepError, now: float) -> None:
        """It could not be polled or compared, and is asked again ever less often."""
        self.retries.failed(now)
        self.error, self.polled = error, replace(self.polled, polled=0)

    def works(self) -> None:
        """It could."""
        self.error = None
        self.retries.succeeded()

    def lacks(self, kind: Kind, flow: Flow, reason: str) -> None:
        """A cluster has nothing of the kind. It is compared once: other flows wait for what this one wants."""
        is_news = self.findings.unsupported is None
        if is_news:
            log.info("%s: %s is left alone: %s", flow.name, kind, reason)
        self.findings = KindFindings(unsupported=reason)
        self.keys.reset({WHOLE} if is_news else set())
        self.rests = True

    def cannot_be_seen(self, error: Unobserved) -> None:
        """A poll of the whole list was denied."""
        self.keys.dirty.add(WHOLE)
        self.findings.errors, self.findings.refused, self.rests = (error,), {}, True

    def ready(self, comparison: Comparison, owned: OwnedKeys, now: float) -> Comparison:
        """The comparison without creations that the target will show later, and without changes that are backed off.

        What is compared and wanted no more is forgotten. `owned`: tells what the flow owns of a kind.
        """
        plan, covered = comparison.plan, comparison.covered
        if covered is None:
            comparison = self._believed(self._without_awaited(comparison, now), owned, now)
            self.findings.list_compared(comparison, plan.refused)
            plan = comparison.plan
            self.backed_off.keep_wanted(plan.changes)
        else:
            self.findings.keys_compared(covered.keys(), comparison)
            self.backed_off.keep_wanted(plan.changes, covered.values())
        todo, waiting = self.backed_off.split(plan.changes, now)
        return replace(comparison, plan=replace(plan, changes=tuple(todo), refused=(*plan.refused, *waiting)))

    def _without_awaited(self, comparison: Comparison, now: float) -> Comparison:
        plan = comparison.plan
        for kind, present in comparison.present.items():
            if kind.row.shown_late:
                awaited = self.created.awaited(present.__contains__, now)
                waiting = {one.key for one in plan.changes if one.op is Op.CREATE and one.key in awaited}
                late = self.created.unobserved(kind, waiting, plan.flow.target)
                changes = tuple(one for one in plan.changes if one.key not in waiting)
                plan = replace(plan, changes=changes, errors=(*plan.errors, *late))
        return replace(comparison, plan=plan)

    def _believed(self, comparison: Comparison, owned: OwnedKeys, now: float) -> Comparison:
        """What the target has. Where some of it was ours, that nothing is there is believed only after a while; what
        was created and is not shown yet counts as there."""
        self.rests = bool(comparison.plan.errors) or comparison.unsupported is not None
        present = dict(comparison.present)
        for kind, there in comparison.present.items():
            lacks_ours = not there and bool(owned(kind))
            self.lacked.observe({kind} if lacks_ours else (), 1, now)
            if lacks_ours and not self.lacked.lasting():
                self.rests = True
                del present[kind]
            else:
                present[kind] = {**there, **dict.fromkeys(self.created.missed, "")}
        return replace(comparison, present=present)

    def writes(self, comparison: Comparison) -> None:
        """The changes of this comparison are written now.

        What a poll saw before must be forgotten on both sides: going back to it would not look like a change. On the
        target that was before the write. On the source it may be older than what was compared. A change that came in
        between is written now; taken back, it would look as if nothing had happened.
        """
        names = {change.key[0] for change in comparison.plan.changes}
        self.written |= names
        self.unpolled |= {key for key, name in (comparison.covered or {}).items() if name in names}

    def tried(self, outcomes: Collection[Outcome], now: float) -> None:
        """Backs off what was refused, and waits for what was created."""
        self.backed_off.learn(outcomes, now)
        self.created.learn(outcomes, now)

    def compared(self, comparison: Comparison, outcomes: Collection[Outcome], now: float) -> None:
        """What was compared differs no more, but for what could not be seen, was not written, or passes by itself."""
        covered, self.inputs = comparison.covered, self.polled.inputs
        names = {one.change.key[0] for one in outcomes if is_to_compare_again(one)}
        if covered is not None:
            keys = self.polled.keys if names else None
            again = {key for key, name in keys.items() if name in names} if keys else set()
            self.keys.compared(covered, again.union(comparison.again), comparison.unobserved, now)
        elif comparison.unsupported is None:
            # What was planned and not tried, since the plan was refused, differs as before.
            untried = not {one.change for one in outcomes}.issuperset(comparison.plan.changes)
            self.rests = self.rests or untried
            self.keys.compared({WHOLE}, {WHOLE} if self.rests or names else (), {}, now)
        else:
            self.keys.reset(set())

    def status(self, now: float) -> ControllerStatus:
        """What is refused or backed off, what could not be observed, what differs in effect, and when to poll next."""
        polled, found = self.polled, self.findings
        keys = polled.keys if polled.keys is not None else (WHOLE,)
        untaken = [one for key, rows in found.refused.items() if key in keys for one in rows]
        unobserved = [why for key, why in self.keys.unobserved.items() if key in keys]
        return ControllerStatus(
            refused=(*polled.refused, *untaken, *self.backed_off.waiting(now)),
            errors=(*found.errors, *unobserved, *polled.errors),
            unsupported=found.unsupported,
            effective=found.drifts(keys),
            polled=polled.polled,
            due=self.due_at(now),
        )

    def due_at(self, now: float) -> float:
        """When a pass is due for these kinds without any other reason."""
        polled, keys = self.polled, self.keys
        if not polled.possible:
            return NEVER
        ready = keys.dirty if polled.comparable is None else keys.dirty.intersection(polled.comparable)
        if not self.rests and (ready or (polled.follows and (keys.repeated or keys.owed))):
            return now
        refused = self.findings.refused and polled.keys is None
        due = polled.due_if_refused if refused else polled.due
        return min(due, self.backed_off.next_at(), keys.retry_at())


OwnedKeys = Callable[[Kind], Collection[Key]]


def is_to_compare_again(outcome: Outcome) -> bool:
    """What passes by itself, and topics just created: without a refused config, or by another hand with others."""
    if outcome.error is not None:
        return outcome.error.retriable
    return outcome.change.kind.row.data and outcome.change.op is Op.CREATE


WHOLE = ""
"""The key of a kind that is compared as one list."""

AT_ONCE = 200
"""Keys that are compared again in one pass. A change that comes meanwhile waits for it: a third of a second or so."""

WITH_ALL = 500
"""The same in a pass that compares everything; more, since a kind with an interval of its own has no other passes."""

IN_TURN = 100
"""Keys that are compared with each full comparison, so that 2,000 are within twenty of them."""

BEHIND_FOR = 30.0
"""Seconds for which a broker's lists may be behind another broker's."""

RETRIED_AT_ONCE = 500
"""Unobserved keys that are compared again in one pass: one request describes them."""


class DirtyKeys:
    """Of the kinds of one controller.

    `dirty`: to be compared now. `fresh`: dirty keys that a poll found to differ. `repeated`: keys that were
    compared since; they are compared in the next pass as well. `owed`: the same, in turns. `unobserved`: why a key
    could not be compared; it is tried again after 1, 2, 4 ... 30 s.
    """

    def __init__(self) -> None:
        self.dirty: set[str] = set()
        self.fresh: set[str] = set()
        self.repeated: set[str] = set()
        self.owed: dict[str, None] = {}
        self.unobserved: dict[str, Unobserved] = {}
        self._round: list[str] = []
        self._first, self._retries = True, RetrySchedule()
        self._differed: float | None = None

    def begin(self, there: Collection[str], also: Iterable[str], *, everything: bool) -> set[str]:
        """Begins a pass that polls: adds what earlier passes left to be compared, and `also`.

        Returns the keys that are not `there` any more. Back in a later listing, they are compared like new ones.
        `everything`: this pass compares everything.
        """
        most = WITH_ALL if everything else AT_ONCE
        # What has not been compared once yet keeps its place.
        turn = set(islice((key for key in self.owed if key in there and key not in self.dirty), most))
        wanted = self.dirty.union(turn, self.repeated, also)
        there = {*there}
        gone = wanted.union(self.owed) - there
        self.owed = {key: None for key in self.owed if key in there and key not in turn}
        self.dirty, self.fresh, self.repeated = wanted & there, self.fresh & there, set()
        return gone

    def reset(self, dirty: set[str]) -> None:
        """Only these are to be compared, and nothing once more."""
        self.dirty, self.fresh, self.repeated = dirty, set(), set()

    def differs(self, found: Collection[str]) -> None:
        """A poll found these to differ."""
        self.dirty.update(found)
        self.fresh.update(found)

    def list_differs(self, now: float) -> None:
        """A poll of the whole list found it to differ."""
        self.differs({WHOLE})
        self._differed = now

    def list_in_doubt(self, now: float) -> bool:
        """Whether the whole list differed lately, so that a full comparison takes it in: a broker may be behind."""
        doubted = self._differed is not None
        if self._differed is not None and now - self._differed >= BEHIND_FOR:
            self._differed = None
        return doubted

    def all_polled(self, there: Collection[str]) -> None:
        """All keys were polled, on both sides: the next few take their turns; after a start all that differ do."""
        if self._first:
            self._first = False
            self._owe(self.fresh)
            self.fresh = set()
            return
        # One that came after a round began waits for the next: keys that come and go keep no other from its turn.
        self._round = [key for key in self._round if key in there] or sorted(there)
        some, self._round = self._round[:IN_TURN], self._round[IN_TURN:]
        self._owe(some)

    def _owe(self, keys: Collection[str]) -> None:
        # What waits already keeps its place.
        self.owed |= dict.fromkeys(sorted(set(keys) - self.owed.keys()))

    def retried(self, there: Collection[str], now: float) -> set[str]:
        """Unobserved keys that are to be compared again now; none before their time. Forgets those that are gone."""
        if not self.unobserved or not self._retries.is_due(now):
            return set()
        self.unobserved = {key: why for key, why in self.unobserved.items() if key in there}
        self._retries.failed(now)
        return set(islice(self.unobserved, RETRIED_AT_ONCE))

    def compared(
        self, covered: Collection[str], again: Collection[str], unobserved: Mapping[str, Unobserved], now: float
    ) -> None:
        """`covered` were compared. What is in `again` still differs; what is `unobserved` is tried again later."""
        self.dirty = self.dirty.difference(covered).union(again)
        self.repeated |= self.fresh.intersection(covered)
        self.fresh.difference_update(covered)
        if not self.unobserved and not unobserved:
            return
        is_new = not unobserved.keys() <= self.unobserved.keys()
        # This turn's keys go to the end, so that all have their turns.
        self.unobserved = {key: why for key, why in self.unobserved.items() if key not in covered} | dict(unobserved)
        if is_new:
            self._retries.succeeded()
            self._retries.failed(now)

    def retry_at(self) -> float:
        """When unobserved keys are to be compared again; infinite without any."""
        return self._retries.not_before if self.unobserved else float("inf")


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
        """Whether the pass that begins compares everything: where it was `asked` for, where nothing holds that was
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
        """When the resting ones among these kinds are due again."""
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

    def learn(self, outcomes: Iterable[Outcome], now: float) -> None:
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

    def unobserved(self, kind: Kind, wanted: Collection[Key], alias: str) -> list[Unobserved]:
        """Says of what is still wanted, and was missed, that the target of this alias does not show it yet."""
        waiting = len(self._missed.intersection(wanted))
        return [Unobserved(kind, NOT_SHOWN.format(alias, waiting))] if waiting else []
