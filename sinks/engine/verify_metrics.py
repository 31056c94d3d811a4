"""What Prometheus sees of the comparison of records."""

from __future__ import annotations

from typing import Protocol

from prometheus_client import Gauge

from sinks.engine.verify_status import VerifyStatus
from streaming.flow import Flow

WORST_ROWS = 100
"""Topics and kinds of a flow that are shown: those with the most differences."""


class MakeGauge(Protocol):
    """Makes a gauge, and lists it."""

    def __call__(self, name: str, *labels: str) -> Gauge: ...


class VerifyMetrics:
    """Of all flows. What is not known is not there."""

    def __init__(self, gauge: MakeGauge) -> None:
        flow = ("source", "target")
        self._through = gauge("verified_through_timestamp_seconds", *flow)
        self._differences = gauge("verify_differences", *flow, "topic", "kind")
        self._timed: set[Flow] = set()
        self._shown: dict[Flow, frozenset[tuple[str, str]]] = {}

    def show(self, flow: Flow, status: VerifyStatus | None) -> None:
        """How a flow's records stand; None where this process does not compare them."""
        through = status.through if status else None
        if through is not None:
            self._through.labels(flow.source, flow.target).set(through.timestamp())
            self._timed.add(flow)
        elif flow in self._timed:
            self._through.remove(flow.source, flow.target)
            self._timed.discard(flow)
        rows = status.worst[:WORST_ROWS] if status else []
        now = frozenset((topic, kind) for topic, kind, _ in rows)
        for topic, kind in self._shown.get(flow, frozenset()) - now:
            self._differences.remove(flow.source, flow.target, topic, kind)
        for topic, kind, count in rows:
            self._differences.labels(flow.source, flow.target, topic, kind).set(count)
        self._shown[flow] = now
