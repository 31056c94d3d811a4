"""Keeps one target's query alive: waits for clusters, restarts a failed query, ends it between two batches."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from threading import Event, Lock

from pyspark.sql import DataFrame

from app.settings import Settings
from app.wiring import open_cluster
from sinks.background import Beside, begun
from sinks.kafka.jvm.java_admin import JavaAdmin
from sinks.kafka.jvm.jvm_rights import ask_allowed
from sinks.model.times import utc_now
from streaming.errors import LockstepError
from streaming.query import STOP_WITHIN, QueryRefused, RunningQuery, Sink, StartQuery
from streaming.query_plan import ClusterSource, FlowTopics, QueryPlan, sources_of
from streaming.query_restarts import QueryFailure, QueryState, QueryStatus, Restarts, serves_without_query, stalled

log = logging.getLogger(__name__)

PROBE_INTERVAL = 10.0
"""Seconds between probes of the sources that the query leaves out."""

SHORTEST_BATCH = 1.0
"""Minimum seconds between two starts of micro-batches. After a batch that stays has ended, this gap lets the supervisor
stop the query between two batches."""

MOST_STARTS = 3
"""Limit of query starts in `run --once`. The first two may find a damaged checkpoint."""

Observe = Callable[[str, QueryStatus], None]
"""Called with the target and the new status of its query, at every change."""

Hold = Callable[[bool], None]
"""Called with True if a micro-batch may stay to serve flows. False ends the one that stays."""


class QuerySupervisor:
    """Supervises the query of one target cluster. The query leaves out sources that cannot be read, until they can.

    Flows have their passes within its batches, or by `without_query` while no batch runs.
    """

    def __init__(
        self,
        settings: Settings,
        start_query: StartQuery,
        target: str,
        sink: Sink,
        once: bool,
        without_query: Serve,
        *,
        hold: Hold,
        observe: Observe,
        probe: BackgroundProbe | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`without_query`: lets the flows have passes, as a batch does; never called while a batch runs."""
        self._settings, self._start_query, self._target, self._once = settings, start_query, target, once
        self._observe, self._hold, self._clock = observe, hold, clock
        self._probe = probe or BackgroundProbe()
        self._plan = self._whole_plan()
        self.fallback = QueryFallback(without_query, clock)
        self._sink = self.fallback.guard(sink)
        self._query: RunningQuery | None = None
        self._commits: _Commits | None = None
        self._running = Readable(self._plan)
        self._probe_at = self._start_at = self._started_at = 0.0
        self._restarts = Restarts()
        self._status = QueryStatus(QueryState.STOPPED, None, utc_now())
        if not once:
            self.fallback.start()

    def _whole_plan(self) -> QueryPlan:
        flows = []
        for flow in (flow for flow in self._settings.flows if flow.flow.target == self._target):
            aliases = {where.cluster for where in flow.told_in}
            options = {alias: self._settings.cluster(alias, flow.flow).consumer for alias in aliases}
            flows.append(FlowTopics(flow.flow, flow.told_in, options))
        job = self._settings.job
        return QueryPlan(self._target, sources_of(flows), min(job.trigger_interval, SHORTEST_BATCH), job.checkpoint_dir)

    def status(self) -> QueryStatus:
        """Returns the state of the query. Any thread may call it."""
        return self._status

    def _tell(self, state: QueryState, reason: str | None, failures: int = 0) -> None:
        before = self._status
        since = before.since if before.state is state else utc_now()
        status = QueryStatus(state, reason, since, before.restarts + failures)
        if status != before:
            self._status = status
            self._observe(self._target, status)

    def renew(self, settings: Settings) -> None:
        """Continues with these settings. Restarts the query if its plan changed."""
        self._settings = settings
        plan = self._whole_plan()
        if plan == self._plan:
            return
        log.info("%s: the query is restarted with other settings", plan.name)
        self._stop()
        self._plan, self._start_at = plan, 0.0
        self._running = Readable(plan)

    def tend(self) -> None:
        """Starts or restarts the query, or adds sources that can be read again. Called twice a second; waits for no
        cluster."""
        now = self._clock()
        if self._query is not None and not self._query.is_active():
            self._failed(self._query.trace() or "it was stopped", now)
        if self._query is None and now >= self._start_at:
            if (found := self._probe.answer(self._plan)) is not None:
                self._start(found, now)
        elif self._query is not None and self._running.reasons and now >= self._probe_at:
            self._take_in(now)
        if self._query is not None and self._commits is not None:
            self._tell_if_stalled(now - self._commits.moved_at)

    def _tell_if_stalled(self, idle: float) -> None:
        """Sets the state STALLED if no batch began or ended for too long. The next batch ends that state."""
        if stalled(idle, self._settings.job.trigger_interval) and self._status.state is not QueryState.STALLED:
            reason = (
                f"Spark has neither begun nor ended a micro-batch for {idle:.0f} s: flows are polled meanwhile. "
                "Look at Spark's log. If its executor is gone, start the job again"
            )
            log.warning("%s: the query is stalled: %s", self._plan.name, reason)
            self._tell(QueryState.STALLED, reason)

    def _failed(self, trace: str, now: float) -> QueryFailure:
        """Keeps the reason, moves an unreadable checkpoint aside, and schedules the next start."""
        failure = self._restarts.diagnose(trace)
        wait = self._restarts.delay(now - self._started_at)
        self._start_at, self._query, self.fallback.running = now + wait, None, False
        name, reason = self._plan.name, failure.reason
        if failure.unreadable:
            reason = _moved_checkpoint(self._running.plan.checkpoint, reason)
        if reason != self._status.reason:
            log.warning("%s: the query failed, started again in %.0f s: %s", name, wait, reason)
        self._tell(QueryState.BACKING_OFF, reason, failures=1)
        return failure

    def _start(self, found: Readable, now: float) -> QueryFailure | None:
        """Starts the query on the readable sources. Returns why Spark refused to."""
        for reason in found.reasons:
            if reason not in self._running.reasons:
                log.warning("%s: the query leaves out topics: %s", self._plan.name, reason)
        self._running, self._probe_at, self._started_at = found, now + PROBE_INTERVAL, now
        self._tell(QueryState.STARTING, "; ".join(found.reasons) or self._status.reason)
        # Until it is known that Spark can commit a batch none stays.
        self._hold(False)
        self._commits = _Commits(self._sink, self._committed, self._clock)
        try:
            self._query = self._start_query(found.plan, self._commits, self._once)
        except QueryRefused as refused:
            return self._failed(str(refused), now)
        self.fallback.running = True
        return None

    def _committed(self) -> None:
        """Marks the query as running: Spark committed a batch of this run."""
        reasons = self._running.reasons
        self._hold(True)
        self._tell(QueryState.PARTIAL if reasons else QueryState.RUNNING, "; ".join(reasons) or None)

    def _take_in(self, now: float) -> None:
        found = self._probe.answer(self._plan)
        if found is None:
            return
        self._probe_at = now + PROBE_INTERVAL
        gained = found.plan.topics - self._running.plan.topics
        if gained and self._query is not None:
            names = ", ".join(f"{topic} of {alias}" for alias, topic in sorted(gained))
            log.info("%s: can be read again: %s", self._plan.name, names)
            self._stop()
            self._start_at = now

    def drain(self, stop: Event) -> None:
        """For `--once`: reads the topics to their present end. Returns early if `stop` is set."""
        for _ in range(MOST_STARTS):
            while (found := self._probe.answer(self._plan)) is None:
                if stop.wait(0.05):
                    return
            failure = self._run_once(found, stop)
            if failure is None or not (failure.unreadable or failure.suspect) or stop.is_set():
                break
        if failure is not None:
            log.warning("%s: MM2's topics were not read to the end: %s", self._plan.name, self._status.reason)
        self._tell(QueryState.STOPPED, self._status.reason if failure else "; ".join(self._running.reasons) or None)

    def _run_once(self, found: Readable, stop: Event) -> QueryFailure | None:
        """Runs the query to its end. Returns its failure; None if it ended well or `stop` was set."""
        now = self._clock()
        failure = self._start(found, now)
        while self._query is not None and self._query.is_active():
            if stop.wait(0.1):
                return None
        trace = self._query.trace() if self._query is not None else None
        return self._failed(trace, now) if trace is not None else failure

    def _stop(self) -> None:
        if self._commits is not None:
            self._commits.end()
        self._hold(False)
        if self._query is not None and self._query.is_active():
            self._query.stop(STOP_WITHIN)
        self._query, self.fallback.running = None, False

    def end(self) -> None:
        """Lets the running batch end, then stops the query."""
        self.fallback.close()
        self._stop()
        self._tell(QueryState.STOPPED, self._status.reason)


