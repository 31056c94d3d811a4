"""The running job: one streaming query per target cluster. Keeps the queries alive and ends them in order."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from types import FrameType
from typing import Any

import orjson
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import (
    JStreamingQueryListener,
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from app.http.api import Api, Server
from app.http.page_history import FlowHistory, sampling
from app.job.flow_passes import FlowPasses, Work
from app.job.flow_wiring import JobHooks, flow_in_job
from app.job.preflight_watch import preflights
from app.job.query_supervisor import QuerySupervisor
from app.overrides.overridable import permitted
from app.overrides.with_overrides import OverrideWatch
from app.properties.keys import REPLACES_FLOWS, Live
from app.reloading import ChangedLine, Reloading
from app.settings import Settings
from app.settings.plugin_reconfiguration import reconfigure_plugins
from app.single_pass import heartbeat_before
from app.verify.flow_verifier import JobVerifiers
from sinks.engine.deletion_checks import SECOND_LOOK_AFTER_S
from sinks.engine.flow_task import FlowTask
from sinks.engine.metrics import Metrics
from sinks.engine.pass_schedule import Reason
from sinks.engine.reconcile import FlowReconcile
from sinks.engine.status import FlowState, FlowStatus, Task
from sinks.every_kind.wishes import Wishes
from sinks.flow_settings import FlowSettings
from sinks.kafka.jvm.jvm_acls import SharedJvmAcls
from sinks.kinds.shared_listings import SharedListings
from sinks.ledger.audit import SettingChange
from sinks.notify.metrics_reporting import Reporters
from streaming.flow import Flow
from streaming.query import STOP_WITHIN, collect_hints, describe_jobs, start_query
from streaming.query_restarts import QueryState, QueryStatus

log = logging.getLogger(__name__)

Reread = tuple[Path, Callable[[Settings], Settings]]
"""A properties file, and the function that reads it again, given the settings in force."""


LONGEST_TURN_S = 3 * STOP_WITHIN
"""Limit of seconds for a step of the main loop. A step may wait for a batch, the start of a query, and a reload."""


class Job:
    """All queries of one properties file. `run` returns after a signal, or with `--once` after everything was
    compared."""

    def __init__(self, settings: Settings, spark: SparkSession, once: bool, reread: Reread) -> None:
        self._settings, self._spark, self._once = settings, spark, once
        self.metrics = Metrics(version("lockstep-kafka"))
        self._reloading = Reloading(*reread, settings, self._adopt, self.metrics.file)
        self._stop = threading.Event()
        self._turned_at = time.monotonic()
        self.checks: Callable[[], bool] = lambda: True
        self._reporters = Reporters(self.metrics.registry, self.metrics.count_reporter)
        self._overrides = OverrideWatch(settings.stored_overrides, permitted(settings.job_properties))
        self._adopted = AdoptedFlows()
        self._adopted.adopt(settings.flows)
        self._passes: dict[str, FlowPasses] = {}
        self._supervisors: list[QuerySupervisor] = []
        self._tasks: dict[Flow, FlowTask] = {}
        self._histories = {flow.flow: FlowHistory() for flow in settings.flows}
        self._verifiers = JobVerifiers(self._tasks, spark)
        self._batches: dict[str, Batch] = {}
        self._listings, self._acls, self._full_turn = SharedListings(), SharedJvmAcls(), Lock()
        self._wishes: dict[str, Wishes] = {flow.flow.target: Wishes() for flow in settings.flows}
        for target in sorted({flow.flow.target for flow in settings.flows}):
            passes = self._passes[target] = FlowPasses(self.metrics, settings.job.pass_min_interval)
            self._batches[target] = Batch(passes, self.metrics, settings.job.trigger_interval, serves=not once)
            for flow in (flow for flow in settings.flows if flow.flow.target == target):
                wake = partial(passes.give, flow.flow, Reason.REQUEST)
                task = self._tasks[flow.flow] = FlowTask(
                    self._flow(settings, flow),
                    self.metrics,
                    wake=wake,
                    last_heartbeat=partial(heartbeat_before, settings, flow),
                )
                passes.take_on(task)

    def _flow(self, settings: Settings, flow: FlowSettings) -> FlowReconcile:
        give = self._passes[flow.flow.target].give
        hooks = JobHooks(
            on_signal=partial(give, flow.flow, Reason.SIGNAL),
            on_vacant=partial(give, flow.flow, Reason.POLL),
            # The lease is read from the first pass on, and so the task is there.
            on_failover=lambda: self._tasks[flow.flow].request_pass((), 0),
            overrides=self._overrides.see,
            wishes=self._wishes[flow.flow.target],
            listings=self._listings,
            acls=self._acls,
            full_turn=self._full_turn,
            observers=[self._histories[flow.flow]],
            comes_again=not self._once,
        )
        built = flow_in_job(settings, flow, self.metrics, hooks)
        self._adopted.built(flow)
        return built

    def _adopt(self, settings: Settings, changed: Sequence[ChangedLine]) -> Settings:
        """Adopts the settings that can change in a running job. Returns the settings in force."""
        settings = in_force(self._settings, settings)
        running = {id(flow) for flow in self._settings.flows}
        self._adopted.adopt(settings.flows)
        for flow in settings.flows:
            mine = [one for one in changed if one.live is not Live.JOB and flow.flow in one.flows]
            if mine:
                changes = [SettingChange(one.key, one.before, one.after) for one in mine]
                task, names = self._tasks[flow.flow], [one.name for one in mine if one.live in REPLACES_FLOWS]
                if id(flow) not in running:
                    task.mailbox.renew(partial(self._flow, settings, flow), changes)
                elif names:
                    task.mailbox.add_call(
                        partial(reconfigure_plugins, flow, names, settings.plugin_properties[flow.flow]), changes
                    )
                else:
                    task.mailbox.add_changes(changes)
        for target, batch in self._batches.items():
            batch.interval = settings.job.trigger_interval
            self._passes[target].shortest = settings.job.pass_min_interval
            self._passes[target].wake()
        for supervisor in self._supervisors:
            supervisor.renew(settings)
        self._verifiers.adopt(settings)
        self._settings = settings
        waiting = [task for flow, task in self._tasks.items() if self._overrides.unknown(flow)]
        self._overrides.adopt(settings.stored_overrides)
        for task in waiting:
            task.request_pass((), 0)
        self._report()
        return settings

    def _report(self) -> None:
        settings = self._settings
        self._reporters.adopt(settings.reporters, settings.job_properties, settings.hidden)

    def run(self) -> bool:
        """Runs the job. Returns False if a flow ended in ERROR or as standby, or has a faulted kind."""
        with ending_signals(self.stop, self._reloading.request):
            self._run()
        return all(_is_healthy(task.status()) and not task.stands_by for task in self._tasks.values())

    def stop(self) -> None:
        """Lets the job end in order. Any thread may call it, also before `run`."""
        self._stop.set()

    @property
    def stopped(self) -> bool:
        return self._stop.is_set()

    def _run(self) -> None:
        job = self._settings.job
        spark_ui = self._spark.sparkContext.uiWebUrl
        api = Api(self._tasks, self.metrics, self._reloading, histories=self._histories, spark_ui=spark_ui, pulse=self)
        server = None if self._once else Server(api, job.http_host, job.http_port, job.http_token)
        self._report()
        supervisors = self._supervisors = [
            QuerySupervisor(
                self._settings,
                partial(start_query, self._spark),
                target,
                batch,
                self._once,
                self._passes[target].serve,
                hold=self._passes[target].hold,
                observe=self._query_changed,
            )
            for target, batch in self._batches.items()
        ]
        if server is not None:
            server.start()
            log.info("the page, metrics and status are at %s", server.address)
        with ExitStack() as stack:
            stack.callback(self._end, supervisors, server)
            stack.enter_context(listening(self._spark, self.metrics))
            stack.enter_context(sampling(self._tasks, self._histories))
            watched = {} if self._once else self._tasks
            self.checks = stack.enter_context(preflights(watched, self._histories, lambda: self._settings))
            stack.enter_context(self._verifiers.running(None if self._once else self._settings))
            self._once_through(supervisors) if self._once else self._until_stopped(supervisors)

    def _query_changed(self, target: str, status: QueryStatus) -> None:
        """Updates the metrics, and the status of every flow into this target."""
        self.metrics.query(target, status)
        for flow, task in self._tasks.items():
            if flow.target == target:
                task.query_trouble(status.reason)

    def is_alive(self) -> bool:
        """Returns whether the main loop turned within LONGEST_TURN_S. It no longer turns while the job ends, which may
        take as long."""
        return time.monotonic() - self._turned_at <= LONGEST_TURN_S

    def streams(self) -> bool:
        return not any(one.status().state is QueryState.STALLED for one in self._supervisors)

    def _until_stopped(self, supervisors: Sequence[QuerySupervisor]) -> None:
        while not self._stop.is_set():
            for supervisor in supervisors:
                self._turned_at = time.monotonic()
                supervisor.tend()
            self._turned_at = time.monotonic()
            if self._overrides.differing():
                self._reloading.request()
            self._reloading.tick()
            self._stop.wait(0.5)

    def _once_through(self, supervisors: Sequence[QuerySupervisor]) -> None:
        for supervisor in supervisors:
            supervisor.drain(self._stop)
        for target, passes in self._passes.items():
            if not self._stop.is_set():
                passes.compare_everything()
            self._wait_to_lead(target, passes)
            # Each flow has said by now what it wants: what was held for that can go. A second look comes before
            # what is to be deleted.
            again = any(task.reconcile.awaits_second_look for task in self._into(target))
            waits = self._wishes[target].waiting() or again
            if waits and not self._stop.wait(SECOND_LOOK_AFTER_S if again else 0.0):
                passes.compare_everything()

    def _into(self, target: str) -> list[FlowTask]:
        return [task for flow, task in self._tasks.items() if flow.target == target]

    def _wait_to_lead(self, target: str, passes: FlowPasses) -> None:
        """Waits until the lease of a killed job has expired. Does not wait if another job lives."""
        tasks = self._into(target)
        while any(task.stands_by and not task.beside_another for task in tasks) and not self._stop.wait(0.5):
            passes.compare_everything()

    def _end(self, supervisors: Sequence[QuerySupervisor], server: Server | None) -> None:
        with ExitStack() as last_first:
            # Each of these, whatever one before it raises.
            if server is not None:
                last_first.callback(server.stop)
            last_first.callback(self._reporters.close)
            last_first.callback(self._adopted.close)
            last_first.callback(side_by_side, [task.close for task in self._tasks.values()])
            for passes in self._passes.values():
                last_first.callback(passes.close)
            for supervisor in supervisors:
                last_first.callback(supervisor.end)
            for batch in self._batches.values():
                last_first.callback(batch.stop)


def _is_healthy(status: FlowStatus) -> bool:
    return status.state is not FlowState.ERROR and not any(one.task is Task.FAULTED for one in status.kinds.values())


def in_force(before: Settings, after: Settings) -> Settings:
    """Returns the settings `after`, but with the flows and clusters of the running job's `before`: others need a
    restart.

    A flow that the file dropped continues as it was. Closes the plug-ins of a flow that is new in the file.
    """
    found, running = {one.flow: one for one in after.flows}, {one.flow for one in before.flows}
    for flow, one in found.items():
        if flow not in running:
            one.close()
    return replace(
        after,
        clusters=before.clusters,
        overrides=before.overrides,
        flows=tuple(found.get(one.flow, one) for one in before.flows),
        plugin_properties={**before.plugin_properties, **after.plugin_properties},
        stored_overrides={**before.stored_overrides, **after.stored_overrides},
    )


# Which settings of its flows a job has adopted, so that plug-ins are closed of those that never come into force.
#
# A reload hands over other settings of a flow, and the flow's next pass is built from them. Should they be replaced
# before, or the job end, no other code would close what was made for them.


class AdoptedFlows:
    """Tracks the flow settings whose plug-ins are not closed yet. Any thread may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[FlowSettings] = []
        self._running: list[FlowSettings] = []

    def adopt(self, flows: Iterable[FlowSettings]) -> None:
        """Adds the newest settings. Settings that are known already stay open."""
        with self._lock:
            known = {id(one) for one in (*self._waiting, *self._running)}
            self._waiting += [one for one in flows if id(one) not in known]

    def built(self, flow: FlowSettings) -> None:
        """Notes that a flow was built from these settings and will close them. Closes older settings."""
        with self._lock:
            mine = [one for one in self._waiting if one.flow == flow.flow]
            older = mine[: next((at for at, one in enumerate(mine) if one is flow), 0)]
            gone = {id(one) for one in (*older, flow)}
            self._waiting = [one for one in self._waiting if id(one) not in gone]
            self._running = [one for one in self._running if one.flow != flow.flow] + [flow]
        for one in older:
            one.close()

    def close(self) -> None:
        """Closes all settings that are still open, at the end of the job."""
        with self._lock:
            left = [*self._waiting, *self._running]
        for one in left:
            one.close()


