"""What is to be done for the kinds of one controller, and what is known of each key. Pure: times are monotonic seconds.

A key is a topic or a group. Whatever is compared as one list (ACLs, users, quotas, brokers) has one key, `WHOLE`.

| state of a key    | kept in            | what leads to it                         | what ends it                     |
|-------------------|--------------------|------------------------------------------|----------------------------------|
| clean             | nowhere            | a comparison found both sides equal      | any row below                    |
| dirty             | `keys.dirty`       | a poll found a difference (then it is    | this pass compares it            |
|                   |                    | `fresh`, too); an operator asked for it; |                                  |
|                   |                    | a row below fell due                     |                                  |
| to be repeated    | `keys.repeated`    | it was `fresh` when it was compared      | the next pass makes it dirty     |
| owed a turn       | `keys.owed`        | it differed at the start; or its turn    | one of the next passes makes it  |
|                   |                    | came with a full comparison              | dirty                            |
| unobserved        | `keys.unobserved`  | a comparison could not see it            | a comparison sees it; dirty      |
|                   |                    |                                          | again after 1, 2, 4 ... 30 s     |
| refused by a rule | `findings.refused` | the rules say: the target cannot have it | another comparison of the key    |
| backed off        | `backed_off`       | the target refused the change            | the target takes it, or the flow |
|                   |                    |                                          | wants another value, or none     |
| awaited           | `created`          | the target took the creation and         | the target shows it, or does not |
|                   |                    | does not show it yet                     | within `LAGS`                    |
| at rest           | `rests`            | the whole list could not be compared     | the next poll of the list        |

A poll reports a difference once, and the broker that was polled may be ahead of the one that is read. So a key that
differs is compared in the next pass, too. After a start that is every key: to read all of them twice at once would
double what a start takes, so they take turns (`owed`). A broker that stays behind for longer hides a change from both
passes. So a few keys are compared with each full comparison, whatever the polls say.

Deletions wait elsewhere (`sinks.engine.deletion_checks`): they wait for proof, not for time alone.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from sinks.every_kind.absence import Absence
from sinks.every_kind.backoff import Backoff, RetrySchedule
from sinks.every_kind.comparison import Comparison, ControllerStatus, Polled
from sinks.model.changes import Key, Kind, Op, Outcome
from sinks.model.effective_drift import DifferingConfig, DriftGroup, grouped
from sinks.model.plan import Refusal, Unobserved
from sinks.model.times import NEVER_AT
from streaming.errors import LockstepError
from streaming.flow import Flow

log = logging.getLogger(__name__)

OwnedKeys = Callable[[Kind], Collection[Key]]

WHOLE = ""
"""The only key of a kind that is compared as one list."""

AT_ONCE = 200
"""Most keys of second comparisons in one pass. A change that comes meanwhile waits for it, about a third of a
second."""

WITH_ALL = 500
"""Most keys of second comparisons in a pass that compares everything. It is larger, because a kind with its own
interval has no other passes."""

IN_TURN = 100
"""Keys that are compared again with each full comparison. 2,000 keys get their turn within twenty of them."""

BEHIND_FOR = 30.0
"""Seconds for which a broker's lists may lag behind another broker's."""

RETRIED_AT_ONCE = 500
"""Most unobserved keys that are compared again in one pass: one request describes them."""


class KeysToCompare:
    """Keys that the kinds of one controller have to compare.

    `dirty`: compared in this pass. `fresh`: dirty keys that a poll found to differ. `repeated`: compared once since
    then, and again in the next pass. `owed`: the same, in turns. `unobserved`: why a key could not be compared; it is
    tried again after 1, 2, 4 ... 30 s.
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
        """Begin a pass that polls. Marks as dirty the keys that earlier passes left, and `also`.

        Returns the keys that are no longer `there`. If a later listing has them, they are compared like new ones.
        `there`: all keys now. `everything`: this pass compares everything.
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
        """Replace all keys to compare by these. No key waits for a second comparison then."""
        self.dirty, self.fresh, self.repeated = dirty, set(), set()

    def differs(self, found: Collection[str]) -> None:
        self.dirty.update(found)
        self.fresh.update(found)

    def list_differs(self, now: float) -> None:
        """Note that a poll found the whole list to differ."""
        self.differs({WHOLE})
        self._differed = now

    def list_in_doubt(self, now: float) -> bool:
        """Whether the whole list differed within BEHIND_FOR. A broker may lag, so the full comparison compares the list
        again."""
        doubted = self._differed is not None
        if self._differed is not None and now - self._differed >= BEHIND_FOR:
            self._differed = None
        return doubted

    def all_polled(self, there: Collection[str]) -> None:
        """Note that all keys were polled on both sides. The next few keys take their turn; after a start, all keys that
        differ do."""
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
        """Returns the unobserved keys that are due for a retry. Forgets keys that are gone."""
        if not self.unobserved or not self._retries.is_due(now):
            return set()
        self.unobserved = {key: why for key, why in self.unobserved.items() if key in there}
        self._retries.failed(now)
        return set(islice(self.unobserved, RETRIED_AT_ONCE))

    def compared(
        self, covered: Collection[str], again: Collection[str], unobserved: Mapping[str, Unobserved], now: float
    ) -> None:
        """Note that the keys in `covered` were compared. `again`: keys that still differ. `unobserved`: keys to try
        again later."""
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
        """When the unobserved keys are compared again; NEVER_AT if there are none."""
        return self._retries.not_before if self.unobserved else NEVER_AT


LAGS = 300.0
"""Seconds after which a created item that the target never showed counts as missing."""

NOT_SHOWN = (
    "{} took {} creations and does not show them yet. Lockstep creates them again if it does not within 5 minutes"
)


class RecentCreations:
    """Items that Lockstep created a moment ago and that the target does not show yet. They are not created again.

    A broker that creates 10,000 partitions may show them minutes later. If an item was shown once and is missing then,
    a client deleted it, and Lockstep creates it again at once. It also does so for an item that is not shown within
    `LAGS`. The row of a kind (`shown_late`) says whether this concerns it.
    """

    def __init__(self) -> None:
        self._created: dict[Key, float] = {}
        self.missed: frozenset[Key] = frozenset()
        """Awaited keys that the target did not show at the last call of `awaited`. Later creations are not among
        them."""

    def learn(self, outcomes: Iterable[Outcome], now: float) -> None:
        done = (outcome.change for outcome in outcomes if outcome.error is None and outcome.change.op is Op.CREATE)
        self._created |= {change.key: now for change in done if change.kind.row.shown_late}

    def awaited(self, is_shown: Callable[[Key], bool], now: float) -> Collection[Key]:
        """Returns the keys that must not be created again yet. `is_shown`: whether the target shows a key now."""
        kept = ((key, at) for key, at in self._created.items() if now - at < LAGS and not is_shown(key))
        self._created = dict(kept)
        self.missed = frozenset(self._created)
        return self.missed

    def unobserved(self, kind: Kind, wanted: Collection[Key], alias: str) -> list[Unobserved]:
        """Returns an error with the number of wanted items that the target does not show yet. `alias`: the target's."""
        waiting = len(self.missed.intersection(wanted))
        return [Unobserved(kind, NOT_SHOWN.format(alias, waiting))] if waiting else []