class _Commits:
    """A wrapper of the sink that notices when Spark begins another batch: by then Spark has committed the one
    before."""

    def __init__(self, sink: Sink, committed: Callable[[], None], clock: Callable[[], float]) -> None:
        self._sink, self._committed, self._clock = sink, committed, clock
        self.moved_at = clock()
        self._first: int | None = None
        self._lock, self._ends = Lock(), False

    def __call__(self, batch: DataFrame, number: int) -> None:
        self.moved_at = self._clock()
        with self._lock:
            if self._first is None:
                self._first = number
            elif number > self._first and not self._ends:
                self._committed()
        self._sink(batch, number)
        self.moved_at = self._clock()

    def end(self) -> None:
        """Reports no further commit. Spark begins another batch at once behind one that was released."""
        with self._lock:
            self._ends = True


def _moved_checkpoint(checkpoint: Path, reason: str) -> str:
    """Moves an unreadable checkpoint aside. Returns the reason and where the checkpoint is now."""
    aside = checkpoint.with_name(f"{checkpoint.name}.damaged-{datetime.now(timezone.utc):%Y%m%dT%H%M%S.%fZ}")
    try:
        checkpoint.rename(aside)
    except OSError as error:
        return f"the checkpoint {checkpoint} cannot be read ({reason}) and could not be moved aside: {error.strerror}"
    return f"the checkpoint could not be read and is now {aside}; the query reads MM2's topics again: {reason}"


