"""What `status`, the metrics and the page say of a flow: one value, replaced after every batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any

from sinks.engine.effective_drift import DriftGroup, effective_as_json
from sinks.engine.model import Kind
from sinks.engine.plan import Refusal
from streaming.flow import Flow


class FlowState(str, Enum):
    """LIVE: heartbeats arrive. STALE: the newest is older than `lockstep.heartbeat.timeout`. ERROR: see the reason."""

    LIVE = "LIVE"
    STALE = "STALE"
    NO_HEARTBEAT = "NO_HEARTBEAT"
    ERROR = "ERROR"


class Task(str, Enum):
    """What becomes of one kind in one flow."""

    ACTIVE = "ACTIVE"
    PAUSED = "PAUSED"
    DISABLED = "DISABLED"
    NOT_SUPPORTED = "NOT_SUPPORTED"
    FAULTED = "FAULTED"


@dataclass(frozen=True, slots=True)
class KindStatus:
    """`drift`: differences known and not mended. `last_success`: when a batch last left this kind as it should be."""

    task: Task
    reason: str | None = None
    drift: int = 0
    last_success: datetime | None = None
    refused: tuple[Refusal, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """One entry of `kinds`."""
        return {
            "task": self.task.value,
            "reason": self.reason,
            "drift": self.drift,
            "last_success": self.last_success.strftime("%Y-%m-%dT%H:%M:%SZ") if self.last_success else None,
            "refused": [refusal.as_json() for refusal in self.refused],
        }


@dataclass(frozen=True, slots=True)
class Heartbeats:
    """The newest heartbeat of a flow: when it was emitted (ms), and how long it took to the target, if it crossed."""

    timestamp_ms: int
    latency_ms: int | None = None


def flow_state(error: str | None, heartbeat_age: float | None, timeout: float) -> FlowState:
    """The table: an error first, then the age of the newest heartbeat in seconds."""
    if error is not None:
        return FlowState.ERROR
    if heartbeat_age is None:
        return FlowState.NO_HEARTBEAT
    return FlowState.LIVE if heartbeat_age <= timeout else FlowState.STALE


@dataclass(frozen=True, slots=True)
class FlowStatus:
    """Ages in seconds, latency in milliseconds. `effective`: configs that differ in effect, the most frequent first;
    nothing is pending for them, so they count for no kind."""

    flow: Flow
    state: FlowState
    heartbeat_age_seconds: float | None = None
    replication_latency_ms: int | None = None
    reason: str | None = None
    kinds: Mapping[Kind, KindStatus] = field(default_factory=dict)
    effective: tuple[DriftGroup, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """One flow of `status`."""
        age = self.heartbeat_age_seconds
        return {
            "source": self.flow.source,
            "target": self.flow.target,
            "state": self.state.value,
            "heartbeat_age_seconds": round(age, 1) if age is not None else None,
            "replication_latency_ms": self.replication_latency_ms,
            "reason": self.reason,
            "kinds": {kind.value: status.as_json() for kind, status in self.kinds.items()},
            "effective": effective_as_json(self.effective),
        }
