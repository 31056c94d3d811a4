"""The status of a flow for `lockstep status`, the metrics and the page: one value, replaced after every pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from typing import Any

from sinks.engine.verify_status import STALLED, Comparing, VerifyStatus
from sinks.every_kind.comparison import GroupSummary
from sinks.failover.preflight import FailoverStatus
from sinks.failover.readiness import Readiness, readiness
from sinks.failover.readiness_facts import InStep, JobFacts, ReadinessFacts
from sinks.flow_settings import Copier, FailoverRules
from sinks.ledger.lease import Leader
from sinks.model.changes import Kind
from sinks.model.effective_drift import DriftGroup, effective_as_json
from sinks.model.plan import Refusal
from sinks.model.times import utc_text
from streaming.errors import LockstepError
from streaming.flow import Flow


class FlowState(str, Enum):
    """State of a flow."""

    LIVE = "LIVE"
    """Heartbeats of MM2 arrive."""
    STALE = "STALE"
    """The newest heartbeat is older than `lockstep.heartbeat.timeout`."""
    NO_HEARTBEAT = "NO_HEARTBEAT"
    """No heartbeat was ever seen."""
    NO_JOB = "NO_JOB"
    """No job answers, so no process keeps the target in step."""
    ENDED = "ENDED"
    """The target has taken over, and Lockstep writes nothing for the flow."""
    ERROR = "ERROR"
    """An error stopped the flow; see the reason."""


STATES_IN_A_JOB = tuple(state for state in FlowState if state is not FlowState.NO_JOB)
"""The states that a job can report of its own flows."""


class Task(str, Enum):
    """What Lockstep does for one kind of one flow.

    ACTIVE: keeps it in step, and knows the differences. HELD: some changes wait until a person confirms them; the
    others go on. UNKNOWN: does not know the differences, or the flow is in ERROR, STALE or NO_JOB. STANDBY: another
    process leads the flow and keeps it in step.
    """

    ACTIVE = "ACTIVE"
    PAUSED = "PAUSED"
    HELD = "HELD"
    DISABLED = "DISABLED"
    NOT_SUPPORTED = "NOT_SUPPORTED"
    FAULTED = "FAULTED"
    UNKNOWN = "UNKNOWN"
    STANDBY = "STANDBY"


@dataclass(frozen=True, slots=True)
class KindStatus:
    """Status of one kind."""

    task: Task
    reason: str | None = None
    drift: int | None = None
    """Number of remaining differences; None while unknown."""
    last_success: datetime | None = None
    """When a pass last left the kind in step."""
    refused: tuple[Refusal, ...] = ()
    since: datetime | None = None
    """Since when the task is UNKNOWN."""
    remedy: str = ""
    """What to do; "" if the reason says it."""

    @property
    def is_uncompared(self) -> bool:
        """Whether a pass tried to compare the kind and could not."""
        return self.task in (Task.ACTIVE, Task.HELD, Task.FAULTED, Task.UNKNOWN) and self.drift is None

    def as_json(self) -> dict[str, Any]:
        """Returns one entry of `kinds`."""
        return {
            "task": self.task.value,
            "reason": self.reason,
            "drift": self.drift,
            "last_success": utc_text(self.last_success) if self.last_success else None,
            "refused": [refusal.as_json() for refusal in self.refused],
            "since": utc_text(self.since) if self.since else None,
        }


def flow_state(error: str | None, heartbeat_age: float | None, timeout: float, *, ended: bool = False) -> FlowState:
    """Returns the state. An error counts first, then a takeover, then the age of the newest heartbeat in seconds."""
    if error is not None:
        return FlowState.ERROR
    if ended:
        return FlowState.ENDED
    if heartbeat_age is None:
        return FlowState.NO_HEARTBEAT
    return FlowState.STALE if heartbeat_age > timeout else FlowState.LIVE


CATCHES_NOT_UP = "the copies do not have all records that the source had: is the copier running?"


def silence(state: FlowState, heartbeat_age: float | None, copier: Copier = Copier.MM2) -> str | None:
    """Returns why a flow is STALE or NO_HEARTBEAT; None in any other state."""
    if copier is not Copier.MM2:
        return CATCHES_NOT_UP if state in (FlowState.NO_HEARTBEAT, FlowState.STALE) else None
    if state is FlowState.NO_HEARTBEAT:
        return "no heartbeat of this flow was seen yet: is MM2 running, and does it emit heartbeats?"
    if state is not FlowState.STALE or heartbeat_age is None:
        return None
    return f"no heartbeat for {heartbeat_age:.0f} s: is MM2 running?"


def as_far_as_known(
    kinds: Mapping[Kind, KindStatus], state: FlowState, since: datetime | None
) -> dict[Kind, KindStatus]:
    """Returns what is known of the kinds of a flow in this state. `since`: when the state began.

    In ERROR no process compares them. In STALE the job compares them, but without MM2 the target falls behind. In
    NO_JOB a command compared them once, and no process keeps them in step.
    """
    if state not in (FlowState.ERROR, FlowState.STALE, FlowState.NO_JOB):
        return dict(kinds)
    return {kind: _unknown(status, state, since) for kind, status in kinds.items()}


def _unknown(status: KindStatus, state: FlowState, since: datetime | None) -> KindStatus:
    if status.task not in (Task.ACTIVE, Task.UNKNOWN):
        return status
    return replace(
        status,
        task=Task.UNKNOWN,
        since=since,
        drift=None if state is FlowState.ERROR else status.drift,
        reason=None if state is FlowState.ERROR and status.task is Task.UNKNOWN else status.reason,
        last_success=None if state is FlowState.NO_JOB else status.last_success,
    )


def standing_by(status: KindStatus) -> KindStatus:
    """Returns the status of a kind while another process leads the flow. This process does not compare it."""
    if status.task is Task.DISABLED:
        return status
    return KindStatus(Task.STANDBY, "another process leads the flow", drift=None, last_success=status.last_success)


@dataclass(frozen=True, slots=True)
class Failing:
    """Code and remedy of the error that stopped a flow."""

    code: str
    remedy: str | None

    @classmethod
    def of(cls, error: Exception) -> Failing:
        if isinstance(error, LockstepError):
            return cls(error.code, error.remedy)
        return cls("DEFECT", "please report it, with the job's log")

    def as_json(self, reason: str | None) -> dict[str, Any]:
        """Returns `error` of a flow in JSON documents."""
        return {"code": self.code, "message": reason, "remedy": self.remedy}


@dataclass(frozen=True, slots=True)
class FlowStatus:
    """Status of one flow."""

    flow: Flow
    state: FlowState
    heartbeat_age_seconds: float | None = None
    replication_latency_ms: int | None = None
    reason: str | None = None
    kinds: Mapping[Kind, KindStatus] = field(default_factory=dict)
    effective: tuple[DriftGroup, ...] | None = None
    """Configs that differ in effect, the most frequent first; None while unknown. No kind counts them, because no
    change is pending for them."""
    leader: Leader | None = None
    """The process that leads; None if no process does, or if that is unknown."""
    failure: Failing | None = None
    """Code and remedy of the error in ERROR."""
    failover: FailoverStatus = field(default_factory=FailoverStatus)
    """State and cost of the failover."""
    verify: VerifyStatus | None = None
    """Status of the record comparison; None if the job makes none."""
    heartbeat_copied: bool = True
    """MM2 copied the newest heartbeat from the source."""
    compared: bool = False
    """A pass ended without an error under these settings."""
    groups: GroupSummary | None = None
    """Groups as the last such pass found them."""
    rules: FailoverRules = field(default_factory=FailoverRules)
    """Taken from the settings, as are `heartbeat_timeout` (seconds) and `copier`."""
    heartbeat_timeout: float = 30.0
    copier: Copier = Copier.MM2

    def readiness(self, now: datetime | None = None) -> Readiness:
        """Returns whether the target could take over, from the job's passes and its last preflight."""
        return readiness(facts_of(self), now)

    def as_json(self) -> dict[str, Any]:
        """Returns one flow of `lockstep status`."""
        age = self.heartbeat_age_seconds
        return {
            "source": self.flow.source,
            "target": self.flow.target,
            "state": self.state.value,
            "heartbeat_age_seconds": round(age, 1) if age is not None else None,
            "heartbeat_copied": None if age is None else self.heartbeat_copied,
            "replication_latency_ms": self.replication_latency_ms,
            "reason": self.reason,
            "error": self.failure.as_json(self.reason) if self.failure and self.state is FlowState.ERROR else None,
            "leader": self.leader.as_json() if self.leader else None,
            "failover": self.failover.as_json(self.readiness()),
            "kinds": {kind.value: status.as_json() for kind, status in self.kinds.items()},
            "effective": effective_as_json(self.effective),
            "verify": self.verify.as_json() if self.verify else None,
        }