Cases = tuple[DifferingConfig, ...]


@dataclass
class KindFindings:
    """Results of the last comparisons, for status only."""

    refused: dict[str, Sequence[Refusal]] = field(default_factory=dict)
    """Changes that the target would not accept, by key."""
    errors: tuple[Unobserved, ...] = ()
    """Items that could not be observed, of a kind that is compared as one list."""
    unsupported: str | None = None
    """Why a cluster does not have the kind."""
    _notes: Collection[str] = ()
    _cases: dict[str, Cases] = field(default_factory=dict)
    _shared: dict[Cases, Cases] = field(default_factory=dict)
    _groups: tuple[DriftGroup, ...] | None = ()

    def list_compared(self, comparison: Comparison, refused: Sequence[Refusal]) -> None:
        """Replace all findings by a comparison of the whole list. `refused`: what the plan itself refused."""
        plan, self.unsupported = comparison.plan, comparison.unsupported
        for note in plan.notes:
            if note not in self._notes:
                log.info("%s: %s", plan.flow.name, note)
        self._notes, self.errors, self.refused = plan.notes, plan.errors, {"": refused} if refused else {}

    def keys_compared(self, covered: Collection[str], comparison: Comparison) -> None:
        if self.refused or comparison.refused:
            self.refused = {key: why for key, why in self.refused.items() if key not in covered}
            self.refused |= comparison.refused
        if self._cases or comparison.drifts:
            for key in covered:
                before, cases = self._cases.pop(key, ()), tuple(comparison.drifts.get(key, ()))
                if cases:
                    # Topics differ in the same configs as a rule, so they share it: 10,000 of them are a dictionary.
                    self._cases[key] = self._shared.setdefault(cases, cases)
                if before or cases:
                    self._groups = None

    def drifts(self, keys: Collection[str]) -> tuple[DriftGroup, ...]:
        """Returns configs that differ in effect, the most frequent case first. Forgets keys that are not in `keys`."""
        for gone in [key for key in self._cases if key not in keys]:
            del self._cases[gone]
            self._groups = None
        if self._groups is None:
            topics = Counter(self._cases.values())
            self._shared = {cases: cases for cases in topics}
            counts: Counter[DifferingConfig] = Counter()
            for cases, count in topics.items():
                counts.update(dict.fromkeys(cases, count))
            self._groups = grouped(counts)
        return self._groups


