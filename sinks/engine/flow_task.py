"""Runs one flow in a running job: passes when they are due, retries, requests from other threads, status.

An error stays with its flow: an exception of a pass ends up in the flow's status, and the other flows go on.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import NamedTuple

from sinks.engine.flow_status import KnownStatus
from sinks.engine.metrics import Metrics
from sinks.engine.reconcile import FlowReconcile
from sinks.engine.report import Report
from sinks.engine.status import FlowStatus
from sinks.engine.verify_status import VerifyStatus
from sinks.every_kind.backoff import RetrySchedule
from sinks.failover.preflight import Preflight, not_checked
from sinks.faults import NoAnswer, NotLeading
from sinks.ledger.audit import SettingChange
from sinks.model.plan import Plan
from sinks.model.times import utc_now
from streaming.errors import LockstepError
from streaming.hints import NewestHeartbeat

log = logging.getLogger(__name__)

STANDS_BY_FOR = 1.0
"""Seconds until a flow that another process leads asks whether it may lead."""


WATCHED_FOR = 10.0
"""Seconds after a request for status or page during which a client counts as watching."""


class FlowTask:
    """One flow of a job. The thread of passes calls `step`. Any thread may call the other methods.

    `reconcile`: runs the passes; replaced when the settings change. `beside_another`: this process heard of another one
    that leads the flow. `verify`: status of the record comparison, set by the flow's verifier.
    """

    def __init__(
        self,
        reconcile: FlowReconcile,
        metrics: Metrics,
        clock: Callable[[], float] = time.monotonic,
        wake: Callable[[], None] = lambda: None,
        last_heartbeat: Callable[[], NewestHeartbeat | None] = lambda: None,
    ) -> None:
        """`wake`: called from any thread when a pass is requested. `last_heartbeat`: reads the newest heartbeat from
        before this process started. The stream begins after it, so without it a stopped mirror looks like a new one."""
        self.flow = reconcile.settings.flow
        self._report, self._last_heartbeat = Report(Plan(self.flow)), last_heartbeat
        self.reconcile, self._metrics, self._clock = reconcile, metrics, clock
        self.mailbox, self._retries = Mailbox(wake), RetrySchedule()
        self._passes = 0
        self._known = KnownStatus(reconcile.settings)
        self._preflight: Preflight | None = None
        self._preflight_at, self._no_preflight_since = clock(), utc_now()
        self._watched_at = float("-inf")
        self.beside_another = False
        self.verify: VerifyStatus | None = None

    def query_trouble(self, reason: str | None) -> None:
        """Note the state of the streaming query. `reason`: why it does not run; None if it runs."""
        self._known.query(reason)

    def due_at(self) -> float:
        """Returns when the next pass is due if no signal, batch or request comes, in monotonic seconds."""
        if self.stands_by:
            return self._clock() + STANDS_BY_FOR
        # What the last report says is of no use after a failure, which may have cost a signal or a request.
        return self._retries.not_before if self._retries.failures else self._report.due

    @property
    def wants_stream(self) -> bool:
        """Whether a group waits for records of MM2 that the stream has not delivered yet."""
        return self._report.stream_moved

    def step(self, heartbeats: NewestHeartbeat | None, *, everything: bool = False) -> FlowStatus:
        """Run one pass if it is due, and return the status. An error of the flow goes into the status and is not
        raised."""
        if heartbeats is None and not self._passes:
            with suppress(LockstepError):
                heartbeats = self._last_heartbeat()
        if heartbeats is not None:
            self._known.heartbeat(heartbeats)
        if self._retries.is_due(self._clock()) or self.mailbox.has_request():
            self._passes += 1
            with in_pass(self.flow.name, self._passes):
                self._run(self.mailbox.take(), everything)
        status = self.status()
        self._metrics.status(status)
        return status

    def _run(self, mail: Mail, everything: bool) -> None:
        try:
            self._adopt(mail)
            report = self.reconcile.run_pass(mail.requested, everything or mail.everything)
        except NotLeading as error:
            self.mailbox.owe(mail)
            self._stands_by(error)
        except LockstepError as error:
            self.mailbox.owe(mail)
            self._failed(error, str(error))
        except Exception as error:
            self.mailbox.owe(mail)
            log.exception("%s: a defect of Lockstep's, please report it", self.flow.name)
            self._failed(error, f"{type(error).__name__}: {error} (a defect of Lockstep's; its log has the details)")
        else:
            self._succeeded(report)
        finally:
            self.mailbox.done(mail.number)

    def _adopt(self, mail: Mail) -> None:
        """Take over new settings. A call that fails is tried again with the next pass."""
        calls, changes = list(mail.calls), list(mail.changes)
        build = mail.build
        try:
            if build is not None:
                before, self.reconcile = self.reconcile, build()
                build = None
                self._known.renew(self.reconcile.settings)
                self._retries.succeeded()
                before.close(replaced=True)
            while calls:
                calls[0]()
                del calls[0]
            if changes:
                self.reconcile.note_settings(changes)
                changes.clear()
        finally:
            self.mailbox.give_back(build, calls, changes)

    def _stands_by(self, error: NotLeading) -> None:
        self._retries.succeeded()
        self.beside_another = error.live
        if self._known.stands_by(str(error), self.reconcile.failover):
            log.info("%s: %s", self.flow.name, error)

    def _failed(self, error: Exception, reason: str) -> None:
        self._metrics.count_failure(self.flow, error)
        passing = isinstance(error, NoAnswer)
        interval = self.reconcile.settings.pace.full_comparison_interval
        wait = self._retries.failed(self._clock(), at_least=0.0 if passing else interval)
        if self._known.failed(error, reason, utc_now(), self.reconcile.failover):
            log.error("%s: %s (tried again in %.0f s)", self.flow.name, reason, wait)

    def _succeeded(self, report: Report) -> None:
        if self._known.error is not None:
            log.info("%s: works again", self.flow.name)
        self.beside_another = False
        self._retries.succeeded()
        for warning in report.warnings:
            if warning not in self._report.warnings:
                log.warning("%s: %s", self.flow.name, warning)
        self._report = report
        if report.caught_up_ms is not None:
            self._known.heartbeat(NewestHeartbeat(report.caught_up_ms))
        self._metrics.report(report)
        for outcome in report.outcomes:
            if outcome.error:
                log.warning("%s: %s %s: %s", self.flow.name, outcome.change.op, outcome.change.label, outcome.error)
        if self._known.succeeded(report, utc_now()):
            log.info("%s: %s", self.flow.name, self.status().reason or "all of MM2's internal topics are there")

    def status(self) -> FlowStatus:
        known, made = self._known.status(self.reconcile.leadership.leader), self._preflight
        age, interval = self._clock() - self._preflight_at, self.reconcile.settings.failover.preflight_interval
        unchecked = not_checked(made, age, interval, self._no_preflight_since)
        return replace(
            known, failover=replace(known.failover, preflight=made, not_checked=unchecked), verify=self.verify
        )

    def note_preflight(self, made: Preflight | None) -> None:
        """Keep the result of the newest preflight; None drops the last one."""
        if made is not None or self._preflight is not None:
            if made is None:
                self._no_preflight_since = utc_now()
            self._preflight_at = self._clock()
            self._preflight = made
            self._metrics.preflight(self.status())

    def note_watched(self) -> None:
        """Note that a client reads the page or the status now. Thread-safe."""
        self._watched_at = self._clock()

    @property
    def is_watched(self) -> bool:
        return self._clock() < self._watched_at + WATCHED_FOR

    def check_lead(self) -> None:
        """Check the lease, right before a write outside of a pass. Raises NotLeading, ClusterUnreachable."""
        self.reconcile.leadership.check()

    @property
    def leads(self) -> bool:
        """Whether this process leads the flow, by a lease that was confirmed a moment ago."""
        leader = self.reconcile.leadership.leader
        return leader is not None and leader.here

    @property
    def stands_by(self) -> bool:
        """Whether another process leads the flow, or did a moment ago."""
        return self._known.standby is not None

    def request_pass(self, topics: Collection[str], wait: float) -> bool:
        """Ask for a pass that compares these upstream topics (none: all), and wait up to `wait` seconds for it.

        Returns True once such a pass is done. Returns False if none was done in time, if the flow is in error, or if
        another process leads it. `wait=0` only asks.
        """
        return self.mailbox.request_pass(topics, wait) and self._known.error is None and not self.stands_by

    def close(self) -> None:
        self.reconcile.close()


Build = Callable[[], FlowReconcile]
"""Builds the passes of a flow."""


@dataclass(frozen=True)
class Mail:
    """The requests that one pass takes from the mailbox."""

    requested: frozenset[str] = frozenset()
    """Upstream topics to compare."""
    everything: bool = False
    """Compare everything."""
    build: Build | None = None
    """Rebuild the flow with this first."""
    calls: tuple[Callable[[], None], ...] = ()
    """Called first, to reconfigure plug-ins."""
    changes: tuple[SettingChange, ...] = ()
    """Changed settings to audit."""
    number: int = 0
    """Number of the pass."""


class Mailbox:
    """Requests to the next pass. Thread-safe. A pass gives back the requests that it could not carry out."""

    def __init__(self, wake: Callable[[], None] = lambda: None) -> None:
        """`wake`: called once a request is queued."""
        self._wake = wake
        self._changed = threading.Condition()
        self._new = self._owed = Mail()
        """Requests since the last pass began, and requests that this pass could not carry out."""
        self._begun = self._done = 0

    def renew(self, build: Build, changes: Sequence[SettingChange]) -> None:
        """Have the next pass rebuild the flow first, and audit the changed settings."""
        with self._changed:
            # Earlier calls were for plug-ins of what is replaced, and closed, before they could be made.
            self._new = replace(self._new, build=build, calls=(), changes=(*self._new.changes, *changes))
            self._owed = replace(self._owed, build=None, calls=())
        self._wake()

    def add_call(self, call: Callable[[], None], changes: Sequence[SettingChange]) -> None:
        """Have the next pass make this call first, audit the changed settings, and compare everything."""
        with self._changed:
            calls, both = (*self._new.calls, call), (*self._new.changes, *changes)
            self._new = replace(self._new, everything=True, calls=calls, changes=both)
        self._wake()

    def add_changes(self, changes: Sequence[SettingChange]) -> None:
        """Have the next pass audit changed settings. The flow itself does not read them."""
        with self._changed:
            self._new = replace(self._new, changes=(*self._new.changes, *changes))

    def take(self) -> Mail:
        with self._changed:
            self._begun += 1
            owed, new = self._owed, self._new
            self._new = self._owed = Mail()
            return Mail(
                owed.requested | new.requested,
                owed.everything or new.everything,
                new.build or owed.build,
                (*owed.calls, *new.calls),
                (*owed.changes, *new.changes),
                self._begun,
            )

    def give_back(
        self, build: Build | None, calls: Sequence[Callable[[], None]], changes: Sequence[SettingChange]
    ) -> None:
        """Put back what a pass could not do, before later requests. A newer `build` replaces the old one and its
        calls."""
        with self._changed:
            if self._new.build is None:
                self._owed = replace(self._owed, build=build, calls=tuple(calls))
            self._owed = replace(self._owed, changes=tuple(changes))

    def owe(self, mail: Mail) -> None:
        """Note that the pass failed. The next pass compares what this one should have compared."""
        with self._changed:
            self._owed = replace(self._owed, requested=mail.requested, everything=mail.everything)

    def has_request(self) -> bool:
        """Whether a pass was requested. Work left by a failed pass is no request: the next pass does it."""
        with self._changed:
            return bool(self._new.requested) or self._new.everything or self._new.build is not None

    def done(self, number: int) -> None:
        with self._changed:
            self._done = number
            self._changed.notify_all()

    def request_pass(self, topics: Collection[str], wait: float) -> bool:
        """Ask for a pass that compares these upstream topics (none: all). Returns whether one was done within `wait`
        seconds."""
        with self._changed:
            asked, everything = self._new.requested.union(topics), self._new.everything or not topics
            self._new = replace(self._new, requested=asked, everything=everything)
            goal = self._begun + 1
            self._wake()
            return self._changed.wait_for(lambda: self._done >= goal, timeout=wait)


# Which flow and which of its passes a log line is about, for formats that say it.


class PassOf(NamedTuple):
    """The name of a flow, and the number of its pass since the job started."""

    flow: str
    number: int


_CURRENT: ContextVar[PassOf | None] = ContextVar("pass", default=None)


@contextmanager
def in_pass(flow: str, number: int) -> Iterator[None]:
    """Mark the log lines of this thread inside the `with` block as belonging to this pass."""
    token = _CURRENT.set(PassOf(flow, number))
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current_pass() -> PassOf | None:
    return _CURRENT.get()