STOPPED = (FlowState.ERROR, FlowState.NO_JOB, FlowState.ENDED)
"""States in which no process keeps the target in step."""

TASKS_LEFT_OUT = (Task.DISABLED, Task.NOT_SUPPORTED)
"""Tasks of kinds that the properties file does not enable or that a cluster does not support."""


def facts_of(status: FlowStatus) -> ReadinessFacts:
    """Returns what a running job knows: from its passes now, and from its last preflight."""
    made, failover = status.failover.preflight, status.failover
    seen = (made.facts if made else None) or ReadinessFacts(status.rules)
    return replace(
        seen,
        rules=status.rules,
        source=status.flow.source,
        target=status.flow.target,
        record=failover.record,
        record_unknown=failover.unknown,
        job=_job_facts(status),
        heartbeat_age=status.heartbeat_age_seconds,
        heartbeat_copied=status.heartbeat_copied,
        heartbeat_timeout=status.heartbeat_timeout,
        copier=status.copier,
        loss=made.loss if made else None,
        seen_at=made.at if made else None,
        in_step=in_step_of_status(status),
        lost=failover.lost,
    )


def _job_facts(status: FlowStatus) -> JobFacts:
    stopped = status.state in STOPPED
    silent = silence(status.state, status.heartbeat_age_seconds, status.copier)
    stands_by = any(kind.task is Task.STANDBY for kind in status.kinds.values())
    another = (status.reason or "another process leads the flow") if stands_by and not stopped else None
    last = [one.last_success for one in status.kinds.values() if one.last_success is not None]
    made, records = status.failover.preflight, status.verify
    found = dict(records.by_kind) if records else {}
    return JobFacts(
        another=another,
        compared=status.compared,
        stopped=(status.reason or f"the flow is {status.state.value}") if stopped else None,
        stopped_remedy=(status.failure.remedy if status.failure else None) or "",
        in_step_at=min(last) if last and status.state is FlowState.ERROR else None,
        note=status.reason if not stopped and not another and status.reason != silent else None,
        not_checked=status.failover.not_checked,
        trouble=made.trouble if made else None,
        stalled=found.pop(STALLED, 0),
        differences=found,
        uncompared=records.reason if records and records.state is Comparing.FAULTED else None,
        effective=sum(group.configs for group in status.effective or ()),
    )