Serve = Callable[[float], None]
"""Lets the flows have passes as reasons come, for this many seconds."""

SLICE_ENDS_WITHIN_S = 10.0
"""Seconds that `close` waits for a slice under way. The slice's thread is a daemon."""

SLICE = 0.5
"""Seconds of a slice. A micro-batch that begins meanwhile waits for its end."""

FALLBACK_PAUSE = 0.1
"""Seconds between two checks whether a slice may begin."""


class QueryFallback:
    """Serves the flows in slices while no micro-batch does. Slice and batch never serve at the same time: the later one
    waits."""

    def __init__(self, serve: Serve, clock: Callable[[], float] = time.monotonic) -> None:
        self.running = False
        """Whether the supervisor has a running query."""
        self._serve, self._clock = serve, clock
        self._last = clock()
        self._busy = threading.Lock()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        self._error: str | None = None

    def guard(self, sink: Sink) -> Sink:
        """Returns the sink, wrapped so that no slice runs while the sink does."""

        def guarded(batch: DataFrame, number: int) -> None:
            with self._busy:
                try:
                    sink(batch, number)
                finally:
                    self._last = self._clock()

        return guarded

    def take_turn(self) -> bool:
        """Serves for one slice if no batch does. Returns whether it served."""
        if not serves_without_query(self._clock() - self._last, self.running):
            return False
        if self._closed.is_set() or not self._busy.acquire(blocking=False):
            return False
        try:
            self._serve(SLICE)
            self._error = None
        except Exception as error:
            # A fault in one slice must not end the polling.
            if str(error) != self._error:
                log.exception("serving without the query failed; the next slice comes all the same")
            self._error = str(error)
        finally:
            self._busy.release()
        return True

    def start(self) -> None:
        """Starts a thread that serves in slices."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="fallback", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while not self._closed.wait(FALLBACK_PAUSE):
            self.take_turn()

    def close(self) -> None:
        """Begins no further slice and waits for the one under way. A slice begins passes and waits for none."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join(SLICE_ENDS_WITHIN_S)


# What of a query's sources can be read now: clusters that answer, topics that the client may READ.


READ = "READ"


@dataclass(frozen=True, slots=True)
class Readable:
    """The readable part of a plan, and why the rest is left out."""

    plan: QueryPlan
    reasons: tuple[str, ...] = ()


SourceProbe = Callable[[ClusterSource], tuple[ClusterSource | None, str | None]]
"""Returns the readable part of a source (None: no part), and why the rest cannot be read. May take some seconds."""


def probe_source(source: ClusterSource) -> tuple[ClusterSource | None, str | None]:
    """Asks the cluster what can be read with the client settings of the source."""
    try:
        with closing(open_cluster(source.alias, source.options)) as cluster:
            cluster.ping()
            denied = _denied(source, cluster.admin)
    except LockstepError as error:
        return None, str(error)
    if not denied:
        return source, None
    left = {topic: role for topic, role in source.topics.items() if topic not in denied}
    reason = f"READ is missing on {', '.join(sorted(denied))} of the cluster {source.alias}: grant it"
    return (replace(source, topics=left) if left else None), reason


def _denied(source: ClusterSource, admin: JavaAdmin) -> frozenset[str]:
    """Returns the topics that the client can see but not read (KIP-430); empty if the cluster does not tell."""
    try:
        allowed = ask_allowed(admin, source.topics.keys(), ())
    except LockstepError:
        return frozenset()
    # A topic that cannot be seen has an error's name instead of operations.
    seen = {topic: words for topic, words in allowed.topics.items() if not isinstance(words, str)}
    return frozenset(topic for topic, words in seen.items() if words and READ not in words)


def readable(plan: QueryPlan, probe: SourceProbe) -> Readable:
    """Probes every source of a plan. Raises nothing: an exception would keep the query from ever starting."""
    found = [_probed(source, probe) for source in plan.sources]
    sources = tuple(sorted((one for one, _ in found if one), key=lambda one: (one.alias, one.pattern)))
    return Readable(replace(plan, sources=sources), tuple(dict.fromkeys(reason for _, reason in found if reason)))


def _probed(source: ClusterSource, probe: SourceProbe) -> tuple[ClusterSource | None, str | None]:
    try:
        return probe(source)
    except Exception as error:
        log.exception("what can be read of %s is not known: a defect of Lockstep's, please report it", source.alias)
        return None, f"what can be read of {source.alias} is not known: {type(error).__name__}"


class BackgroundProbe:
    """Probes a plan's sources in a background thread."""

    def __init__(self, probe: SourceProbe = probe_source, beside: Beside = begun) -> None:
        self._probe, self._beside = probe, beside
        self._asked: tuple[QueryPlan, Future[Readable]] | None = None

    def answer(self, plan: QueryPlan) -> Readable | None:
        """Returns the readable part of the plan once the probe is done. Until then begins a probe if none runs, and
        returns None."""
        if self._asked is None or self._asked[0] is not plan:
            self._asked = plan, self._beside(partial(readable, plan, self._probe), "probe")
        probing = self._asked[1]
        if not probing.done():
            return None
        self._asked = None
        return probing.result()