class Batch:
    """The function that Spark calls with each micro-batch.

    It stays for the trigger's interval and begins a pass of a flow at each reason. So a change need not wait for the
    next micro-batch, which costs far more than a pass.
    """

    def __init__(self, passes: FlowPasses, metrics: Metrics, interval: float, *, serves: bool = True) -> None:
        """`interval`: of the trigger, in seconds. `serves`: False only takes the hints in."""
        self._passes, self._metrics, self.interval, self._serves = passes, metrics, interval, serves
        self._stopping = False
        self._beside = Work()
        self._before = "before it"

    def __call__(self, frame: DataFrame, number: int) -> None:
        """Takes in the batch's hints and serves. Does nothing once the job is stopping: losing those hints is
        harmless."""
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
        # What passes did beside the read is told with the next batch. The seconds of the read include theirs.
        self._beside = replace(self._passes.worked(), seconds=0.0)
        self._passes.take_in(hints)
        self._metrics.batch(work.seconds + time.monotonic() - start, hints.rows, hints.undecodable)
        if self._serves:
            rest = self.interval - (time.monotonic() - start)
            # A shorter interval, set while the batch stays, holds for this batch as well.
            self._passes.serve(rest, in_batch=True, is_over=lambda: time.monotonic() - start >= self.interval)

    def stop(self) -> None:
        """Ends the running batch now. Its passes continue."""
        self._stopping = True
        self._passes.stop()


