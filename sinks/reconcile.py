"""The walk of one flow in a micro-batch: observe, desire, plan, apply, record. `FlowReconcile.walk` is all of it.

The micro-batch says that it is time, not what is true. What is true is looked at here, and a plan is made from that
alone, so a batch that runs twice finds nothing to do the second time: foreachBatch is at-least-once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sinks.apply import apply_steps
from sinks.audit import Audit
from sinks.cluster.base import Cluster, Deaf, Listening, Reader, Watch
from sinks.guard import Guard
from sinks.ledger import Ledger
from sinks.model import Kind, Op, Outcome
from sinks.plan import Blind, Plan
from sinks.resources.topics import plan_topic_deletions
from sinks.rounds import Rounds
from sinks.setaside import SetAside
from sinks.settings import FlowSettings
from sinks.survey import Listed, Survey, list_both, survey
from sinks.writing import ConfigWriter
from streaming.errors import LockstepError

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Clusters:
    """Both ends of a flow, each with a way to look at it in full and a cheap one to see whether it differs."""

    source: Reader
    target: Cluster
    source_watch: Watch
    target_watch: Watch
    source_pulse: Listening = field(default_factory=Deaf)


@dataclass(frozen=True)
class Report:
    """What one walk saw and did. `everything`: it compared all topics of both sides.

    `not_there`: MM2's internal topics that do not exist yet, each with the cluster it belongs on.
    """

    plan: Plan
    outcomes: tuple[Outcome, ...] = ()
    everything: bool = False
    looked_at: int = 0
    not_there: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)


class FlowReconcile:
    """One flow. Keeps in memory only what is cheap to lose: whose turn it is, what is dirty, what was set aside."""

    def __init__(
        self,
        settings: FlowSettings,
        clusters: Clusters,
        guard: Guard,
        open_ledger: Callable[[], Ledger],
        audit: Audit,
        writer: ConfigWriter,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings, self._clusters, self._guard = settings, clusters, guard
        self._open_ledger, self._audit, self._writer, self._clock = open_ledger, audit, writer, clock
        self._ledger: Ledger | None = None
        self.paused: frozenset[Kind] = frozenset()
        self._rounds = Rounds(settings.pace)
        self._set_aside = SetAside()
        self._dirty: set[str] = set()
        self._fresh: set[str] = set()
        self._blind: dict[str, Blind] = {}
        self._compared: float | None = None
        self._looked: dict[Kind, float] = {}

    def walk(self, requested: Collection[str] = (), everything: bool = False) -> Report:
        """Once through. Raises what stops this flow: ClusterUnreachable, RightsMissing, WrongCluster, UnsafePlan."""
        watch = _Stopwatch()
        resting = frozenset() if everything or requested else self._resting()
        everything = everything or (Kind.TOPIC_CONFIG not in resting and self._comparison_due())
        ledger = self._remembered(everything)
        listed = list_both(self.settings, self._clusters.source, self._clusters.target)
        self._rounds.members(listed.desired.remote)
        looked_at = 0 if Kind.TOPIC_CONFIG in resting else self._look(listed, requested, everything)
        watch.lap("observe")
        if not self._dirty and (Kind.TOPIC in resting or not self._topics_differ(listed, ledger)):
            nothing = Survey(Plan(self.settings.flow, refused=listed.desired.refused))
            return self._report(nothing, (), everything, looked_at, listed, watch)
        seen = survey(
            self.settings,
            self._clusters.source,
            self._clusters.target,
            listed,
            look_at=self._dirty,
            owned=ledger.owned(Kind.TOPIC),
            paused=self.paused | resting,
        )
        todo = self._without_set_aside(seen, listed)
        watch.lap("plan")
        outcomes = self._apply(todo, ledger)
        watch.lap("apply")
        self._record(seen, todo, outcomes, ledger)
        watch.lap("record")
        return self._report(replace(seen, plan=todo), outcomes, everything, looked_at, listed, watch)

    def _resting(self) -> frozenset[Kind]:
        now, intervals = self._clock(), self.settings.pace.intervals
        resting = frozenset(kind for kind, wait in intervals.items() if now - self._looked.get(kind, -wait) < wait)
        self._looked |= {kind: now for kind in Kind if kind not in resting}
        return resting

    def _topics_differ(self, listed: Listed, ledger: Ledger) -> bool:
        desired, target = listed.desired, listed.target
        if any(target.get(name, 0) < partitions for name, partitions in desired.partitions.items()):
            return True
        mine = {key[0] for key in ledger.owned(Kind.TOPIC)} if self.settings.topic_deletes else set()
        return bool(plan_topic_deletions(desired, listed.source, target, mine))

    def _comparison_due(self) -> bool:
        interval = self.settings.pace.full_comparison_interval
        return self._compared is None or self._clock() - self._compared >= interval

    def _remembered(self, everything: bool) -> Ledger:
        # Read again with every comparison of everything: `lockstep pause` and `apply` write the ledger, too.
        if self._ledger is None or everything:
            ledger = self._open_ledger()
            self._guard.check(ledger)
            self._ledger, self.paused = ledger, frozenset(ledger.paused())
        return self._ledger

    def _look(self, listed: Listed, requested: Collection[str], everything: bool) -> int:
        """Adds to the dirty topics those that differ from the last look; returns how many were looked at."""
        now, remote = self._clock(), listed.desired.remote
        pulse = self._clusters.source_pulse
        looked_at, differing = 0, set[str]()
        shards = self._rounds.all_shards()
        for group in [shards] if everything else self._rounds.turn(now, quiet=pulse.quiet, news=pulse.news()):
            found = self._clusters.source_watch.changed(group)
            # Noted before anything else can fail: a watch reports a difference once.
            self._dirty |= found
            self._rounds.found(len(found))
            differing |= found
            looked_at += sum(len(shard) for shard in group)
        self._dirty |= self._fresh
        # Compared now and in the next walk, too: the broker that was watched may be ahead of the one that is read.
        self._fresh = set() if self._compared is None else differing
        if not everything:
            self._rounds.changed(differing, now)
        upstream = {name: topic for topic, name in remote.items()}
        if everything:
            there = [[remote[topic] for topic in shard if remote[topic] in listed.target] for shard in shards]
            self._dirty |= {upstream[name] for name in self._clusters.target_watch.changed(there)}
            self._compared = now
        self._set_aside.keep(upstream.keys(), listed.target)
        retried = {upstream[name] for name in self._set_aside.due(now) if name in upstream}
        self._dirty = (self._dirty | retried | set(requested)) & remote.keys()
        return looked_at

    def _without_set_aside(self, seen: Survey, listed: Listed) -> Plan:
        now = self._clock()
        remote = listed.desired.remote
        self._set_aside.settled((remote[topic] for topic in seen.looked_at), seen.plan.changes)
        todo, waiting = self._set_aside.split(seen.plan.changes, now)
        return replace(seen.plan, changes=tuple(todo), refused=(*seen.plan.refused, *waiting))

    def _apply(self, plan: Plan, ledger: Ledger) -> tuple[Outcome, ...]:
        if not plan.changes:
            return ()
        plan.raise_if_unsafe(self.settings.limits)
        self._guard.check(ledger)
        # After our own write, going back to what the watch saw before would not look like a change.
        self._clusters.target_watch.forget({change.key[0] for change in plan.changes})
        outcomes: list[Outcome] = []
        try:
            for step in apply_steps(plan, self._clusters.target, self._writer):
                outcomes += step
        except LockstepError:
            self._remember(plan, outcomes, ledger)
            raise
        return tuple(outcomes)

    def _record(self, seen: Survey, plan: Plan, outcomes: Sequence[Outcome], ledger: Ledger) -> None:
        self._set_aside.learn(outcomes, self._clock())
        unsettled = {outcome.change.key[0] for outcome in outcomes if _to_compare_again(outcome)}
        upstream = {self._remote_name(topic): topic for topic in seen.looked_at}
        # What was not looked at, because its kind is paused, stays dirty: the watch will not report it again.
        self._dirty -= seen.looked_at
        self._dirty |= seen.again | {upstream[name] for name in unsettled if name in upstream}
        self._blind = {topic: blind for topic, blind in self._blind.items() if topic not in seen.looked_at}
        self._blind |= seen.blind
        self._remember(plan, outcomes, ledger)

    def _remember(self, plan: Plan, outcomes: Sequence[Outcome], ledger: Ledger) -> None:
        ledger.record(outcomes)
        self._audit.record(plan, outcomes)

    def _remote_name(self, topic: str) -> str:
        return self.settings.policy.format_remote_topic(self.settings.flow.source, topic)

    def _report(
        self,
        seen: Survey,
        outcomes: tuple[Outcome, ...],
        everything: bool,
        looked_at: int,
        listed: Listed,
        watch: _Stopwatch,
    ) -> Report:
        waiting = self._set_aside.waiting(self._clock())
        errors = tuple(blind for topic, blind in self._blind.items() if topic in listed.desired.remote)
        plan = replace(seen.plan, refused=tuple(dict.fromkeys((*seen.plan.refused, *waiting))), errors=errors)
        return Report(plan, outcomes, everything, looked_at, self._not_there(listed), watch.laps)

    def _not_there(self, listed: Listed) -> tuple[str, ...]:
        flow, internal = self.settings.flow, self.settings.internal
        topics = {flow.source: listed.source, flow.target: listed.target}
        places = (
            (self.settings.policy.format_remote_topic(flow.source, internal.heartbeats), flow.target),
            (internal.checkpoints, flow.target),
            (internal.offset_syncs, internal.offset_syncs_cluster),
        )
        return tuple(f"{topic} on {alias}" for topic, alias in places if topic not in topics[alias])

    def close(self) -> None:
        """Lets go of every client."""
        for part in (
            self._clusters.source_pulse,
            self._clusters.source_watch,
            self._clusters.target_watch,
            self._clusters.source,
            self._clusters.target,
        ):
            part.close()


def _to_compare_again(outcome: Outcome) -> bool:
    """What passes by itself, and topics just created: without a refused config, or by another hand with others."""
    if outcome.error is not None:
        return outcome.error.retriable
    return (outcome.change.kind, outcome.change.op) == (Kind.TOPIC, Op.CREATE)


class _Stopwatch:
    """Seconds of each phase of a walk."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, phase: str) -> None:
        now = time.perf_counter()
        self.laps[phase] = now - self._last
        self._last = now
