"""The foreachBatch function of one target's query: hints in, then a pass of a flow whenever there is a reason."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import replace

from pyspark.sql import DataFrame

from app.job.flow_passes import FlowPasses, Work
from sinks.engine.metrics import Metrics
from streaming.query import collect_hints, describe_jobs


class Batch:
    """Called by Spark with each micro-batch.

    It stays for the trigger's interval and lets the flows have a pass at each reason: a change need not wait for the
    next micro-batch, which costs far more than a pass, and while there is no reason nothing is done.
    """

    def __init__(self, passes: FlowPasses, metrics: Metrics, interval: float, *, serves: bool = True) -> None:
        """`interval`: of the trigger, in seconds. `serves`: False only takes the hints in."""
        self._passes, self._metrics, self.interval, self._serves = passes, metrics, interval, serves
        self._stopping = False
        self._beside = Work()
        self._before = "before it"

    def __call__(self, frame: DataFrame, number: int) -> None:
        """Does nothing once the job is stopping: what this batch brought is harmless to lose."""
        if self._stopping:
            return
        start = time.monotonic()
        work = self._beside + self._passes.worked()
        if self._serves:
            # Spark reads a description when a job begins, and passes come after the only job of their batch.
            describe_jobs(frame, f"{self._before}: {work}")
        self._before = f"batch {number} had"
        with self._passes.serving() if self._serves else nullcontext():
            hints = collect_hints(frame)
        # What passes did beside the read is told with the next batch; its seconds are in those of the read.
        self._beside = replace(self._passes.worked(), seconds=0.0)
        self._passes.take_in(hints)
        self._metrics.batch(work.seconds + time.monotonic() - start, hints.rows, hints.undecodable)
        if self._serves:
            rest = self.interval - (time.monotonic() - start)
            # A shorter interval, set while the batch stays, holds for this batch as well.
            self._passes.serve(rest, in_batch=True, is_over=lambda: time.monotonic() - start >= self.interval)

    def stop(self) -> None:
        """The running batch ends now; its passes go on."""
        self._stopping = True
        self._passes.stop()
