"""The foreachBatch function of one target's query: hints in, a pass of every flow into this target."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

from pyspark.sql import DataFrame

from sinks.engine.flow_task import FlowTask
from sinks.engine.metrics import Metrics
from sinks.engine.status import Heartbeats
from streaming.flow import Flow
from streaming.hints import LatestHeartbeats
from streaming.query import collect_hints

log = logging.getLogger(__name__)

PATIENCE = 1.0
"""Seconds that a batch waits for its flows: what takes longer is a first comparison, or a cluster that is silent."""

LISTEN_SHARE = 0.75
"""Of the trigger interval: so long after its start a batch stays, for one more pass at a metadata-change signal. The
rest is what Spark needs to be in time for the next trigger."""


class ChangedFlows:
    """Flows whose source's metadata log told of a change. Threads that listen to the logs add, a batch waits."""

    def __init__(self) -> None:
        self._heard: set[Flow] = set()
        self._changed = threading.Condition()
        self._closed = False

    def hear(self, flow: Flow) -> None:
        """Something changed on the source of this flow."""
        with self._changed:
            self._heard.add(flow)
            self._changed.notify_all()

    def wait(self, seconds: float) -> frozenset[Flow]:
        """The flows heard of since this was last asked, at once or when the first is; none after that long."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._heard, max(0.0, seconds))
            heard, self._heard = frozenset(self._heard), set()
            return heard

    def close(self) -> None:
        """Nobody waits any longer."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


class Batch:
    """Called by Spark with each micro-batch.

    A batch that is done early listens until most of its trigger's interval is over: at a signal there is one more pass,
    so that a change need not wait for the next trigger. Once only, so that a source that changes all the time costs no
    more than two passes a trigger.
    """

    def __init__(
        self,
        tasks: Sequence[FlowTask],
        metrics: Metrics,
        *,
        passes: bool = True,
        changed: ChangedFlows | None = None,
        interval: float = 0.0,
    ) -> None:
        """`interval`: of the trigger, in seconds; 0 does not listen. `passes`: False only takes the hints in."""
        self._tasks, self._metrics, self._passes = tasks, metrics, passes
        self._changed, self.interval = changed or ChangedFlows(), interval
        self._heartbeats = LatestHeartbeats()
        self._pool = ThreadPoolExecutor(max_workers=max(1, len(tasks)), thread_name_prefix="flow")
        self._running: dict[Flow, Future[None]] = {}
        self._stopping = False

    def __call__(self, frame: DataFrame, _: int) -> None:
        """Does nothing once the job is stopping: what this batch brought is harmless to lose."""
        if self._stopping:
            return
        start = time.perf_counter()
        hints = collect_hints(frame)
        self._heartbeats.note(hints)
        for task in self._tasks:
            task.hear(hints.syncs.get(task.flow, ()), hints.checkpoints.get(task.flow, ()))
        if self._passes:
            self._changed.wait(0)
            self.step(PATIENCE)
        self._metrics.batch(time.perf_counter() - start, hints.rows, hints.undecodable)
        if self._passes:
            self.listen(start + LISTEN_SHARE * self.interval - time.perf_counter())

    def listen(self, seconds: float) -> None:
        """Waits so long for a signal, and lets the flows that it is about have one more pass."""
        heard = self._changed.wait(seconds)
        if heard and not self._stopping:
            self.step(PATIENCE, of=heard)

    def step(self, patience: float | None = None, *, everything: bool = False, of: Collection[Flow] = ()) -> None:
        """All flows side by side, or those named; returns when all passes are done, or after `patience` seconds.

        One whose cluster is silent must not hold up the others: its pass goes on, and it is left out of the batches
        that come in the meantime.
        """
        for task in self._tasks:
            running = self._running.get(task.flow)
            if (not of or task.flow in of) and (running is None or running.done()):
                self._running[task.flow] = self._pool.submit(self._one, task, everything)
        for done in wait(self._running.values(), patience).done:
            if (error := done.exception()) is not None:
                log.error("a pass broke off: a defect of Lockstep's, please report it", exc_info=error)

    def _one(self, task: FlowTask, everything: bool) -> None:
        seen = self._heartbeats.of(task.flow)
        task.step(Heartbeats(seen.timestamp_ms, seen.latency_ms) if seen else None, everything=everything)

    def stop(self) -> None:
        """The running batch ends as soon as its passes have."""
        self._stopping = True
        self._changed.close()

    def close(self) -> None:
        """Waits for the passes under way."""
        self._pool.shutdown()
