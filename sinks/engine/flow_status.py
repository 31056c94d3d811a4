"""Keeps what is known of a flow between two passes, for status, metrics and the page. Any thread may read it."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime, timedelta, timezone

from sinks.engine.report import Report
from sinks.engine.status import (
    Failing,
    FlowState,
    FlowStatus,
    KindStatus,
    Task,
    as_far_as_known,
    flow_state,
    silence,
    standing_by,
)
from sinks.every_kind.comparison import GroupSummary
from sinks.failover.preflight import NEVER_READ, FailoverStatus
from sinks.faults import ClusterUnreachable
from sinks.flow_settings import FlowSettings
from sinks.ledger.lease import Leader
from sinks.model.changes import Kind, Outcome
from sinks.model.plan import Refusal
from sinks.model.registry import FlowSide
from sinks.model.times import utc_now
from streaming.hints import NewestHeartbeat, age_seconds, replaces
from streaming.message_words import number_of


def age_of(newest: NewestHeartbeat | None) -> float | None:
    """Returns the seconds since the heartbeat was emitted. None without a heartbeat, and for one from the future."""
    return age_seconds(newest.timestamp_ms, round(time.time() * 1000)) if newest else None


def state_of(
    error: str | None, newest: NewestHeartbeat | None, settings: FlowSettings, failover: FailoverStatus = NEVER_READ
) -> FlowState:
    """Returns the state of a flow with this newest heartbeat, by this machine's clock."""
    ended = failover.unknown is None and failover.record.has_taken_over
    return flow_state(error, age_of(newest), settings.pace.heartbeat_timeout, ended=ended)


class KnownStatus:
    """What is known of one flow between two passes."""

    def __init__(self, settings: FlowSettings) -> None:
        self._lock = threading.Lock()
        self._heartbeats: NewestHeartbeat | None = None
        self._query: str | None = None
        self.renew(settings)

    def renew(self, settings: FlowSettings) -> None:
        """Start again with other settings: what was known of each kind no longer holds."""
        with self._lock:
            self._settings = settings
            self._first = first_statuses(settings)
            self._kinds: Mapping[Kind, KindStatus] = self._first
            self._error: str | None = None
            self._failure: Failing | None = None
            self._failed_at: datetime | None = None
            self._standby: str | None = None
            self._report: Report | None = None
            self._failover = NEVER_READ
            self._groups: GroupSummary | None = None

    def heartbeat(self, heartbeats: NewestHeartbeat) -> None:
        """Keep a heartbeat if it is newer than the known one."""
        now_ms = round(time.time() * 1000)
        with self._lock:
            known = self._heartbeats
            if known is not None and known.copied is not heartbeats.copied:
                self._heartbeats = heartbeats if heartbeats.copied else known
            elif replaces(heartbeats.timestamp_ms, known.timestamp_ms if known else None, now_ms):
                self._heartbeats = heartbeats

    def query(self, trouble: str | None) -> None:
        """Note the state of the streaming query. `trouble`: why it does not run; None if it runs."""
        with self._lock:
            self._query = None if trouble is None else f"Spark cannot read MM2's topics: {trouble}"

    def failed(self, error: Exception, reason: str, now: datetime, failover: FailoverStatus) -> bool:
        """Note that a pass failed. Returns whether the reason is a new one. `failover`: its state when the ledger was
        last read."""
        with self._lock:
            self._failover = failover
            known, self._error, self._standby = self._error, reason, None
            self._failure = Failing.of(error)
            if known is None:
                self._failed_at = now
            return known != reason

    def stands_by(self, reason: str, failover: FailoverStatus) -> bool:
        """Note that another process leads the flow. Returns whether the reason is a new one."""
        with self._lock:
            self._failover = failover
            known, self._standby, self._error = self._standby, reason, None
            self._kinds = {kind: standing_by(status) for kind, status in self._kinds.items()}
            return known != reason

    @property
    def standby(self) -> str | None:
        """Returns which other process leads the flow; None if no other does."""
        with self._lock:
            return self._standby

    @property
    def error(self) -> str | None:
        with self._lock:
            return self._error

    def succeeded(self, report: Report, now: datetime) -> bool:
        """Note that a pass ended without an error. Returns whether the set of missing MM2 topics changed."""
        with self._lock:
            other = report.missing_topics != (self._report.missing_topics if self._report else ())
            self._error, self._standby = None, None
            self._report, self._failover = report, report.failover
            self._groups = report.groups or self._groups
            first = self._first
            self._kinds = {kind: kind_status(kind, it, report, now, first[kind]) for kind, it in self._kinds.items()}
            return other

    def status(self, leader: Leader | None = None) -> FlowStatus:
        """Returns the status now. `leader`: the process that leads. If it is this one, it knows whether the target
        still answers."""
        target = self._settings.flow.target
        silent = leader.silence_of(target) if leader else None
        with self._lock:
            error = self._error or silent
            beat = self._heartbeats
            age = age_of(beat)
            state = state_of(error, beat, self._settings, self._failover)
            emitted = datetime.fromtimestamp(beat.timestamp_ms / 1000, timezone.utc) if beat else None
            since = self._failed_at if self._error else emitted
            failure, failover = self._failure if self._error else None, self._failover
            if leader and silent and not self._error:
                failover = replace(failover, unknown=silent)
                since, failure = utc_now() - timedelta(seconds=leader.age or 0), Failing.of(ClusterUnreachable(silent))
            return FlowStatus(
                flow=self._settings.flow,
                state=state,
                heartbeat_age_seconds=age,
                heartbeat_copied=beat is None or beat.copied,
                replication_latency_ms=beat.latency_ms if beat else None,
                reason=error or self._standby or self._waits_for(state, age),
                kinds=as_far_as_known(self._kinds, state, since),
                effective=None if error or self._standby or self._report is None else self._report.effective,
                leader=leader,
                failure=failure,
                failover=failover,
                compared=self._report is not None,
                groups=self._groups,
                rules=self._settings.failover,
                heartbeat_timeout=self._settings.pace.heartbeat_timeout,
                copier=self._settings.copier,
            )

    def _waits_for(self, state: FlowState, age: float | None) -> str | None:
        """Returns why the target is not in step. None once the target has taken over."""
        if state is FlowState.ENDED:
            return None
        if self._query:
            return self._query
        found = list(self._report.warnings) if self._report else []
        if self._report and self._report.missing_topics:
            found.append(f"MM2 has not made these topics yet: {', '.join(self._report.missing_topics)}")
        return "; ".join(found) or silence(state, age, self._settings.copier)