def in_step_of_status(status: FlowStatus) -> InStep:
    """Returns whether the target is in step by the job's comparisons. Does not repeat for each kind a reason that
    stopped the whole flow."""
    kinds = {kind: one for kind, one in status.kinds.items() if one.task not in TASKS_LEFT_OUT}
    said = status.reason if status.state in STOPPED else None
    faulted = {kind: fault for kind, one in kinds.items() if (fault := _fault(one)) and fault != said}
    # Content moves on all the time: of it only what is refused is a difference, as for a command.
    drift = {kind: len(one.refused) if kind.row.content else one.drift or 0 for kind, one in kinds.items()}
    refused = {kind: len(one.refused) for kind, one in kinds.items() if one.refused}
    remedies = {kind: one.remedy for kind, one in kinds.items() if one.remedy}
    groups = status.groups or GroupSummary({}, {})
    if groups.unread is not None:
        faulted = {kind: groups.unread for kind in kinds if kind.row.content} | faulted
    reasons = {kind: one.reason for kind, one in kinds.items() if one.reason}
    return InStep(drift, refused, faulted, reasons, remedies, groups.verdicts, max(groups.bounds.values(), default=0))


def _fault(kind: KindStatus) -> str | None:
    """Returns why the drift of a kind is unknown or stays."""
    if kind.task is Task.UNKNOWN and not kind.reason:
        return None
    if kind.task is not Task.ACTIVE:
        return kind.reason or kind.task.value.lower()
    return kind.reason or "not compared yet" if kind.is_uncompared else None
