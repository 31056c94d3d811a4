"""The walk of one flow in a micro-batch: observe, desire, plan, apply, record. `FlowReconcile.walk` is all of it.

The micro-batch says that it is time, not what is true. What is true is looked at here, and a plan is made from that
alone, so a batch that runs twice finds nothing to do the second time: foreachBatch is at-least-once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sinks.engine.apply import Writers, apply_steps
from sinks.engine.audit import Audit, SettingChange
from sinks.engine.effective_drift import DriftGroup
from sinks.engine.guard import Guard
from sinks.engine.ledger import Ledger
from sinks.engine.model import Key, Kind, Op, Outcome
from sinks.engine.plan import Plan, join_plans
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.cluster import Cluster, Reader
from sinks.kafka.ports.config_watch import Watch
from sinks.kafka.ports.metadata_signal import MetadataSignal, NoSignal
from sinks.kinds.controller import Controller, ControllerStatus, GroupSummary, PassContext
from sinks.kinds.topics.controller import TopicController
from sinks.kinds.topics.survey import list_both
from streaming.errors import LockstepError


@dataclass(frozen=True)
class Clusters:
    """Both ends of a flow, each with a way to look at it in full and a cheap one to see whether it differs."""

    source: Reader
    target: Cluster
    source_watch: Watch
    target_watch: Watch
    source_signal: MetadataSignal = field(default_factory=NoSignal)


@dataclass(frozen=True)
class Report:
    """What one walk saw and did. `everything`: it compared all of both sides.

    `unsupported`: kinds that a cluster does not have, with the reason. `not_there`: MM2's internal topics that do not
    exist yet, each with the cluster it belongs on. `seconds`: by phase. `groups`: None where they are not looked at.
    `effective`: configs in force with two values, of all topics, also those that this walk did not look at.
    """

    plan: Plan
    outcomes: tuple[Outcome, ...] = ()
    everything: bool = False
    looked_at: int = 0
    unsupported: Mapping[Kind, str] = field(default_factory=dict)
    not_there: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    groups: GroupSummary | None = None
    effective: tuple[DriftGroup, ...] = ()


class FlowReconcile:
    """One flow. Its parts know what each kind needs; this is what they have in common."""

    def __init__(
        self,
        settings: FlowSettings,
        clusters: Clusters,
        guard: Guard,
        open_ledger: Callable[[], Ledger],
        audit: Audit,
        writers: Writers,
        parts: Sequence[Controller] = (),
        clock: Callable[[], float] = time.monotonic,
        on_ledger: Callable[[Ledger], None] = lambda ledger: None,
    ) -> None:
        """`on_ledger` is called whenever the ledger was read, and may raise what stops the flow."""
        self.settings, self._clusters, self._guard = settings, clusters, guard
        self._open_ledger, self._audit, self._writers, self._clock = open_ledger, audit, writers, clock
        self._topics = TopicController(
            settings, clusters.source, clusters.target, clusters.source_watch, clusters.target_watch
        )
        self._parts: tuple[Controller, ...] = (self._topics, *parts)
        self._on_ledger = on_ledger
        self._ledger: Ledger | None = None
        self.paused: frozenset[Kind] = frozenset()
        self._compared: float | None = None
        self._looked: dict[Kind, float] = {}
        self._audited: frozenset[tuple[Kind, Op, Key]] = frozenset()

    def walk(self, requested: Collection[str] = (), everything: bool = False) -> Report:
        """Once through. Raises what stops this flow: ClusterUnreachable, RightsMissing, WrongCluster, UnsafePlan."""
        watch = _Stopwatch()
        context = self._observe(requested, everything)
        due = [part for part in self._parts if part.look(context)]
        if context.everything:
            self._compared = context.now
        watch.lap("observe")
        plan = join_plans(self.settings.flow, [part.compare(context) for part in due])
        watch.lap("plan")
        outcomes = self._apply(plan, due, context.ledger)
        watch.lap("apply")
        for part in due:
            part.learn(context, plan, outcomes)
        status = [part.status(context) for part in self._parts]
        known = self._with_standing(plan, status)
        self._remember(known, outcomes, context.ledger)
        watch.lap("record")
        return self._report(known, outcomes, context, status, watch)

    def _observe(self, requested: Collection[str], everything: bool) -> PassContext:
        resting = frozenset() if everything or requested else self._resting()
        everything = everything or (Kind.TOPIC_CONFIG not in resting and self._comparison_due())
        ledger = self._remembered(everything)
        listed = list_both(self.settings, self._clusters.source, self._clusters.target)
        now, pulse = self._clock(), self._clusters.source_signal
        return PassContext(now, listed, ledger, pulse.news(), pulse.quiet, requested, everything, resting | self.paused)

    def _resting(self) -> frozenset[Kind]:
        now, intervals = self._clock(), self.settings.pace.intervals
        resting = frozenset(kind for kind, wait in intervals.items() if now - self._looked.get(kind, -wait) < wait)
        self._looked |= {kind: now for kind in Kind if kind not in resting}
        return resting

    def _comparison_due(self) -> bool:
        interval = self.settings.pace.full_comparison_interval
        return self._compared is None or self._clock() - self._compared >= interval

    def _remembered(self, everything: bool) -> Ledger:
        # Read again with every comparison of everything: `lockstep pause` and `apply` write the ledger, too.
        ledger = self._ledger or self._open_ledger()
        if everything or self._ledger is None:
            if ledger is self._ledger:
                ledger.refresh()
            self._guard.check(ledger)
            self._on_ledger(ledger)
            self._ledger, self.paused = ledger, frozenset(ledger.paused())
        return ledger

    def _apply(self, plan: Plan, due: Sequence[Controller], ledger: Ledger) -> tuple[Outcome, ...]:
        if not plan.changes:
            return ()
        plan.raise_if_unsafe(self.settings.limits)
        self._guard.check(ledger)
        for part in due:
            part.before_writing(plan)
        outcomes: list[Outcome] = []
        try:
            for step in apply_steps(plan, self._writers):
                outcomes += step
        except LockstepError:
            self._remember(plan, outcomes, ledger)
            raise
        return tuple(outcomes)

    @staticmethod
    def _with_standing(plan: Plan, status: Sequence[ControllerStatus]) -> Plan:
        refused = dict.fromkeys((*plan.refused, *(refusal for part in status for refusal in part.refused)))
        errors = dict.fromkeys((*plan.errors, *(error for part in status for error in part.errors)))
        return replace(plan, refused=tuple(refused), errors=tuple(errors))

    def _remember(self, plan: Plan, outcomes: Sequence[Outcome], ledger: Ledger) -> None:
        ledger.record(outcomes)
        # A refusal stands in the plan until it is mended, but is an event once; what failed now is one already.
        known = self._audited | {(o.change.kind, o.change.op, o.change.key) for o in outcomes}
        events = [outcome for outcome in outcomes if _is_event(outcome)]
        self._audit.record(
            plan,
            events,
            [refusal for refusal in plan.refused if refusal.place not in known],
        )
        self._audited = frozenset(refusal.place for refusal in plan.refused)

    def _report(
        self,
        plan: Plan,
        outcomes: tuple[Outcome, ...],
        context: PassContext,
        status: Sequence[ControllerStatus],
        watch: _Stopwatch,
    ) -> Report:
        return Report(
            plan=plan,
            outcomes=outcomes,
            everything=context.everything,
            looked_at=self._topics.looked_at,
            unsupported={kind: reason for part in status for kind, reason in part.unsupported.items()},
            not_there=self._not_there(context),
            seconds=watch.laps,
            groups=next((part.groups for part in status if part.groups is not None), None),
            effective=tuple(group for part in status for group in part.effective),
        )

    def _not_there(self, context: PassContext) -> tuple[str, ...]:
        flow, internal = self.settings.flow, self.settings.internal
        topics = {flow.source: context.listed.source, flow.target: context.listed.target}
        places = (
            (self.settings.policy.format_remote_topic(flow.source, internal.heartbeats), flow.target),
            (internal.checkpoints, flow.target),
            (internal.offset_syncs, internal.offset_syncs_cluster),
        )
        return tuple(f"{topic} on {alias}" for topic, alias in places if topic not in topics[alias])

    def note_settings(self, changes: Sequence[SettingChange]) -> None:
        """Audits that the flow goes on with other settings. Raises ClusterUnreachable."""
        self._audit.record_settings(self.settings.flow, changes)

    def close(self) -> None:
        """Lets go of every client."""
        self._clusters.source_signal.close()
        for part in self._parts:
            part.close()
        self._clusters.source.close()
        self._clusters.target.close()


def _is_event(outcome: Outcome) -> bool:
    # That a group's offset moves on is content, like records; that it is there at all, or could not move, is news.
    change = outcome.change
    return outcome.error is not None or not change.kind.row.content or change.op is not Op.UPDATE


class _Stopwatch:
    """Seconds of each phase of a walk."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, phase: str) -> None:
        now = time.perf_counter()
        self.laps[phase] = now - self._last
        self._last = now
