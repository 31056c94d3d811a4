"""The pass: observe, desire, plan, apply, record. `FlowReconcile.run_pass` is all of it, `compare` and then `apply`.

Everything that observes or writes goes through it: the job, `run --once`, `plan`, `apply`, `adopt`, `status` without a
job, `offsets`. They differ in how a pass is started, and in the steps that they leave out. A command that only observes
calls `compare` and goes no further.

A pass observes what is true and plans from that alone. So a pass that runs twice finds nothing to do the second time:
foreachBatch is at-least-once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TypeVar

from sinks.engine.apply import Recorder, apply_steps
from sinks.engine.deletion_checks import DeletionChecks
from sinks.engine.flow_agenda import FlowAgenda
from sinks.engine.flow_components import FlowComponents
from sinks.engine.flow_ledger import FlowLedger, check_not_copied
from sinks.engine.report import PHASES, Compared, KindTrouble, Report, notify, stops_flow
from sinks.every_kind.comparison import Comparison, ControllerStatus
from sinks.every_kind.controller import Controller, PassContext, Sighting, StreamFollower
from sinks.every_kind.followed_log import EPOCHS_GROW_WITHIN_S, FollowedLog
from sinks.every_kind.listing import NOTHING_LISTED
from sinks.every_kind.moved_copies import refuse_beside, refuse_moved, refuse_unknown
from sinks.every_kind.wishes import OtherDrains
from sinks.failover.preflight import FailoverStatus
from sinks.failover.source_end_offsets import Positions
from sinks.faults import NotLeading
from sinks.flow_settings import FlowSettings
from sinks.kinds.file_warnings import file_warnings
from sinks.ledger.audit import SettingChange
from sinks.ledger.kept_divergences import divergences
from sinks.model.changes import Change, Key, Kind, Outcome
from sinks.model.plan import join_plans
from streaming.errors import LockstepError
from streaming.hints import CheckpointSeen, SyncSeen

T = TypeVar("T")

KEPT_BY_COPIER = "the copier keeps this kind in step itself (lockstep.copier.keeps): Lockstep only compares it"

WriteProgress = Callable[[int, int], None]
"""Called with (changes written, changes to write)."""


class FlowReconcile:
    """The reconcile loop of one flow. Its controllers know what each kind needs; this class has what they share."""

    def __init__(
        self, settings: FlowSettings, components: FlowComponents, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.settings, self._components, self._clock = settings, components, clock
        self.leadership = components.leadership
        self._ledger = FlowLedger(settings.flow, components)
        self._agenda = FlowAgenda(settings.pace, components.full_turn)
        self._wishes, self._published_at = components.wishes, float("-inf")
        # A command compares once: it has no earlier comparison to tell by that a broker follows the log.
        patience_s = EPOCHS_GROW_WITHIN_S if components.reviewed else 0.0
        self._log = FollowedLog(components.signal, components.source_epochs, patience_s)
        self._deletions = DeletionChecks(settings, self._wishes, self._log, reviewed=components.reviewed)
        self._recorder = Recorder(components.audit, components.target)
        self.warnings = tuple[str, ...]()
        """What the properties file probably means otherwise, or why nothing is planned for a flow that has ended, as of
        the last comparison of everything."""
        self._internal = [where for where, role in settings.told_in.items() if role.flow is not None]

    def run_pass(self, requested: Collection[str] = (), everything: bool = False) -> Report:
        """Run one pass. Raises what stops this flow (`report.stops_flow`), and NotLeading if another process leads
        it."""
        try:
            with self.leading():
                return self.apply(self.compare(requested, everything))
        except NotLeading:
            self._publish_all_the_same()
            raise
        finally:
            self._agenda.full.over()

    @contextmanager
    def leading(self) -> Iterator[None]:
        """A context in which no other process writes this flow. Comparisons from before it must not be applied in it.

        Raises NotLeading, and what opening the ledger raises.
        """
        with self.leadership.hold():
            if not self.leadership.leads():
                # Another may have led until now: nothing that was read before holds any more.
                self._agenda.full.forget()
                self._agenda.listing.want_anew()
                self.leadership.claim(self._ledger.read_anew())
            yield

    def compare(self, requested: Collection[str] = (), everything: bool = False, *, force: bool = False) -> Compared:
        """Observe both clusters and plan the difference. Writes nothing.

        `requested`: upstream topics that an operator asked for. `everything`: compare all items of both sides. `force`:
        an operator confirms held deletions.
        """
        marks, trouble = [time.perf_counter()], KindTrouble()

        # Observe: which clusters these are, the ledger, the topics of both, then whatever a cheap poll finds.
        context = self._begin(requested, everything)
        to_survey = self._poll(context, trouble)
        if context.everything:
            self._agenda.full.done(context.now)
        marks.append(time.perf_counter())

        # Desire, and the difference: each kind whose poll found something reads both sides.
        found = self._survey(to_survey, context, trouble)
        self._agenda.intervals.note_polled(frozenset(Kind) - context.idle - trouble.faulted.keys(), context.now)
        plan = join_plans(self.settings.flow, [comparison.plan for _, comparison in found])

        # The one door for deletions, with a second look at the source, and for floods of creations.
        second_look = partial(self._second_look, context, trouble)
        plan = self._deletions.checked(plan, found, context, trouble, second_look, force=force)
        if context.everything:
            ended = self._ledger.ended
            self.warnings = (ended,) if ended else file_warnings(self.settings, context.listed)
        marks.append(time.perf_counter())
        return Compared(context, plan, found, trouble, marks)

    def apply(self, compared: Compared, progress: WriteProgress | None = None) -> Report:
        """Write the plan, record the outcomes, and notify the observers. Raises what stops the flow, after
        recording."""
        context = compared.context

        # The lease, the ledger and the clusters are those that were compared, right before the first write.
        compared = replace(compared, plan=self._ledger.refuse_outdated(compared.plan, context.ledger))
        if compared.plan.changes:
            self._components.leadership.prove()
        if not self._ledger.ended:
            if compared.plan.changes or context.everything:
                # Also at first contact, which pins both ids.
                self._components.guard.check(context.ledger)
            for _, comparison in compared.comparisons:
                for kind, present in comparison.present.items():
                    context.ledger.recognize(kind, present)

        # Write; what was written is owned and audited, whatever ends it.
        outcomes = self._write(compared, progress)
        self._deletions.creations.note_created(outcomes, context.now)
        compared.marks.append(time.perf_counter())

        # Record what each kind has to do next.
        if not self._ledger.ended:
            self._learn(compared, outcomes)
        report = self._report(compared, outcomes)
        self._recorder.record_refusals(report.plan, outcomes)
        source_ends = self._components.source_ends
        if source_ends is not None and not self._ledger.ended:
            source_ends.keep(context)
        compared.marks.append(time.perf_counter())

        # Report.
        caught_up_ms = source_ends.caught_up_ms if source_ends is not None else None
        phases = zip(PHASES, compared.marks, compared.marks[1:], strict=False)
        seconds = {phase: end - begin for phase, begin, end in phases}
        report = replace(report, seconds=seconds, caught_up_ms=caught_up_ms)
        notify(self._components.observers, report)
        return report

    def _begin(self, requested: Collection[str], everything: bool) -> PassContext:
        """Read the ledger, which checks the clusters' ids first, and list the topics."""
        now, agenda, signal = self._clock(), self._agenda, self._components.signal
        asked = everything or bool(requested)
        everything = agenda.full.begins(now, asked=everything)
        resting = frozenset[Kind]() if requested or everything else agenda.intervals.resting(now)
        ledger = self._ledger.read(everything)
        stopped = frozenset(Kind) if self._ledger.ended else self._ledger.paused
        self._wishes.stop(self.settings.flow, stopped, ledger)
        # Before anything is listed: a change that comes meanwhile is the next pass's.
        signalled = signal.take_signalled()
        if signalled:
            agenda.signal((one.kinds for one in self._components.controllers), signalled)
        listed = NOTHING_LISTED
        if not self._ledger.ended:
            # The source of a flow that has ended may be gone.
            self._log.begin()
            silent, topics = signal.works and not signalled, self._components.topics
            listed = agenda.listing.list(topics, self._clock(), silent=silent, everything=everything, asked=asked)
            check_not_copied(self.settings, listed, ledger.topic)
        idle, now = resting | stopped, self._clock()
        confirming = self._deletions.due(now) - idle
        beside = self._wishes.beside(self.settings.flow)
        return PassContext(now, listed, ledger, signal.works, requested, everything, idle, confirming, beside)

    def _poll(
        self, context: PassContext, trouble: KindTrouble, kinds: Collection[Kind] = tuple(Kind)
    ) -> list[Controller]:
        """Poll each controller of these kinds. Returns those that have something to compare."""
        due = list[Controller]()
        for controller in () if self._ledger.ended else self._components.controllers:
            if controller.kinds.isdisjoint(kinds):
                continue
            agenda = self._agenda.of[controller.kinds]
            polled = self._ask(controller, context, trouble, partial(controller.poll, context, agenda))
            if polled is None:
                continue
            self._agenda.note_polled(controller.kinds, polled)
            if polled.differs:
                due.append(controller)
            elif agenda.error is not None:
                agenda.note_works()
        return due

    def _survey(
        self, due: Iterable[Controller], context: PassContext, trouble: KindTrouble
    ) -> list[tuple[Controller, Comparison]]:
        """Returns the differences of each kind, without changes that are backed off."""
        found, moved = [], {} if self._components.leads_back else divergences(context.ledger)
        in_batches = bool(moved and context.ledger.failover().topics)
        beside = self._wishes.beside(self.settings.flow)
        for controller in due:
            agenda = self._agenda.of[controller.kinds]
            seen = self._ask(controller, context, trouble, partial(controller.survey, context, agenda))
            if seen is None:
                continue
            comparison = self._ask(controller, context, trouble, partial(controller.difference, context, seen))
            if comparison is None:
                continue
            if agenda.error is not None:
                agenda.note_works()
            if self.settings.copier_keeps:
                # The agenda learns of these refusals, so what differs stays known while nothing is compared.
                kept = dict.fromkeys(self.settings.copier_keeps, KEPT_BY_COPIER)
                comparison = comparison.with_plan(comparison.plan.refusing_kinds(kept, passing=True))
            if moved:
                comparison = comparison.with_plan(refuse_moved(comparison.plan, moved, in_batches=in_batches))
            if any(beside):
                comparison = self._beside_others(comparison, beside)
            found.append((controller, agenda.hold_back(comparison, context.ledger.owned, context.now)))
        return found

    def _beside_others(self, comparison: Comparison, beside: OtherDrains) -> Comparison:
        """Returns the comparison without changes that clients of other flows, which may have moved, must not meet."""
        known = refuse_beside(comparison.plan, beside.drained)
        plan = refuse_unknown(known, beside.unread)
        if plan is not known:
            self._wishes.wait(self.settings.flow)
        return comparison if plan is comparison.plan else comparison.with_plan(plan)

    def _second_look(
        self, context: PassContext, trouble: KindTrouble, controller: Controller, keys: Collection[Key]
    ) -> Mapping[Key, Sighting]:
        return self._ask(controller, context, trouble, partial(controller.second_look, context, keys)) or {}

    def _ask(
        self, controller: Controller, context: PassContext, trouble: KindTrouble, step: Callable[[], T]
    ) -> T | None:
        """Run one step of a controller. Raises what stops the flow.

        An error that stops only this controller's kinds is noted, and None is returned. The controller is asked again
        ever less often, or at once if an operator asked for the pass.
        """
        agenda = self._agenda.of[controller.kinds]
        wanted = context.everything or bool(context.requested)
        if agenda.error is not None and not wanted and not agenda.retries.is_due(context.now):
            trouble.note(controller.kinds, agenda.error)
            return None
        try:
            return step()
        except LockstepError as error:
            if stops_flow(error):
                raise
            agenda.failed(error, context.now)
            trouble.note(controller.kinds, error)
            return None

    def _write(self, compared: Compared, progress: WriteProgress | None) -> tuple[Outcome, ...]:
        plan, ledger = compared.plan, compared.context.ledger
        if self._ledger.ended or not plan.changes:
            return ()
        with suppress(LockstepError):
            # What keeps the audit topic away is told when it is written to.
            self._components.audit.prepare()
        ledger.intend(plan.changes)
        for controller, comparison in compared.comparisons:
            self._agenda.of[controller.kinds].note_written_names(comparison)
        outcomes, sent = list[Outcome](), list[Change]()
        if any(change.kind.row.data for change in plan.changes):
            self._agenda.listing.want_anew()
        try:
            for step in apply_steps(plan, self._components.writers, partial(self._ledger.goes_on, ledger), sent.extend):
                outcomes += step.outcomes
                if step.stopped is not None:
                    compared.trouble.note(frozenset({step.kind}), step.stopped)
                if progress is not None:
                    progress(min(len(outcomes), len(plan.changes)), len(plan.changes))
        finally:
            # Recorded whatever ends the pass, Ctrl-C too: sent changes are owned and audited, unsent ones are not.
            self._recorder.record(plan, outcomes, sent, ledger)
        return tuple(outcomes)

    def _learn(self, compared: Compared, outcomes: Sequence[Outcome]) -> None:
        """Tell the agenda and each controller the outcomes of what it compared."""
        context, enabled = compared.context, self.settings.synced
        for controller, comparison in compared.comparisons:
            tried = [outcome for outcome in outcomes if outcome.change.kind in controller.kinds]
            planned = frozenset(comparison.plan.changes)
            # A topic's creation brings outcomes of its configs. Where these are not synced, they are never tried again.
            kept = [one for one in tried if one.change in planned or one.change.kind in enabled]
            agenda = self._agenda.of[controller.kinds]
            agenda.backed_off.learn(kept, context.now)
            agenda.created.learn(kept, context.now)
            # A failed write to the ledger leaves the kind dirty, so the next pass compares it again.
            context.ledger.put(comparison.remembered)
            agenda.note_compared(comparison, tried, context.now)
            if isinstance(controller, StreamFollower):
                controller.written(context, tried)
            if (wanted := comparison.wanted) is not None and wanted.kind.row.of_principals:
                self._deletions.remember(wanted, context.ledger)

    def _publish_all_the_same(self) -> None:
        """Publish what this flow wants although another process leads it, because other flows of this process wait for
        its wishes."""
        now, interval = self._clock(), self.settings.pace.full_comparison_interval
        if self._wishes.is_awaited(self.settings.flow) and now - self._published_at >= interval:
            self._published_at = now
            with suppress(LockstepError):
                context, trouble = self._begin((), True), KindTrouble()
                due = self._poll(context, trouble, [kind for kind in Kind if kind.row.of_principals])
                for _, comparison in self._survey(due, context, trouble):
                    if (wanted := comparison.wanted) is not None and wanted.kind.row.of_principals:
                        self._deletions.publish(wanted, context)

    def _report(self, compared: Compared, outcomes: tuple[Outcome, ...]) -> Report:
        context, ended, flow = compared.context, self._ledger.ended, self.settings.flow
        topics = {flow.source: context.listed.source, flow.target: context.listed.target}
        missing = [f"{topic} on {alias}" for alias, topic in self._internal if topic not in topics[alias]]
        controllers = () if ended else self._components.controllers
        seen = list[ControllerStatus]()
        for controller in controllers:
            agenda = self._agenda.of[controller.kinds]
            if isinstance(controller, StreamFollower):
                seen.append(controller.status(context, agenda))
            else:
                seen.append(agenda.status(context.now))
        for controller, one in zip(controllers, seen, strict=True):
            if one.unsupported is not None:
                unsupported = compared.trouble.unsupported
                compared.trouble.unsupported = dict.fromkeys(controller.kinds, one.unsupported) | unsupported
        plan = compared.plan
        refused = dict.fromkeys((*plan.refused, *(refusal for one in seen for refusal in one.refused)))
        errors = dict.fromkeys((*plan.errors, *(error for one in seen for error in one.errors)))
        polls = [(controller.kinds, one.due) for controller, one in zip(controllers, seen, strict=True)]
        now, awake = context.now, self.settings.synced - self._ledger.paused
        waiting = self._deletions.next_at(context.idle)
        observers = [observer.due_at(now) for observer in self._components.observers]
        return Report(
            plan=replace(plan, refused=tuple(refused), errors=tuple(errors)),
            outcomes=outcomes,
            everything=context.everything,
            polled=sum(one.polled for one in seen),
            trouble=compared.trouble,
            paused=frozenset(Kind) if ended else self._ledger.paused,
            ended=ended,
            failover=self._ledger.failover,
            idle=context.idle,
            missing_topics=() if ended else tuple(missing),
            groups=next((one.groups for one in seen if one.groups is not None), None),
            effective=tuple(group for one in seen for group in one.effective),
            listed=context.listed,
            now=context.now,
            due=self._agenda.due_at(now, polls, idle=context.idle, awake=awake, others=[waiting, *observers]),
            stream_moved=any(one.stream_moved for one in seen),
            warnings=() if ended else (*self.warnings, *(warning for one in seen for warning in one.warnings)),
        )

    @property
    def paused(self) -> frozenset[Kind]:
        """Kinds that `lockstep pause` stopped, as of the last reading of the ledger."""
        return self._ledger.paused

    @property
    def awaits_second_look(self) -> bool:
        """Whether a pass in `SECOND_LOOK_AFTER_S` may delete something."""
        return self._deletions.waits

    @property
    def failover(self) -> FailoverStatus:
        """State of a failover, as of the last reading of the ledger; also after a pass that failed."""
        return self._ledger.failover

    def note_counted(self, positions: Positions) -> None:
        """Take in how far each partition was copied, as a preflight counted. Thread-safe."""
        if self._components.source_ends is not None:
            self._components.source_ends.note_counted(positions)

    def report_only(self, compared: Compared) -> Report:
        """Returns the report of a plan that is not applied. Nothing is written, and no observer is notified."""
        return replace(self._report(compared, ()), effective=compared.plan.effective)

    def take_in(self, syncs: Collection[SyncSeen], checkpoints: Collection[CheckpointSeen]) -> None:
        """Queue what a micro-batch brought for the next pass."""
        for controller in self._components.controllers:
            if isinstance(controller, StreamFollower):
                controller.take_in(syncs, checkpoints)

    def note_settings(self, changes: Sequence[SettingChange]) -> None:
        """Audit changed settings of the flow. Raises NotLeading, and what opening the ledger raises."""
        # A flow that was built a moment ago does not lead yet.
        with self.leading():
            self._components.audit.record_settings(self.settings.flow, changes)

    def close(self, *, replaced: bool = False) -> None:
        """Close every client, even if one of them raises. `replaced`: another object continues this flow."""
        components = self._components
        with ExitStack() as stack:
            stack.callback(components.opened.close)
            # After all that may still write.
            stack.callback(components.leadership.close)
            for observer in components.observers:
                stack.callback(observer.close, replaced=replaced)
            for controller in components.controllers:
                if isinstance(controller, StreamFollower):
                    stack.callback(controller.close)
            stack.callback(components.signal.close)
            stack.callback(components.audit.close)