# How one kind stands after a pass, the same for a running job and for a command that only reads. Pure.


NOT_COMPARED = "not compared yet"


def first_statuses(settings: FlowSettings) -> dict[Kind, KindStatus]:
    return {kind: first_status(kind, settings) for kind in Kind}


def first_status(kind: Kind, settings: FlowSettings) -> KindStatus:
    if settings.enabled.get(kind, False):
        return KindStatus(Task.UNKNOWN, NOT_COMPARED)
    return KindStatus(Task.DISABLED, settings.disabled_reasons.get(kind, "not enabled"))


def kind_status(
    kind: Kind, before: KindStatus, report: Report, now: datetime, first: KindStatus | None = None
) -> KindStatus:
    """Returns the status of a kind after a pass. `before`: its status after the previous pass. `first`: its status
    before any pass; None: `before`.

    Drift counts changes that were not tried, that failed, and that were refused. It is unknown (None) for a kind that
    is paused or could not be compared. Lockstep may still delete items of a disabled kind. While such a deletion is
    held or fails, the kind is not DISABLED.
    """
    first = first or before
    if first.task is Task.DISABLED and not report.trouble.stops(kind):
        return first
    if kind in report.trouble.unsupported:
        return KindStatus(Task.NOT_SUPPORTED, report.trouble.unsupported[kind])
    if kind in report.paused:
        resume = "" if report.ended else f"run `lockstep resume {kind}` once the reason for the pause is gone"
        why = report.ended or f"paused, so the differences are not known. `lockstep resume {kind}` starts it again"
        return replace(before, task=Task.PAUSED, reason=why, drift=None, since=None, remedy=resume)
    if kind in report.idle and kind not in report.trouble.faulted:
        # It waits for its interval: nothing new is known of it.
        if before.task is not Task.PAUSED:
            return before
        return replace(before, task=Task.UNKNOWN, reason=NOT_COMPARED, drift=None, since=now, remedy="")
    refused = tuple(refusal for refusal in report.plan.refused if refusal.kind is kind)
    failed = [outcome for outcome in report.outcomes if outcome.change.kind is kind and outcome.error]
    tried = {outcome.change for outcome in report.outcomes}
    pending = {change.key for change in report.plan.changes if change.kind is kind and change not in tried}
    drifting = pending | {refusal.key for refusal in refused} | {outcome.change.key for outcome in failed}
    unobserved = [error.reason for error in report.plan.errors if error.kind is kind]
    fault = report.trouble.faulted.get(kind) or _denied(kind, failed, refused)
    held = report.trouble.held.get(kind)
    reason = fault or held or next(iter(unobserved), None) or (refused[0].reason if refused else None)
    drift = len(drifting) if drifting or not (unobserved or kind in report.trouble.faulted) else None
    task = Task.FAULTED if fault else Task.HELD if held else Task.UNKNOWN if drift is None else Task.ACTIVE
    return KindStatus(
        task=task,
        reason=reason,
        drift=drift,
        since=_since(before, now) if task is Task.UNKNOWN else None,
        last_success=before.last_success if drifting or unobserved or fault else now,
        refused=refused,
        remedy=_remedy(kind, report, failed, refused),
    )


def _remedy(kind: Kind, report: Report, failed: Collection[Outcome], refused: Collection[Refusal]) -> str:
    faults = [outcome.error.remedy for outcome in failed if outcome.error]
    known = [report.trouble.remedies.get(kind), *faults, *(refusal.remedy for refusal in refused)]
    return next(filter(None, known), "")


def _since(before: KindStatus, now: datetime) -> datetime | None:
    return before.since if before.task is Task.UNKNOWN else now


def _denied(kind: Kind, failed: Collection[Outcome], refused: Collection[Refusal]) -> str | None:
    """Returns a reason if every failure of the kind is a missing right; None otherwise. Then the kind as a whole is
    FAULTED. Changes that back off count until they are tried again."""
    faults = [outcome.error for outcome in failed if outcome.error]
    waiting = [refusal.reason for refusal in refused if refusal.denied]
    denials = [*map(str, faults), *waiting]
    if not denials or not all(fault.is_denied for fault in faults):
        return None
    rights = [right for right in kind.row.rights if right.side is FlowSide.TARGET and right.also is None]
    operations = ", ".join(dict.fromkeys(name for right in rights for name in right.operations))
    return (
        f"no right to write {number_of(len(denials), 'change')} of the kind {kind} ({denials[0]}); grant {operations}"
    )
