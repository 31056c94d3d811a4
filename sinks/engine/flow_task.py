"""A flow in a running job: walks when told, remembers how it stands, takes requests for a look from other threads.

One flow's trouble is its own: what `walk` raises ends up in its status, and the other flows go on.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime

from sinks.engine.audit import SettingChange
from sinks.engine.effective_drift import DriftGroup
from sinks.engine.ledger import utc_now
from sinks.engine.metrics import Metrics
from sinks.engine.model import Kind, Outcome
from sinks.engine.reconcile import FlowReconcile, Report
from sinks.engine.status import FlowStatus, Heartbeats, KindStatus, Task, flow_state
from sinks.faults import ClusterUnreachable, IncrementalUnsupported, ItemFault
from streaming.errors import LockstepError
from streaming.hints import CheckpointSeen, SyncSeen

log = logging.getLogger(__name__)

LONGEST_WAIT = 30.0
"""Seconds between tries of a cluster that does not answer, in the end."""

DENIED = frozenset({"TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED"})

Hear = Callable[[Collection[SyncSeen], Collection[CheckpointSeen]], None]
"""Takes in the offset-syncs and checkpoints of a batch; called from the batch's thread."""

Build = Callable[[], tuple[FlowReconcile, Hear]]
"""Makes what a flow is made of."""


