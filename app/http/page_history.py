"""Keeps a flow's recent changes, with both sides, and samples of the last hour, for the page.

All of it is bounded and in memory: the audit topic and Prometheus have the rest. No change holds a secret: a credential
shows iterations and version, and plans never contain sensitive configs.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sinks.engine.flow_task import FlowTask
from sinks.engine.report import Report
from sinks.engine.status import FlowStatus
from sinks.ledger.audit import is_event
from sinks.model.changes import Outcome, value_as_json
from sinks.model.times import NEVER_AT, utc_now, utc_text
from streaming.flow import Flow

INTERVAL = 10.0
"""Seconds between two samples."""

SAMPLES = 360
"""Number of samples to keep: one hour."""

CHANGES = 500
"""Changes that each flow keeps."""

LONGEST = 2000
"""Length limit, in characters, of each side of a change."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One point of the charts. Seconds are None if there was no value.

    `passes`: how many passes ended since the sample before. `slowest_pass_seconds`: duration of the longest of them.
    """

    at: datetime
    heartbeat_age_seconds: float | None
    latency_seconds: float | None
    passes: int
    slowest_pass_seconds: float | None

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"at": utc_text(self.at)}


class FlowHistory:
    """The recent changes and samples of one flow. An `Observer` of its passes. Any thread may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._changes: deque[dict[str, Any]] = deque(maxlen=CHANGES)
        self._samples: deque[Sample] = deque(maxlen=SAMPLES)
        self._remote: Mapping[str, str] = {}
        self._seconds: list[float] = []
        self._passes = 0

    def passed(self, report: Report) -> None:
        now = utc_now()
        # A first pass has tens of thousands: only the newest are kept.
        newest = [outcome for outcome in report.outcomes if is_event(outcome)][-CHANGES:]
        made = [_change(outcome, now) for outcome in newest]
        with self._lock:
            self._changes.extend(made)
            if report.listed is not None:
                self._remote = report.listed.desired.remote
            self._seconds.append(sum(report.seconds.values()))
            self._passes += 1

    def due_at(self, now: float) -> float:
        return NEVER_AT

    def close(self, *, replaced: bool) -> None:
        """Does nothing: the history stays when the flow continues with other settings, or the job ends."""

    def sample(self, status: FlowStatus, now: datetime) -> None:
        latency = status.replication_latency_ms
        with self._lock:
            seconds, self._seconds = self._seconds, []
            self._samples.append(
                Sample(
                    at=now,
                    heartbeat_age_seconds=status.heartbeat_age_seconds,
                    latency_seconds=None if latency is None else latency / 1000,
                    passes=len(seconds),
                    slowest_pass_seconds=max(seconds, default=None),
                )
            )

    @property
    def passes(self) -> int:
        """How many passes ended since the job started."""
        with self._lock:
            return self._passes

    def changes(self) -> list[dict[str, Any]]:
        """Returns the changes, the newest first."""
        with self._lock:
            return list(reversed(self._changes))

    def samples(self) -> list[Sample]:
        """Returns the samples, the oldest first."""
        with self._lock:
            return list(self._samples)

    def remote(self) -> Mapping[str, str]:
        """Returns the replicated topics: remote name by upstream name."""
        with self._lock:
            return self._remote


def _change(outcome: Outcome, now: datetime) -> dict[str, Any]:
    return {
        "at": utc_text(now),
        **outcome.as_json(),
        "before": _shortened(value_as_json(outcome.change.before)),
        "after": _shortened(value_as_json(outcome.change.after)),
    }


def _shortened(side: Any) -> Any:
    return f"{side[:LONGEST]}…" if isinstance(side, str) and len(side) > LONGEST else side


SAMPLED_WITHIN_S = 5.0
"""Seconds that the end waits for a sample under way. Its thread is a daemon."""


@contextmanager
def sampling(tasks: Mapping[Flow, FlowTask], histories: Mapping[Flow, FlowHistory]) -> Iterator[None]:
    """Samples every flow in a thread while the block runs, so that a hanging pass shows too."""
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(INTERVAL):
            now = utc_now()
            for flow, task in tasks.items():
                histories[flow].sample(task.status(), now)

    thread = threading.Thread(target=run, name="history", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(SAMPLED_WITHIN_S)
