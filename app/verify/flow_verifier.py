"""Compares the records of a flow while the job runs, in a thread of its own, so that no pass waits for it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING

from app.settings import Settings
from app.verify.spark_jobs import record_jobs, refuse_transforms
from app.wiring import both_clusters, guard, ledger
from sinks.engine.cluster_guard import ClusterGuard
from sinks.engine.flow_task import FlowTask
from sinks.engine.verify_status import Comparing, VerifyStatus
from sinks.faults import NotLeading
from sinks.flow_settings import FlowSettings
from sinks.kinds.offsets.mirror_records import mirror_topics
from sinks.ledger.ledger import Ledger
from sinks.verify.continuous_comparison import ComparedFlow, ContinuousComparison
from sinks.verify.flow_progress import FlowProgress
from sinks.verify.record_jobs import ByteBudget
from sinks.verify.what_to_compare import SurveyedSide
from streaming.errors import LockstepError
from streaming.flow import Flow

if TYPE_CHECKING:
    from streaming.verify.jobs import Session

log = logging.getLogger(__name__)

COMPARISON_INTERVAL = 10.0
"""Seconds between the beginnings of two rounds."""

RETRY_SECONDS = 30.0
"""Seconds until the next try after a failure."""

LEAD_POLL_SECONDS = 1.0
"""Seconds between two checks whether this process leads the flow."""

JOIN_WITHIN = 20.0
"""Seconds that the end of the job waits for a request under way."""


class FlowVerifier:
    """Compares the records of one flow. Its errors have their own line in the status and stop nothing else."""

    def __init__(
        self,
        settings: Settings,
        flow: FlowSettings,
        task: FlowTask,
        spark: Session,
    ) -> None:
        self._settings, self._flow, self._task, self._spark = settings, flow, task, spark
        self._tag = f"lockstep-verify-{id(self)}"
        self._ended = threading.Event()
        self._progress = FlowProgress()
        self._thread = threading.Thread(target=self._run, name=f"verify {flow.flow.name}", daemon=True)

    def start(self) -> None:
        """Starts the thread and returns at once."""
        self._show(VerifyStatus())
        self._thread.start()

    def end(self) -> None:
        """Ends the running Spark job. The thread ends soon after."""
        self._ended.set()
        self._spark.sparkContext.cancelJobsWithTag(self._tag)

    def join(self) -> None:
        """Waits until the thread has ended, at most JOIN_WITHIN seconds: a running request may take its time."""
        self._thread.join(JOIN_WITHIN)
        if not self._thread.is_alive():
            self._task.verify = None

    def _run(self) -> None:
        context = self._spark.sparkContext
        context.addJobTag(self._tag)
        # Beside the streaming query, not before it: Spark shares its cores between pools.
        context.setLocalProperty("spark.scheduler.pool", "verify")
        while not self._ended.is_set():
            self._ended.wait(self._try())

    def _try(self) -> float:
        """Compares until an error ends it. Returns the seconds to wait before the next try."""
        flow = self._flow.flow.name
        try:
            if not self._task.leads:
                raise NotLeading(f"another process leads {flow}, or none does yet")
            return self._lead()
        except NotLeading as error:
            # While no process is known to lead, what was found stays true, and grows old.
            known = None if self._task.stands_by else self._task.verify
            self._show(replace(known or VerifyStatus(), state=Comparing.STANDBY, reason=str(error)))
            return LEAD_POLL_SECONDS
        except LockstepError as error:
            self._failed(str(error))
        except Exception as error:  # noqa: BLE001 - whatever Spark raises is in the status, and stops nothing else
            # Spark's texts have a stack trace of Java's behind the first line.
            self._failed(f"{type(error).__name__}: {str(error).partition(chr(10))[0]}", error)
        return RETRY_SECONDS

    def _failed(self, reason: str, error: Exception | None = None) -> None:
        if self._ended.is_set():
            return
        known, flow = self._task.verify or VerifyStatus(), self._flow.flow.name
        if (known.state, known.reason) != (Comparing.FAULTED, reason):
            said = "%s: records are not compared: %s (tried again in %.0f s)"
            log.warning(said, flow, reason, RETRY_SECONDS, exc_info=error)
        self._show(replace(known, state=Comparing.FAULTED, reason=reason))

    def _show(self, status: VerifyStatus) -> None:
        self._task.verify = status

    def _lead(self) -> float:
        refuse_transforms(self._settings, self._flow)
        with self._opened() as (comparison, guarded, opened):
            while not self._ended.is_set() and self._task.leads:
                began = time.monotonic()
                guarded.check_ids()
                opened.refresh()
                guarded.check_only(opened)
                if opened.failover().has_ended:
                    self._show(VerifyStatus(Comparing.ENDED, opened.failover().describe()))
                    return RETRY_SECONDS
                comparison.run(began, time.time(), lambda: not self._ended.is_set())
                self._show(self._progress.status(time.monotonic()))
                self._ended.wait(max(0.0, began + COMPARISON_INTERVAL - time.monotonic()))
            if self._task.leads:
                comparison.write_down(time.monotonic())
        return 0.0

    @contextmanager
    def _opened(self) -> Iterator[tuple[ContinuousComparison, ClusterGuard, Ledger]]:
        settings, flow = self._settings, self._flow
        with both_clusters(settings, flow) as clusters:
            source, target = clusters.source, clusters.target
            guarded = guard(flow, source, target)
            opened = guarded.open(partial(ledger, flow, target, to_write=True, permit=self._task.check_lead))
            with (
                closing(source.records(flow.isolation)) as ours,
                closing(target.records("read_committed")) as theirs,
            ):
                topics = mirror_topics(flow, source, target)
                both = ComparedFlow(SurveyedSide(source, ours), SurveyedSide(target, theirs), opened, topics)
                now = time.monotonic()
                budget = ByteBudget(flow.verifying.rate, 2 * COMPARISON_INTERVAL, now)
                # One session for all rounds.
                jobs = cache(partial(record_jobs, settings, flow, self._spark))
                yield ContinuousComparison(flow, both, jobs, self._progress, budget, now), guarded, opened


class JobVerifiers:
    """The verifiers of one job. Only the job's thread calls it."""

    def __init__(self, tasks: Mapping[Flow, FlowTask], spark: Session) -> None:
        self._tasks, self._spark = tasks, spark
        self._runs = False
        self._running: dict[Flow, tuple[FlowSettings, FlowVerifier]] = {}

    @contextmanager
    def running(self, settings: Settings | None) -> Iterator[None]:
        """Compares while the block runs. `settings`: None: do not compare."""
        self._runs = settings is not None
        if settings is not None:
            self.adopt(settings)
        try:
            yield
        finally:
            for _, verifier in self._running.values():
                verifier.end()
            for _, verifier in self._running.values():
                verifier.join()

    def adopt(self, settings: Settings) -> None:
        """Continues with these settings. A flow whose settings changed starts again."""
        if not self._runs:
            return
        wanted = {flow.flow: flow for flow in settings.flows if flow.verifying.enabled}
        for flow, (before, verifier) in list(self._running.items()):
            if wanted.get(flow) is not before:
                verifier.end()
                verifier.join()
                del self._running[flow]
        for flow, one in wanted.items():
            if flow not in self._running:
                verifier = FlowVerifier(settings, one, self._tasks[flow], self._spark)
                self._running[flow] = one, verifier
                verifier.start()