PID_FILE = "LOCKSTEP_PID_FILE"
"""Environment variable: the file for the process id, by which spark-submit.sh forwards signals to this process."""


@contextmanager
def ending_signals(stop: Callable[[], None], reload: Callable[[], None]) -> Iterator[None]:
    """Handles signals in the block: SIGTERM and SIGINT call `stop`, a second one ends the process at once. SIGHUP calls
    `reload`.
    """

    def received(number: int, _: FrameType | None) -> None:
        log.info("%s: ending after the running batch", signal.Signals(number).name)
        for again in (signal.SIGTERM, signal.SIGINT):
            signal.signal(again, signal.SIG_DFL)
        stop()

    before = {number: signal.signal(number, received) for number in (signal.SIGTERM, signal.SIGINT)}
    before[signal.SIGHUP] = signal.signal(signal.SIGHUP, lambda number, frame: reload())
    if path := os.environ.get(PID_FILE):
        Path(path).write_text(f"{os.getpid()}\n")
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def side_by_side(closes: Sequence[Callable[[], None]]) -> None:
    """Calls each function in a thread of its own and waits for all. Logs exceptions.

    The requests of a close have time limits. A returned lease lets another process lead at once.
    """
    if not closes:
        return
    with ThreadPoolExecutor(len(closes), thread_name_prefix="close") as threads:
        for future in [threads.submit(close) for close in closes]:
            if (error := future.exception()) is not None:
                log.error("a flow could not be closed: a defect of Lockstep's, please report it", exc_info=error)