@dataclass
class KindsAgenda:
    """The work that the kinds of one controller have to do next."""

    signalled: int = 0
    """Number of records of the source's metadata log for which no poll has run yet."""
    error: LockstepError | None = None
    """Why the last call of the controller failed."""
    retries: RetrySchedule = field(default_factory=RetrySchedule)
    """When the controller is called again."""
    backed_off: Backoff = field(default_factory=Backoff)
    """Refused changes."""
    created: RecentCreations = field(default_factory=RecentCreations)
    """Items that the target does not show yet."""
    keys: KeysToCompare = field(default_factory=KeysToCompare)
    """Keys to compare."""
    written: set[str] = field(default_factory=set)
    """Names on the target that Lockstep wrote since the last poll."""
    own_writes: set[str] = field(default_factory=set)
    """Keys of these names that were not polled since."""
    inputs: object = None
    """Inputs of the last comparison."""
    rests: bool = False
    """The list could not be compared in full, and waits for the next poll."""
    polled: Polled = field(default_factory=lambda: Polled(differs=False))
    """Result of the last poll."""
    findings: KindFindings = field(default_factory=KindFindings)
    """Results for status."""
    lacked: Absence[Kind] = field(default_factory=lambda: Absence[Kind]())
    """Kinds that Lockstep owns items of while the target shows none."""

    def failed(self, error: LockstepError, now: float) -> None:
        """Note that a call of the controller failed. The wait before the next call grows."""
        self.retries.failed(now)
        self.error, self.polled = error, replace(self.polled, polled=0)

    def note_works(self) -> None:
        self.error = None
        self.retries.succeeded()

    def note_unsupported(self, kind: Kind, flow: Flow, reason: str) -> None:
        """Note that a cluster does not support the kind. The pass compares it once all the same: other flows hold their
        deletions until this flow has published what it wants."""
        is_news = self.findings.unsupported is None
        if is_news:
            log.info("%s: Lockstep does not sync %s: %s", flow.name, kind, reason)
        self.findings = KindFindings(unsupported=reason)
        self.keys.reset({WHOLE} if is_news else set())
        self.rests = True

    def cannot_be_seen(self, error: Unobserved) -> None:
        """Note that the cluster denied a poll of the whole list."""
        self.keys.dirty.add(WHOLE)
        self.findings.errors, self.findings.refused, self.rests = (error,), {}, True

    def hold_back(self, comparison: Comparison, owned: OwnedKeys, now: float) -> Comparison:
        """Returns the comparison without creations that the target will show later, and without changes that back off.

        Forgets backed-off changes of compared items that are no longer wanted. `owned`: called with a kind, returns the
        keys that the flow owns.
        """
        plan, covered = comparison.plan, comparison.covered
        if covered is None:
            comparison = self._believed(self._without_awaited(comparison, now), owned, now)
            self.findings.list_compared(comparison, plan.refused)
            plan = comparison.plan
        else:
            self.findings.keys_compared(covered.keys(), comparison)
        todo, waiting = self.backed_off.sift(plan.changes, now, None if covered is None else covered.values())
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
        """Returns the comparison with corrected `present`. A target that shows none of the items that Lockstep owns is
        believed only after a while. A new item that is not shown yet counts as present."""
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

    def note_written_names(self, comparison: Comparison) -> None:
        """Note that the changes of this comparison are written now.

        The watches must forget what they polled before, on both sides. Otherwise a value that returns to what it was
        would not look like a change.
        """
        names = {change.key[0] for change in comparison.plan.changes}
        self.written |= names
        self.own_writes |= {key for key, name in (comparison.covered or {}).items() if name in names}

    def note_compared(self, comparison: Comparison, outcomes: Collection[Outcome], now: float) -> None:
        """Note that a comparison was applied. Keys stay to compare if they could not be observed, were not written, or
        failed for the moment."""
        covered, self.inputs = comparison.covered, self.polled.inputs
        passing = {one.change.key[0] for one in outcomes if one.error is not None and one.error.retriable}
        # A new topic may lack a refused config, or be another client's with other configs.
        done = (one.change for one in outcomes if one.error is None)
        names = passing.union(change.key[0] for change in done if change.kind.row.data and change.op is Op.CREATE)
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
        """Returns refusals, errors, configs that differ in effect, and when the next poll is due."""
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
        """Returns when these kinds need a pass on their own, in monotonic seconds."""
        polled, keys = self.polled, self.keys
        if not polled.possible:
            return NEVER_AT
        ready = keys.dirty if polled.comparable is None else keys.dirty.intersection(polled.comparable)
        if not self.rests and (ready or (polled.compares_twice and (keys.repeated or keys.owed))):
            return now
        refused = self.findings.refused and polled.keys is None
        due = polled.due_if_refused if refused else polled.due
        return min(due, self.backed_off.next_at(), keys.retry_at())
