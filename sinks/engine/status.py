"""What `status`, the metrics and the page say of a flow: one value, replaced after every batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from enum import Enum
from typing import Any

from sinks.engine.verify_status import VerifyStatus
from sinks.failover.preflight import FailoverStatus
from sinks.flow_settings import Copier
from sinks.ledger.leadership import Leader
from sinks.model.changes import Kind
from sinks.model.effective_drift import DriftGroup, effective_as_json
from sinks.model.plan import Refusal
from sinks.model.times import utc_text
from streaming.errors import LockstepError
from streaming.flow import Flow


class FlowState(str, Enum):
    """LIVE: heartbeats of MM2 arrive. STALE: the newest is older than `lockstep.heartbeat.timeout`. NO_HEARTBEAT: none
    was ever seen. NO_JOB: no job answers, so nothing keeps the target in step. ENDED: the target has taken over, and
    Lockstep writes nothing for the flow. ERROR: see the reason."""

    LIVE = "LIVE"
    STALE = "STALE"
    NO_HEARTBEAT = "NO_HEARTBEAT"
    NO_JOB = "NO_JOB"
    ENDED = "ENDED"
    ERROR = "ERROR"


STATES_IN_A_JOB = tuple(state for state in FlowState if state is not FlowState.NO_JOB)
"""What a job can say of its own flows."""


class Task(str, Enum):
    """What becomes of one kind in one flow. ACTIVE: it is kept in step, and what differs is known. HELD: something of
    it waits until a person confirms it, the rest is kept in step. UNKNOWN: Lockstep did not find out what differs, or
    the flow is in ERROR, STALE or NO_JOB. STANDBY: another process leads the flow, and keeps it in step."""

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
    """`drift`: differences known and not mended; None while they are not known. `last_success`: when a batch last left
    this kind as it should be. `since`: from when on the task is UNKNOWN."""

    task: Task
    reason: str | None = None
    drift: int | None = None
    last_success: datetime | None = None
    refused: tuple[Refusal, ...] = ()
    since: datetime | None = None

    @property
    def is_uncompared(self) -> bool:
        """Whether a pass wanted to compare it, and could not."""
        return self.task in (Task.ACTIVE, Task.HELD, Task.FAULTED, Task.UNKNOWN) and self.drift is None

    def as_json(self) -> dict[str, Any]:
        """One entry of `kinds`."""
        return {
            "task": self.task.value,
            "reason": self.reason,
            "drift": self.drift,
            "last_success": utc_text(self.last_success) if self.last_success else None,
            "refused": [refusal.as_json() for refusal in self.refused],
            "since": utc_text(self.since) if self.since else None,
        }


@dataclass(frozen=True, slots=True)
class Heartbeats:
    """The newest heartbeat of a flow: when it was emitted (ms), and how long it took to the target.

    `copied`: whether MM2 copied it from the source. One that MM2 emits on the target itself shows that MM2 runs there;
    it does not show that records arrive.
    """

    timestamp_ms: int
    latency_ms: int | None = None
    copied: bool = True


def at(heartbeats: Heartbeats | None) -> datetime | None:
    """When the newest heartbeat was emitted."""
    return datetime.fromtimestamp(heartbeats.timestamp_ms / 1000, timezone.utc) if heartbeats else None


def flow_state(error: str | None, heartbeat_age: float | None, timeout: float, *, ended: bool = False) -> FlowState:
    """The table: an error first, then whether the target has taken over, then the age of the newest heartbeat in
    seconds."""
    if error is not None:
        return FlowState.ERROR
    if ended:
        return FlowState.ENDED
    if heartbeat_age is None:
        return FlowState.NO_HEARTBEAT
    return FlowState.STALE if heartbeat_age > timeout else FlowState.LIVE


CATCHES_NOT_UP = "the copies have not reached the ends that the source had: is the copier running?"


def silence(state: FlowState, heartbeat_age: float | None, copier: Copier = Copier.MM2) -> str | None:
    """Why a flow is STALE or NO_HEARTBEAT; None in any other state."""
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
    """What may be said of the kinds of a flow in this state, which is so `since`.

    In ERROR no process compares them. In STALE they are compared, but without MM2 the target falls behind all the same.
    In NO_JOB a command compared them once, and no process keeps them in step.
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
    """What may be said of a kind while another process leads the flow: this one does not compare it."""
    if status.task is Task.DISABLED:
        return status
    return KindStatus(Task.STANDBY, "another process leads the flow", drift=None, last_success=status.last_success)


@dataclass(frozen=True, slots=True)
class Failing:
    """What stopped a flow, by the code and the remedy of its error."""

    code: str
    remedy: str | None

    @classmethod
    def of(cls, error: Exception) -> Failing:
        """Whatever was raised."""
        if isinstance(error, LockstepError):
            return cls(error.code, error.remedy)
        return cls("DEFECT", "please report it, with what the job's log says")

    def as_json(self, reason: str | None) -> dict[str, Any]:
        """`error` of a flow, as the documents of commands have it."""
        return {"code": self.code, "message": reason, "remedy": self.remedy}


@dataclass(frozen=True, slots=True)
class FlowStatus:
    """Ages in seconds, latency in milliseconds. `effective`: configs that differ in effect, the most frequent first,
    None while that is not known; nothing is pending for them, so they count for no kind. `leader`: who leads the flow;
    None where nobody does, or nobody knows. `failure`: what the reason of ERROR is to programs. `failover`: how far one
    is, and what it would cost. `verify`: how its records stand, None where the job does not compare them.
    `heartbeat_copied`: whether MM2 copied the newest heartbeat from the source. One that it emits on the target itself
    shows that it runs, and not that records arrive."""

    flow: Flow
    state: FlowState
    heartbeat_age_seconds: float | None = None
    replication_latency_ms: int | None = None
    reason: str | None = None
    kinds: Mapping[Kind, KindStatus] = field(default_factory=dict)
    effective: tuple[DriftGroup, ...] | None = None
    leader: Leader | None = None
    failure: Failing | None = None
    failover: FailoverStatus = field(default_factory=FailoverStatus)
    verify: VerifyStatus | None = None
    heartbeat_copied: bool = True

    def as_json(self) -> dict[str, Any]:
        """One flow of `status`."""
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
            "failover": self.failover.as_json(),
            "kinds": {kind.value: status.as_json() for kind, status in self.kinds.items()},
            "effective": effective_as_json(self.effective),
            "verify": self.verify.as_json() if self.verify else None,
        }
