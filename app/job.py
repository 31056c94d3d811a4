"""The running job: one streaming query per target cluster, kept alive, and ended without anything half done."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import FrameType

from pyspark.sql import SparkSession

from app.api import Api, Server
from app.batch import Batch, News
from app.keeper import QueryKeeper
from app.settings import Settings
from app.wiring import ConfigWriters, flow_task
from sinks.metrics import Metrics
from sinks.status import FlowState
from sinks.task import FlowTask
from streaming.settings import Flow

log = logging.getLogger(__name__)

PID_FILE = "LOCKSTEP_PID_FILE"
"""Environment variable: where the process id goes, so that spark-submit.sh can pass a signal on to this process."""


class Job:
    """All queries of one properties file. `run` returns when a signal came, or everything was compared once."""

    def __init__(self, settings: Settings, spark: SparkSession, once: bool) -> None:
        self._settings, self._spark, self._once = settings, spark, once
        self._stop = threading.Event()
        self._metrics = Metrics(version("lockstep"))
        configs = ConfigWriters()
        gateway = spark.sparkContext._gateway
        self._tasks: dict[Flow, FlowTask] = {}
        self._batches: dict[str, Batch] = {}
        interval = settings.job.trigger_interval
        for target in sorted({flow.flow.target for flow in settings.flows}):
            news, into = News(), [flow for flow in settings.flows if flow.flow.target == target]
            tasks = {
                flow.flow: flow_task(settings, flow, gateway, self._metrics, configs, partial(news.hear, flow.flow))
                for flow in into
            }
            self._tasks |= tasks
            self._batches[target] = Batch(
                list(tasks.values()), self._metrics, walk=not once, news=news, interval=interval
            )

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
            batch.stop()
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
