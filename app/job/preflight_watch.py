"""Repeats each flow's preflight beside its passes: could it fail over, and which records would it lose?"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial

from app.failover_facts import ReadinessSurvey
from app.http.page_history import FlowHistory
from app.settings import Settings
from app.wiring import both_clusters, guard, ledger
from sinks.engine.flow_task import FlowTask
from sinks.engine.status import FlowState, in_step_of_status
from sinks.every_kind.listing import Listed
from sinks.failover.journal import mirrors
from sinks.failover.predicted_loss import Prediction, remembered
from sinks.failover.preflight import Preflight, next_preflight, preflight_of, without_answer
from sinks.failover.readiness_facts import FailoverLoss, ReadinessFacts
from sinks.faults import ClusterUnreachable
from sinks.flow_settings import FlowSettings
from sinks.kinds.desired_topics import desired_topics
from sinks.model.times import utc_now
from streaming.errors import LockstepError
from streaming.flow import Flow

log = logging.getLogger(__name__)

TICK = 1.0
"""Seconds between two checks whether a preflight is due."""

LONGEST_PREFLIGHT_S = 600.0
"""Seconds after which a preflight counts as hanging. Each of its many requests has its own, shorter limit. The answer
is UNKNOWN long before."""

WATCHED_INTERVAL = 5.0
"""Seconds between two preflights while a client reads the page or the status."""


class PreflightWatch:
    """Runs the preflights of one flow with clients of its own, so that no pass waits for them. For one thread at a
    time."""

    def __init__(
        self,
        task: FlowTask,
        history: FlowHistory,
        settings: Callable[[], Settings],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`settings`: returns those in force."""
        self.flow = task.flow
        self._task, self._history, self._settings, self._clock = task, history, settings, clock
        self._began, self._ended = float("-inf"), float("-inf")
        self._last: Preflight | None = None
        self._in_error = False
        self._began_for: FlowSettings | None = None
        self._trouble: str | None = None
        self._turned_at = clock()
        self._flow: FlowSettings | None = None
        self._survey: ReadinessSurvey | None = None
        self._opened = ExitStack()

    @property
    def hangs(self) -> bool:
        """Returns whether a tick takes longer than LONGEST_PREFLIGHT_S. Any thread may call it."""
        return self._clock() - self._turned_at > LONGEST_PREFLIGHT_S

    def tick(self) -> None:
        """Runs a preflight if one is due. Raises nothing, because its thread must survive Lockstep's own defects."""
        began = self._clock()
        try:
            self._make_where_due()
        except Exception as error:
            trouble = f"{type(error).__name__}: {error}"
            if trouble != self._trouble:
                log.exception("%s: preflight: a defect of Lockstep's, please report it", self._task.flow.name)
            self._task.note_preflight(self._failed(trouble, began))
            self._ended = self._clock()
        self._turned_at = self._clock()

    def _make_where_due(self) -> None:
        settings = self._settings()
        flow = next((one for one in settings.flows if one.flow == self._task.flow), None)
        # Another process checks a flow that it leads. A flow that has ended cannot fail over.
        is_led = not self._task.stands_by and not self._task.status().failover.record.has_ended
        if flow is None or not flow.failover.preflight_interval or not is_led:
            self.close()
            self._task.note_preflight(None)
            return
        in_error = self._task.status().state is FlowState.ERROR
        if not self._is_due(flow, in_error) or not (self._history.passes or in_error):
            return
        self._began, self._in_error, self._began_for = self._clock(), in_error, flow
        made = self._made(settings, flow)
        self._last = made if made.trouble is None else self._last
        self._task.note_preflight(made)
        self._ended = self._clock()

    def _is_due(self, flow: FlowSettings, in_error: bool) -> bool:
        """Returns whether a preflight is due: sooner while a client reads the page, at once if the flow stopped or
        continued, or has other settings."""
        interval: float = flow.failover.preflight_interval
        if self._task.is_watched:
            interval = min(interval, WATCHED_INTERVAL)
        due = next_preflight(self._began, self._ended, interval)
        other = in_error is not self._in_error or flow is not self._began_for
        return self._clock() >= due or (other and self._clock() >= self._ended + TICK)

    def _made(self, settings: Settings, flow: FlowSettings) -> Preflight:
        began = self._clock()
        try:
            made = self._observe(settings, flow, began)
        except ClusterUnreachable as error:
            return self._without_source(settings, flow, str(error), began)
        except LockstepError as error:
            return self._failed(str(error), began)
        self._trouble = None
        return made

    def _open(self, settings: Settings, flow: FlowSettings) -> ReadinessSurvey:
        if flow is not self._flow or self._survey is None:
            self.close()
            # Of other settings, and so perhaps of other topics.
            self._last = None if flow is not self._flow else self._last
            clusters = self._opened.enter_context(both_clusters(settings, flow))
            self._flow, self._survey = flow, ReadinessSurvey(flow, clusters, by_job=True)
            self._clusters = clusters
        return self._survey

    def _without_source(self, settings: Settings, flow: FlowSettings, trouble: str, began: float) -> Preflight:
        """Returns the result if a cluster does not answer. If that is the source, the result has the loss of a failover
        without it."""
        made = self._failed(trouble, began)
        try:
            self._open(settings, flow)
            clusters = self._clusters
            guarded = guard(flow, clusters.source, clusters.target)
            opened = guarded.open_for_target(partial(ledger, flow, clusters.target, to_write=False), to_write=False)
            loss = loss_of(remembered(opened, flow, clusters.ports[1]))
        except LockstepError as error:
            log.debug("%s: what a failover would lose is not known: %s", flow.flow.name, error)
            return made
        return without_answer(replace(made, loss=loss, seconds=self._clock() - began), self._last)

    def _observe(self, settings: Settings, flow: FlowSettings, began: float) -> Preflight:
        survey = self._open(settings, flow)
        status = self._task.status()
        # Who describes the target's replicas has listed its topics.
        source, replicas = self._clusters.source.list_topics(), self._clusters.target.replicas()
        listed = Listed(source, replicas.partitions, desired_topics(source, flow))
        # Read anew, and only where topics may be moving: it is the passes' own otherwise.
        known = None if mirrors(status.failover.record) else ledger(flow, self._clusters.target, to_write=False)
        facts = survey.observe(listed, in_step_of_status(status), known, replicas, status.failover.lost)
        self._task.reconcile.note_counted(survey.positions)
        if not facts.untold or facts.missing_reads:
            return preflight_of(facts, utc_now(), self._clock() - began)
        loss = self._completed(settings, flow, facts)
        return without_answer(preflight_of(facts, utc_now(), self._clock() - began, loss), self._last)

    def _completed(self, settings: Settings, flow: FlowSettings, facts: ReadinessFacts) -> FailoverLoss | None:
        """Returns the loss if partitions of the source do not answer, by their last known end offsets. None if one has
        none."""
        target = self._clusters.ports[1]
        seen = remembered(ledger(flow, self._clusters.target, to_write=False), flow, target)
        silent = {where: seen.arrivals[where] for where in facts.untold if where in seen.arrivals}
        if seen.at_ms is None or len(silent) < len(facts.untold):
            return None
        loss = loss_of(replace(seen, arrivals=silent))
        if loss.records is None:
            return loss
        return replace(loss, records=loss.records + sum(one.records for one in facts.losses.values()))

    def _failed(self, trouble: str, began: float) -> Preflight:
        if trouble != self._trouble:
            log.warning("%s: whether it could fail over is not known: %s", self._task.flow.name, trouble)
        self._trouble = trouble
        return Preflight(utc_now(), self._clock() - began, trouble=trouble)

    def close(self) -> None:
        self._survey = None
        self._opened.close()


def loss_of(found: Prediction) -> FailoverLoss:
    """Returns the loss in the form that the page shows."""
    seen = None if found.at_ms is None else datetime.fromtimestamp(found.at_ms / 1000, timezone.utc)
    return FailoverLoss(found.records, found.exact, seen, len(found.unknown))


@contextmanager
def preflights(
    tasks: Mapping[Flow, FlowTask],
    histories: Mapping[Flow, FlowHistory],
    settings: Callable[[], Settings],
) -> Iterator[Callable[[], bool]]:
    """Runs the preflights of each flow in a thread of its own while the block runs. The end waits for none of them.

    Yields a function that returns True unless a preflight hangs. Any thread may call it.
    """
    ended = threading.Event()
    watches = [PreflightWatch(task, histories[flow], settings) for flow, task in tasks.items()]

    def run(watch: PreflightWatch) -> None:
        while not ended.wait(TICK):
            watch.tick()
        watch.close()

    for watch in watches:
        threading.Thread(target=run, args=(watch,), name=f"preflight-{watch.flow.name}", daemon=True).start()
    try:
        yield lambda: not any(watch.hangs for watch in watches)
    finally:
        ended.set()