# What Spark says of its queries: a listener that hands each finished batch to the metrics.
#
# Spark calls it in a thread of its own after a batch was committed, so that nothing here delays one.


QUERY_PREFIX = "lockstep-"
"""Prefix of the query names that `QueryPlan.name` returns. The target follows."""

FROM_KAFKA = "Kafka"
"""Part of Spark's description of a source that reads MM2's topics. The other source is a clock."""


class QueryProgress(StreamingQueryListener):
    """A `StreamingQueryListener` for the queries of this job. It ignores the session's other queries."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._targets: dict[str, str] = {}

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Called before `start` returns."""
        if event.name and event.name.startswith(QUERY_PREFIX):
            target = self._targets[str(event.runId)] = event.name.removeprefix(QUERY_PREFIX)
            self._metrics.query_runs(target, True)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        """Called after each batch by listeners that get pyspark's objects. This job calls `progressed` instead."""

    def progressed(self, progress: Mapping[str, Any]) -> None:
        """Counts a committed batch. `progress`: Spark's StreamingQueryProgress as parsed JSON."""
        if (target := self._targets.get(progress["runId"])) is not None:
            from_kafka = (one for one in progress["sources"] if one["description"].startswith(FROM_KAFKA))
            rows = sum(one["numInputRows"] for one in from_kafka)
            self._metrics.query_batch(target, progress["batchId"], rows, progress["batchDuration"] / 1000)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's name
        """Does nothing: the clock has a new row at every trigger, so none of the job's queries is idle."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        if (target := self._targets.pop(str(event.runId), None)) is not None:
            self._metrics.query_runs(target, target in self._targets.values())

    @property
    def _jlistener(self) -> Any:
        # pyspark's own asks the JVM for each field of a progress, which takes 10 ms of CPU a batch; this takes 0.3.
        if not hasattr(self, "_jlistenerobj"):
            assert self.spark is not None
            self._jlistenerobj = self.spark._jvm.PythonStreamingQueryListenerWrapper(_InOneCall(self))
        return self._jlistenerobj


class _InOneCall(JStreamingQueryListener):
    """The listener that Spark's JVM calls. It reads a progress as one JSON document, in one call."""

    pylistener: QueryProgress

    def onQueryProgress(self, jevent: Any) -> None:  # noqa: N802 - Spark's name
        self.pylistener.progressed(orjson.loads(jevent.progress().json()))


@contextmanager
def listening(spark: SparkSession, metrics: Metrics) -> Iterator[None]:
    """Listens to the session's queries while the block runs."""
    listener = QueryProgress(metrics)
    listener.spark = spark
    spark.streams.addListener(listener)
    try:
        yield
    finally:
        spark.streams.removeListener(listener)
