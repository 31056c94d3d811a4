"""The running job: one streaming query per target cluster, kept alive, and ended without anything half done."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from types import FrameType

from pyspark.sql import DataFrame, SparkSession

from app.api import Api, Server
from app.keeper import QueryKeeper
from app.settings import Settings
from app.wiring import ConfigWriters, flow_task
from sinks.metrics import Metrics
from sinks.status import FlowState, Heartbeats
from sinks.task import FlowTask
from streaming.hints import LatestHeartbeats
from streaming.query import collect_hints
from streaming.settings import Flow

log = logging.getLogger(__name__)

PID_FILE = "LOCKSTEP_PID_FILE"
"""Environment variable: where the process id goes, so that spark-submit.sh can pass a signal on to this process."""


PATIENCE = 1.0
"""Seconds that a batch waits for its flows: what takes longer is a first comparison, or a cluster that is silent."""


class Batch:
    """The foreachBatch function of one target's query: hints in, a walk of every flow into this target."""

    def __init__(self, tasks: Sequence[FlowTask], metrics: Metrics, walk: bool) -> None:
        self._tasks, self._metrics, self._walk = tasks, metrics, walk
        self._heartbeats = LatestHeartbeats()
        self._pool = ThreadPoolExecutor(max_workers=max(1, len(tasks)), thread_name_prefix="flow")
        self._walks: dict[Flow, Future[None]] = {}
        self.stopping = False

    def __call__(self, frame: DataFrame, _: int) -> None:
        """Does nothing once the job is stopping: what this batch brought is harmless to lose."""
        if self.stopping:
            return
        start = time.perf_counter()
        hints = collect_hints(frame)
        self._heartbeats.note(hints)
        if self._walk:
            self.step(PATIENCE)
        self._metrics.batch(time.perf_counter() - start, hints.rows, hints.undecodable)

    def step(self, patience: float | None = None, *, everything: bool = False) -> None:
        """All flows side by side; returns when all have walked, or after `patience` seconds.

        One whose cluster is silent must not hold up the others: it goes on walking, and is left out of the batches
        that come in the meantime.
        """
        for task in self._tasks:
            if (walk := self._walks.get(task.flow)) is None or walk.done():
                self._walks[task.flow] = self._pool.submit(self._one, task, everything)
        for walk in wait(self._walks.values(), patience).done:
            walk.result()

    def _one(self, task: FlowTask, everything: bool) -> None:
        seen = self._heartbeats.of(task.flow)
        task.step(Heartbeats(seen.timestamp_ms, seen.latency_ms) if seen else None, everything=everything)

    def close(self) -> None:
        """Waits for the walks under way."""
        self._pool.shutdown()


class Job:
    """All queries of one properties file. `run` returns when a signal came, or everything was compared once."""

    def __init__(self, settings: Settings, spark: SparkSession, once: bool) -> None:
        self._settings, self._spark, self._once = settings, spark, once
        self._stop = threading.Event()
        self._metrics = Metrics(version("lockstep"))
        configs = ConfigWriters()
        gateway = spark.sparkContext._gateway
        self._tasks = {flow.flow: flow_task(settings, flow, gateway, self._metrics, configs) for flow in settings.flows}
        self._batches: dict[str, Batch] = {}
        for target in sorted({flow.target for flow in self._tasks}):
            into = [task for flow, task in self._tasks.items() if flow.target == target]
            self._batches[target] = Batch(into, self._metrics, walk=not once)

    def run(self) -> bool:
        """True when no flow ended in error."""
        with _signals(self._stop.set):
            self._run()
        return all(task.status().state is not FlowState.ERROR for task in self._tasks.values())

    def _run(self) -> None:
        server = None if self._once else Server(Api(self._tasks, self._metrics), *self._http())
        keepers = [
            QueryKeeper(self._settings, self._spark, target, batch, self._once)
            for target, batch in self._batches.items()
        ]
        if server is not None:
            server.start()
            log.info("metrics, status and look are at %s", server.address)
        try:
            self._once_through(keepers) if self._once else self._until_stopped(keepers)
        finally:
            self._end(keepers, server)

    def _http(self) -> tuple[str, int]:
        return self._settings.job.http_host, self._settings.job.http_port

    def _until_stopped(self, keepers: Sequence[QueryKeeper]) -> None:
        while not self._stop.is_set():
            for keeper in keepers:
                keeper.tend()
            self._stop.wait(0.5)

    def _once_through(self, keepers: Sequence[QueryKeeper]) -> None:
        for keeper in keepers:
            keeper.drain(self._stop)
        for batch in self._batches.values():
            if not self._stop.is_set():
                batch.step(everything=True)

    def _end(self, keepers: Sequence[QueryKeeper], server: Server | None) -> None:
        for batch in self._batches.values():
            batch.stopping = True
        for keeper in keepers:
            keeper.end()
        for batch in self._batches.values():
            batch.close()
        for task in self._tasks.values():
            task.close()
        if server is not None:
            server.stop()

    @property
    def tasks(self) -> Mapping[Flow, FlowTask]:
        """By flow."""
        return self._tasks

    @property
    def metrics(self) -> Metrics:
        """Those of all flows."""
        return self._metrics


@contextmanager
def _signals(stop: Callable[[], None]) -> Iterator[None]:
    """SIGTERM and SIGINT call `stop`; a second one ends the process at once."""

    def received(number: int, _: FrameType | None) -> None:
        log.info("%s: ending after the running batch", signal.Signals(number).name)
        for again in (signal.SIGTERM, signal.SIGINT):
            signal.signal(again, signal.SIG_DFL)
        stop()

    before = {number: signal.signal(number, received) for number in (signal.SIGTERM, signal.SIGINT)}
    if path := os.environ.get(PID_FILE):
        Path(path).write_text(f"{os.getpid()}\n")
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
