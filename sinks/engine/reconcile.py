"""The pass: observe, desire, plan, apply, record. `FlowReconcile.run_pass` is all of it.

There is one pass, and everything that observes or writes goes through it: the job, `run --once`, `plan`, `apply`,
`status` without a job, `offsets`. They differ in how a pass is started, and in the steps that they leave out: who only
observes calls `compare` and goes no further.

What is true is observed here, and a plan is made from that alone, so that a pass that runs twice finds nothing to do
the second time: foreachBatch is at-least-once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

from sinks.engine.apply import apply_steps
from sinks.engine.attempts import Attempts
from sinks.engine.audit_events import SettingChange
from sinks.engine.deletions import Deletions, FollowedLog
from sinks.engine.flow_components import FlowComponents, close_all
from sinks.engine.flow_ledger import FlowLedger, check_not_copied
from sinks.engine.full_comparisons import FullComparisons
from sinks.engine.kind_trouble import KindTrouble
from sinks.engine.leadership import Leader
from sinks.engine.model import Change, Key, Kind, Outcome
from sinks.engine.plan import join_plans
from sinks.engine.recorder import Recorder
from sinks.engine.report import Compared, Report, Stopwatch, notify, with_status
from sinks.failover.preflight import FailoverStatus
from sinks.faults import NotLeading
from sinks.flow_settings import FlowSettings
from sinks.kinds.controller import Controller, ControllerStatus, PassContext, Sighting, StreamListener
from sinks.kinds.file_warnings import file_warnings
from sinks.kinds.listing import NOTHING_LISTED, Freshness, Listed, missing_internal_topics
from streaming.errors import LockstepError
from streaming.hints import CheckpointSeen, SyncSeen

WriteProgress = Callable[[int, int], None]
"""Called with (changes written, changes to write)."""


class FlowReconcile:
    """One flow. Its controllers know what each kind needs; this is what they have in common."""

    def __init__(
        self,
        settings: FlowSettings,
        components: FlowComponents,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings, self._components, self._clock = settings, components, clock
        self.leadership, self.note_counted = components.leadership, components.note_counted
        obeys, opened = components.obeys_failover, components.open_ledger
        self._ledger = FlowLedger(components.guard, opened, components.on_ledger, obeys_failover=obeys)
        self._full = FullComparisons(settings.pace.full_comparison_interval, components.turns)
        self._claimed_at = float("-inf")
        self._listing = FreshListing(components.list_topics)
        self._intervals = KindIntervals(settings.pace.intervals)
        self._claims, self._warnings = components.claims, tuple[str, ...]()
        self._log = FollowedLog(components.signal, components.source_epochs)
        self._deletions = Deletions(settings, self._claims, self._log, reviewed=components.reviewed)
        self._attempts, self._recorder = Attempts(), Recorder(components.audit, components.topic_ids)

    @property
    def paused(self) -> frozenset[Kind]:
        """Kinds that `lockstep pause` stopped, as the ledger was read last."""
        return self._ledger.paused

    def run_pass(self, requested: Collection[str] = (), everything: bool = False) -> Report:
        """Once through. Raises what stops this flow (`kind_trouble.stops_flow`), NotLeading where another leads it."""
        try:
            with self.leading():
                return self.apply(self.compare(requested, everything))
        except NotLeading:
            self._claim_all_the_same()
            raise
        finally:
            self._full.over()

    def _claim_all_the_same(self) -> None:
        """Which process leads this flow is nothing to those beside it that this one leads: they wait for its claims."""
        now, interval = self._clock(), self.settings.pace.full_comparison_interval
        if self._claims.is_awaited(self.settings.flow) and now - self._claimed_at >= interval:
            self._claimed_at = now
            with suppress(LockstepError):
                context = self._observe((), True)
                for found in self._attempts.compare_claims(self._components.controllers, context):
                    self._deletions.publish(found.wanted, context)

    @contextmanager
    def leading(self) -> Iterator[None]:
        """No other process writes this flow meanwhile; what was compared before is not to be applied in it.

        Raises NotLeading, and what opening the ledger raises.
        """
        with self.leadership.hold():
            if not self.leadership.leads():
                # Another may have led until now: nothing that was read before holds any more.
                self._full.forget()
                self._listing.want_anew()
                self.leadership.claim(self._ledger.read_anew())
            yield

    @property
    def looks_again(self) -> bool:
        """Whether something is deleted once another pass, `LOOKS_AGAIN_S` later, confirms that the source lost it."""
        return self._deletions.waits

    @property
    def leader(self) -> Leader | None:
        """Who leads the flow, as far as this process knows."""
        return self._components.leadership.leader

    @property
    def failover(self) -> FailoverStatus:
        """How far one is, as the ledger was read last; also after a pass that failed."""
        return self._ledger.failover

    def compare(self, requested: Collection[str] = (), everything: bool = False, *, force: bool = False) -> Compared:
        """Observes both clusters and plans the difference; `force`: a person confirms what is deleted."""
        watch = Stopwatch()
        self._log.begin()
        context, trouble = self._observe(requested, everything), KindTrouble()
        controllers = () if self._ledger.ended else self._components.controllers
        due = [one for one in controllers if self._attempts.poll(one, context, trouble)]
        if context.everything:
            self._full.done(context.now)
        watch.lap("observe")
        found = [(one, made) for one in due if (made := self._attempts.ask(one, context, trouble, one.compare))]
        self._intervals.polled(frozenset(Kind) - context.idle - trouble.faulted.keys(), context.now)
        plan = join_plans(self.settings.flow, [comparison.plan for _, comparison in found])

        def look_up(controller: Controller, keys: Collection[Key]) -> Mapping[Key, Sighting]:
            return self._attempts.ask(controller, context, trouble, lambda now: controller.look_up(now, keys)) or {}

        plan = self._deletions.admit(plan, found, context, look_up, force=force)
        trouble.refuse(self._deletions.stopped)
        trouble.hold(self._deletions.held)
        if context.everything:
            self._warnings = file_warnings(self.settings, context.listed)
        watch.lap("plan")
        return Compared(context, plan, found, trouble, watch)

    def _observe(self, requested: Collection[str], everything: bool) -> PassContext:
        asked = everything or bool(requested)
        everything = self._full.begins(self._clock(), asked=everything)
        resting = frozenset() if requested or everything else self._intervals.resting(self._clock())
        ledger = self._ledger.read(everything)
        stopped = frozenset(Kind) if self._ledger.ended else self._ledger.paused
        self._claims.stop(self.settings.flow, stopped, ledger)
        # Before anything is listed: a change that comes meanwhile is the next pass's.
        signal, signalled = self._components.signal, self._components.signal.signalled()
        self._listing.sampled(self._clock(), signal.works and not signalled)
        self._attempts.signal(self._components.controllers, signalled)
        listed = NOTHING_LISTED
        if not self._ledger.ended:
            listed = self._listing.listed(self._clock(), everything=everything, asked=asked)
            check_not_copied(self.settings, listed, ledger.topic)
        idle = frozenset(Kind) if self._ledger.ended else resting | self._ledger.paused
        now = self._clock()
        confirming = self._deletions.due(now) - idle
        return PassContext(now, listed, ledger, 0, signal.works, requested, everything, idle, confirming)

    def apply(self, compared: Compared, progress: WriteProgress = lambda done, total: None) -> Report:
        """Writes what was compared, records and tells it. Raises what stops the flow, after recording."""
        compared = replace(compared, plan=self._ledger.still_allowed(compared.plan, compared.context.ledger))
        outcomes = self._write(compared, progress)
        self._deletions.note_created(outcomes, compared.context.now)
        compared.watch.lap("apply")
        for controller, comparison in () if self._ledger.ended else compared.comparisons:
            comparison.settle([outcome for outcome in outcomes if outcome.change.kind in controller.kinds])
            self._deletions.remember(comparison.wanted, compared.context.ledger)
        report = self._report(compared, outcomes)
        self._recorder.record_refusals(report.plan, outcomes)
        if not self._ledger.ended:
            self._components.keep(compared.context)
        compared.watch.lap("record")
        report = replace(report, seconds=compared.watch.laps)
        notify(self._components.observers, report)
        return report

    def _write(self, compared: Compared, progress: WriteProgress) -> tuple[Outcome, ...]:
        plan, ledger = compared.plan, compared.context.ledger
        if plan.changes:
            self._components.leadership.prove()
        if self._ledger.ended:
            return ()
        if plan.changes or compared.context.everything:
            # Right before the first write, and at first contact, which pins both ids.
            self._components.guard.check(ledger)
        for _, comparison in compared.comparisons:
            for kind, present in comparison.present.items():
                ledger.learn(kind, present)
        if not plan.changes:
            return ()
        self._recorder.prepare()
        ledger.intend(plan.changes)
        for _, comparison in compared.comparisons:
            comparison.before_writing()
        outcomes, sent = list[Outcome](), list[Change]()
        self._listing.want_anew(any(change.kind.row.data for change in plan.changes))
        try:
            for step in apply_steps(plan, self._components.writers, lambda: self._ledger.goes_on(ledger), sent.extend):
                outcomes += step.outcomes
                if step.stopped is not None:
                    compared.trouble.note(frozenset({step.kind}), step.stopped)
                progress(min(len(outcomes), len(plan.changes)), len(plan.changes))
        finally:
            # Whatever ends it, Ctrl-C too: what was written is owned and audited, and what was never sent is nobody's.
            self._recorder.record(plan, outcomes, sent, ledger)
        return tuple(outcomes)

    def _report(self, compared: Compared, outcomes: tuple[Outcome, ...]) -> Report:
        context, ended = compared.context, self._ledger.ended
        controllers = () if ended else self._components.controllers
        seen = [controller.status(context) for controller in controllers]
        for one in seen:
            for kind, reason in one.unsupported.items():
                compared.trouble.unsupported.setdefault(kind, reason)
        return Report(
            plan=with_status(compared.plan, seen),
            outcomes=outcomes,
            everything=context.everything,
            polled=sum(one.polled for one in seen),
            trouble=compared.trouble,
            paused=frozenset(Kind) if ended else self._ledger.paused,
            ended=ended,
            failover=self._ledger.failover,
            idle=context.idle,
            missing_topics=() if ended else missing_internal_topics(self.settings, context.listed),
            groups=next((one.groups for one in seen if one.groups is not None), None),
            effective=tuple(group for one in seen for group in one.effective),
            listed=context.listed,
            now=context.now,
            due=due_at(controllers, seen, self._attempts, context.idle, self._others_due(context)),
            stream_moved=any(one.stream_moved for one in seen),
            warnings=() if ended else (*self._warnings, *(warning for one in seen for warning in one.warnings)),
        )

    def _others_due(self, context: PassContext) -> list[float]:
        """The full comparison, kinds that rest for an interval of their own, deletions that wait, and who observes
        passes."""
        now, awake = context.now, self.settings.synced - self._ledger.paused
        observers = [observer.due_at(now) for observer in self._components.observers]
        waiting = self._deletions.next_at(context.idle)
        return [self._full.due_at(now), *self._intervals.waking(awake, now), waiting, *observers]

    def report_only(self, compared: Compared) -> Report:
        """The report of a pass that ends with its plan: nothing is written or recorded, and no observer gets it."""
        return replace(self._report(compared, ()), effective=compared.plan.effective)

    def take_in(self, syncs: Collection[SyncSeen], checkpoints: Collection[CheckpointSeen]) -> None:
        """What a micro-batch brought; the next pass takes it in."""
        for controller in self._components.controllers:
            if isinstance(controller, StreamListener):
                controller.take_in(syncs, checkpoints)

    def note_settings(self, changes: Sequence[SettingChange]) -> None:
        """Audits that the flow goes on with other settings. Raises what opening the ledger raises, NotLeading."""
        # A flow that was built a moment ago does not lead yet.
        with self.leading():
            self._components.audit.record_settings(self.settings.flow, changes)

    def close(self, *, replaced: bool = False) -> None:
        """Lets go of every client, whatever one of them raises. `replaced`: another goes on with this flow."""
        close_all(self._components, replaced=replaced)


NEVER = float("inf")


def due_at(
    controllers: Sequence[Controller],
    status: Iterable[ControllerStatus],
    attempts: Attempts,
    idle: Collection[Kind],
    others: Iterable[float],
) -> float:
    """The earliest of what controllers want, what is tried again, and `others`.

    A controller whose kinds are all `idle` wants nothing: what it could not do now it cannot do before they wake.
    """
    wanted = list(others)
    for controller, one in zip(controllers, status, strict=True):
        retry = attempts.due(controller)
        if retry is not None:
            wanted.append(retry)
        elif not controller.kinds <= set(idle):
            wanted.append(one.due)
    return min(wanted, default=NEVER)


class KindIntervals:
    """Of one flow."""

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


# What a pass lists: as much as it needs, for thousands of topics cost both the broker and the interpreter.
#
# What was listed of a source still holds while its metadata log has not moved. Times are monotonic seconds.


SETTLED_AFTER = 15.0
"""Seconds after a signal until each broker shows what it told of: the one that is asked may follow the metadata log
behind the one that told of it."""


class FreshListing:
    """Of one flow."""

    def __init__(self, list_topics: Callable[[Freshness], Listed]) -> None:
        self._list_topics = list_topics
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

    def listed(self, began: float, *, everything: bool, asked: bool) -> Listed:
        """`began`: now. `everything` will be compared; `asked`: because somebody wants it, not because it is time.

        Raises ClusterUnreachable, RightsMissing.
        """
        wanted = self.wanted
        if asked or self._wanted_anew:
            wanted = Freshness.ALL_NOW
        elif everything:
            wanted = Freshness.ALL
        listed = self._list_topics(wanted)
        self._wanted_anew = False
        if wanted is not Freshness.QUIET:
            self._listed_at = began
            self._compare(listed.source, began)
        return listed

    def _compare(self, source: Mapping[str, int], now: float) -> None:
        """A listing that is another one though nothing was signalled may be half of it: the silence counts anew."""
        if source != self._source:
            self._source, self._moved_at = source, max(self._moved_at, now)

    @property
    def wanted(self) -> Freshness:
        """What a pass that compares not everything needs: QUIET where the last listing shows all that was signalled,
        and nothing was signalled since."""
        is_quiet = self._listed_at - self._moved_at >= SETTLED_AFTER
        return Freshness.QUIET if is_quiet else Freshness.SOURCE_NOW
