"""Runs the passes of the flows into one target. Each flow has its own passes, for its own reasons; none waits for
another."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field

from sinks.background import begun
from sinks.engine.flow_task import FlowTask
from sinks.engine.metrics import Metrics
from sinks.engine.pass_schedule import PassSchedule, Reason
from sinks.model.times import NEVER_AT
from streaming.flow import Flow
from streaming.hints import Hints, LatestHeartbeats

log = logging.getLogger(__name__)

MOST_PASSES_AT_ONCE = 256
"""Limit of passes that run side by side. Threads start on demand."""

LONGEST_WAIT_S = 60.0
"""Longest single wait of the serving thread, in seconds. A wait on a condition with an infinite timeout raises an
error."""


@dataclass
class _OfFlow:
    task: FlowTask
    schedule: PassSchedule
    running: Future[None] | None = None

    @property
    def is_running(self) -> bool:
        return self.running is not None


@dataclass
class Work:
    """Statistics of passes: how many, how many for each reason, and the seconds in which at least one ran."""

    reasons: Counter[Reason] = field(default_factory=Counter)
    passes: int = 0
    seconds: float = 0.0

    def __add__(self, other: Work) -> Work:
        return Work(self.reasons + other.reasons, self.passes + other.passes, self.seconds + other.seconds)

    def __str__(self) -> str:
        reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(self.reasons.items()))
        return f"{self.passes} passes ({reasons or 'no reason'}), {self.seconds:.2f} s of work"


class FlowPasses:
    """Begins each flow's passes as reasons come. Any thread may call `give`, `hold` and `serve`.

    A flow whose cluster does not answer must not delay the others. Its pass continues, and it begins no other
    meanwhile.
    """

    def __init__(self, metrics: Metrics, shortest: float) -> None:
        """`shortest`: minimum seconds between two passes of a flow."""
        self._metrics, self.shortest = metrics, shortest
        self._changed = threading.Condition()
        self._flows: dict[Flow, _OfFlow] = {}
        self._heartbeats = LatestHeartbeats()
        self._pool = ThreadPoolExecutor(max_workers=MOST_PASSES_AT_ONCE, thread_name_prefix="flow")
        self._work, self._busy_since = Work(), 0.0
        self._holds, self._stopped = True, False

    def take_on(self, task: FlowTask) -> None:
        """Adds a flow. Its first pass is due."""
        with self._changed:
            self._flows[task.flow] = _OfFlow(task, PassSchedule(self.shortest))

    def give(self, flow: Flow, reason: Reason) -> None:
        with self._changed:
            if (of_flow := self._flows.get(flow)) is not None:
                of_flow.schedule.give(reason)
                self._changed.notify_all()

    def take_in(self, hints: Hints) -> None:
        """Hands the hints of a micro-batch to the flows. They are a reason for a pass of every flow."""
        self._heartbeats.note(hints, self._flows)
        for flow, of_flow in self._flows.items():
            of_flow.task.reconcile.take_in(hints.syncs.get(flow, ()), hints.checkpoints.get(flow, ()))
            self.give(flow, Reason.STREAM)

    def wake(self) -> None:
        """Makes the serving thread compute its wait again, after `shortest` or the trigger interval changed."""
        with self._changed:
            self._changed.notify_all()

    def hold(self, holds: bool) -> None:
        """Allows or forbids a micro-batch to stay and serve. False ends the one that serves."""
        with self._changed:
            self._holds = holds
            self._changed.notify_all()

    def serve(self, seconds: float, *, in_batch: bool = False, is_over: Callable[[], bool] = lambda: False) -> None:
        """Begins passes as reasons come, for this many seconds. Passes that are due already always begin.

        Ends early after `stop`, or if `is_over` returns True. A micro-batch also ends early after `hold(False)`, or if
        a flow waits for new records of the stream.
        """
        with self._changed:
            until = time.monotonic() + seconds
            while not self._stopped:
                now = time.monotonic()
                self._begin_due(now)
                if now >= until or is_over() or (in_batch and (not self._holds or self._stream_is_wanted())):
                    return
                self._changed.wait(min(LONGEST_WAIT_S, max(0.0, min(until, self._next_at()) - now)))

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Lets another thread serve while the block runs, so that the block delays no pass."""
        over = threading.Event()
        server = begun(lambda: self.serve(math.inf, is_over=over.is_set), "serve")
        try:
            yield
        finally:
            over.set()
            with self._changed:
                self._changed.notify_all()
            # No limit: it serves what is due, waits for no pass, and looks whether it is over.
            server.result()

    def _next_at(self) -> float:
        starts = (one.schedule.next_at() for one in self._flows.values() if not one.is_running)
        return min(starts, default=NEVER_AT)

    def _stream_is_wanted(self) -> bool:
        return any(one.task.wants_stream for one in self._flows.values() if not one.is_running)

    def _begin_due(self, now: float) -> None:
        for of_flow in self._flows.values():
            of_flow.schedule.shortest = self.shortest
            if not of_flow.is_running and of_flow.schedule.next_at() <= now:
                self._begin(of_flow, now, everything=False)

    def _begin(self, of_flow: _OfFlow, now: float, *, everything: bool) -> Future[None]:
        reasons = of_flow.schedule.begin()
        if not any(one.is_running for one in self._flows.values()):
            self._busy_since = now
        self._work.passes += 1
        self._work.reasons.update(reasons)
        self._metrics.passed(of_flow.task.flow, reasons)
        of_flow.running = self._pool.submit(self._pass, of_flow, everything)
        return of_flow.running

    def _pass(self, of_flow: _OfFlow, everything: bool) -> None:
        task, start = of_flow.task, time.monotonic()
        try:
            task.step(self._heartbeats.of(task.flow), everything=everything)
        except Exception:
            log.exception("a pass failed: a defect of Lockstep's, please report it")
        finally:
            with self._changed:
                now = time.monotonic()
                of_flow.running = None
                of_flow.schedule.end(now, now - start, task.due_at())
                if not any(one.is_running for one in self._flows.values()):
                    self._work.seconds += now - self._busy_since
                self._changed.notify_all()

    def compare_everything(self) -> None:
        """Runs one pass of each flow over everything, side by side. Returns when all are done."""
        with self._changed:
            now = time.monotonic()
            running = [self._begin(one, now, everything=True) for one in self._flows.values() if not one.is_running]
        # No limit: each request of a pass has one.
        wait(running)

    def worked(self) -> Work:
        """Returns the statistics since the last call."""
        with self._changed:
            now, work = time.monotonic(), self._work
            if any(one.is_running for one in self._flows.values()):
                work.seconds += now - self._busy_since
                self._busy_since = now
            self._work = Work()
            return work

    def stop(self) -> None:
        """Begins no further pass. The serving thread returns."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def close(self) -> None:
        """Waits for the passes under way, because what they sent must be recorded.

        Each of their requests has a time limit. `/health` fails if this takes longer than a step of the main loop may.
        """
        self._pool.shutdown()