class FlowTask:
    """`step` belongs to the batch's thread; `status` and `look` may be called from any."""

    def __init__(
        self,
        reconcile: FlowReconcile,
        hear: Hear,
        metrics: Metrics,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.flow = reconcile.settings.flow
        self._reconcile, self._metrics, self._hear, self._clock = reconcile, metrics, hear, clock
        self._walked = threading.Condition()
        self._build: Build | None = None
        self._calls: list[Callable[[], None]] = []
        self._changes: list[SettingChange] = []
        self._walks_begun = self._walks_done = 0
        self._requested: set[str] = set()
        self._requested_all = False
        self._heartbeats: Heartbeats | None = None
        self._kinds = {kind: self._first(kind) for kind in Kind}
        self._error: str | None = None
        self._not_there: tuple[str, ...] = ()
        self._effective: tuple[DriftGroup, ...] = ()
        self._failures = 0
        self._not_before = 0.0

    def _first(self, kind: Kind) -> KindStatus:
        enabled = self._reconcile.settings.enabled.get(kind, False)
        return KindStatus(Task.ACTIVE if enabled else Task.DISABLED, None if enabled else "not enabled")

    def renew(self, build: Build, changes: Sequence[SettingChange]) -> None:
        """The next walk begins by closing what the flow is made of and building it anew, and audits the changes."""
        with self._walked:
            self._build = build
            self._changes += changes

    def tell(self, call: Callable[[], None], changes: Sequence[SettingChange]) -> None:
        """The next walk begins with this call, audits the changes, and looks at everything."""
        with self._walked:
            self._calls.append(call)
            self._changes += changes
            self._requested_all = True

    def _renewed(self) -> None:
        with self._walked:
            build, calls, self._calls = self._build, self._calls, []
        if build is not None:
            before, (self._reconcile, self._hear) = self._reconcile, build()
            with self._walked:
                # Kept until it succeeded, and where another one came meanwhile.
                self._build = None if self._build is build else self._build
            before.close()
            self._kinds = {kind: self._first(kind) for kind in Kind}
            self._effective = ()
            self._not_before = 0.0
        for call in calls:
            call()
        if self._changes:
            self._reconcile.note_settings(self._changes)
            self._changes.clear()

    def hear(self, syncs: Collection[SyncSeen], checkpoints: Collection[CheckpointSeen]) -> None:
        """What MM2 told of offsets in a batch; the next walk takes it in."""
        self._hear(syncs, checkpoints)

    def step(self, heartbeats: Heartbeats | None, *, everything: bool = False) -> FlowStatus:
        """One micro-batch of this flow. Never raises what concerns the flow alone: its status says it."""
        if heartbeats is not None and (
            self._heartbeats is None or heartbeats.timestamp_ms >= self._heartbeats.timestamp_ms
        ):
            self._heartbeats = heartbeats
        if self._clock() >= self._not_before or self._asked() or self._build is not None:
            self._walk(everything)
        status = self.status()
        self._metrics.status(status)
        return status

    def _asked(self) -> bool:
        with self._walked:
            return bool(self._requested) or self._requested_all

    def _walk(self, everything: bool) -> None:
        with self._walked:
            requested, self._requested = self._requested, set()
            everything, self._requested_all = everything or self._requested_all, False
            self._walks_begun += 1
            number = self._walks_begun
        try:
            self._renewed()
            report = self._reconcile.walk(requested, everything)
        except LockstepError as error:
            self._failed(error)
        else:
            self._succeeded(report)
        finally:
            with self._walked:
                self._walks_done = number
                self._walked.notify_all()

    def _failed(self, error: LockstepError) -> None:
        passing = isinstance(error, ClusterUnreachable)
        self._failures += 1
        interval = self._reconcile.settings.pace.full_comparison_interval
        wait = min(2.0 ** min(self._failures - 1, 10), LONGEST_WAIT) if passing else interval
        self._not_before = self._clock() + wait
        if str(error) != self._error:
            log.error("%s: %s (tried again in %.0f s)", self.flow.name, error, wait)
        self._error = str(error)
        blamed = [Kind.TOPIC_CONFIG] if isinstance(error, IncrementalUnsupported) else list(Kind)
        if not passing:
            for kind in blamed:
                if self._kinds[kind].task is not Task.DISABLED:
                    self._kinds[kind] = replace(self._kinds[kind], task=Task.FAULTED, reason=str(error))

    def _succeeded(self, report: Report) -> None:
        if self._error is not None:
            log.info("%s: goes on again", self.flow.name)
        self._error, self._failures, self._not_before = None, 0, 0.0
        self._metrics.report(report)
        self._effective = report.effective
        if report.not_there != self._not_there:
            self._not_there = report.not_there
            log.info("%s: %s", self.flow.name, self._waits_for() or "all of MM2's internal topics are there")
        for outcome in report.outcomes:
            if outcome.error:
                log.warning("%s: %s %s: %s", self.flow.name, outcome.change.op, outcome.change.key, outcome.error)
        now = utc_now()
        for kind in Kind:
            self._kinds[kind] = self._of_kind(kind, report, now)

    def _of_kind(self, kind: Kind, report: Report, now: datetime) -> KindStatus:
        before = self._kinds[kind]
        if before.task is Task.DISABLED:
            return before
        if kind in report.unsupported:
            return KindStatus(Task.NOT_SUPPORTED, report.unsupported[kind])
        if kind in self._reconcile.paused:
            return replace(before, task=Task.PAUSED, reason="paused with `lockstep pause`")
        refused = tuple(refusal for refusal in report.plan.refused if refusal.kind is kind)
        failed = [outcome for outcome in report.outcomes if outcome.change.kind is kind and outcome.error]
        places = {refusal.key for refusal in refused} | {outcome.change.key for outcome in failed}
        blind = [error.reason for error in report.plan.errors if error.kind is kind]
        denied = _denied(failed)
        reason = denied or (blind[0] if blind else None) or (refused[0].reason if refused else None)
        return KindStatus(
            task=Task.FAULTED if denied else Task.ACTIVE,
            reason=reason,
            drift=len(places),
            last_success=before.last_success if places or blind else now,
            refused=refused,
        )

    def status(self) -> FlowStatus:
        """How the flow stands now."""
        age = max(0.0, time.time() - self._heartbeats.timestamp_ms / 1000) if self._heartbeats else None
        return FlowStatus(
            flow=self.flow,
            state=flow_state(self._error, age, self._reconcile.settings.pace.heartbeat_timeout),
            heartbeat_age_seconds=age,
            replication_latency_ms=self._heartbeats.latency_ms if self._heartbeats else None,
            reason=self._error or self._waits_for(),
            kinds=dict(self._kinds),
            effective=self._effective,
        )

    def _waits_for(self) -> str | None:
        return f"MM2 has not made these topics yet: {', '.join(self._not_there)}" if self._not_there else None

    def look(self, topics: Collection[str], wait: float) -> bool:
        """Asks the next walk to look at these upstream topics (none: at all); True once such a walk is done.

        `wait` in seconds; 0 only asks. False: no walk was done in that time, or the flow is in error.
        """
        with self._walked:
            self._requested.update(topics)
            self._requested_all |= not topics
            goal = self._walks_begun + 1
            done = self._walked.wait_for(lambda: self._walks_done >= goal, timeout=wait)
        return done and self._error is None

    def close(self) -> None:
        """Lets go of the flow's clients."""
        self._reconcile.close()


def _denied(failed: Collection[Outcome]) -> str | None:
    """The reason when every failure is a missing right: then it is no single topic's trouble."""
    faults: list[ItemFault] = [outcome.error for outcome in failed if outcome.error]
    codes = Counter(fault.code for fault in faults)
    if faults and codes.keys() <= DENIED:
        topics = len({outcome.change.key[0] for outcome in failed})
        return f"no right to write {topics} topics on the target ({faults[0]}); grant ALTER_CONFIGS, ALTER and CREATE"
    return None
