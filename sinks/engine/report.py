"""What one pass saw and did, as values for status, metrics, audit and observers."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from sinks.engine.kind_trouble import KindTrouble
from sinks.every_kind.comparison import Comparison, ControllerStatus, GroupSummary
from sinks.every_kind.controller import Controller, PassContext
from sinks.every_kind.listing import Listed
from sinks.failover.preflight import FailoverStatus
from sinks.model.changes import Kind, Outcome
from sinks.model.effective_drift import DriftGroup
from sinks.model.plan import Plan, Refusal
from streaming.errors import LockstepError

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Report:
    """`everything`: the pass compared all of both sides. `polled`: topics whose configs it polled.

    `trouble`: what stopped kinds. `idle`: kinds that were paused or waited for their interval, `paused`: the ones
    among them that `lockstep pause` stopped. `missing_topics`: MM2's internal topics that do not exist yet, each
    with its cluster. `seconds`: by phase. `groups`: None where they are not compared. `effective`: configs that
    differ in effect, of all topics, also those that this pass did not compare. `now`: monotonic seconds at its
    start; `due`: when the next pass is wanted without any other reason. `stream_moved`: MM2 wrote something that a
    group waits for.
    `failover`: how far one is, by the ledger. `ended`: why nothing is written for the flow any more; all kinds are
    paused then. `warnings`: what the file most likely does not mean. `caught_up_ms`: as of `SourceEnds`.
    """

    plan: Plan
    outcomes: tuple[Outcome, ...] = ()
    everything: bool = False
    polled: int = 0
    trouble: KindTrouble = field(default_factory=KindTrouble)
    paused: frozenset[Kind] = frozenset()
    idle: frozenset[Kind] = frozenset()
    missing_topics: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    groups: GroupSummary | None = None
    effective: tuple[DriftGroup, ...] = ()
    listed: Listed | None = None
    now: float = 0.0
    ended: str | None = None
    failover: FailoverStatus = field(default_factory=FailoverStatus)
    due: float = float("-inf")
    stream_moved: bool = False
    warnings: tuple[str, ...] = ()
    caught_up_ms: int | None = None


class Observer(Protocol):
    """Gets the report of every pass that ended; must neither wait nor raise what the pass would care about."""

    def passed(self, report: Report) -> None:
        """Called at the end of each pass, from its thread."""

    def due_at(self, now: float) -> float:
        """The time at which it wants a pass without any other reason, on the monotonic clock; infinite: never."""

    def close(self, *, replaced: bool) -> None:
        """Closes what it has. `replaced`: another takes over, and its first pass waits for this."""


def notify(observers: Sequence[Observer], report: Report) -> None:
    """Tells each of them of a pass that is over. What one raises is logged: what the pass did is recorded already."""
    name = report.plan.flow.name
    for observer in observers:
        try:
            observer.passed(report)
        except LockstepError as error:
            log.warning("%s: %s", name, error)
        except Exception:
            log.exception("%s: a defect of Lockstep's, please report it", name)


class Stopwatch:
    """Seconds of each phase of a pass."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, phase: str) -> None:
        """The phase that ends now."""
        now = time.perf_counter()
        self.laps[phase] = now - self._last
        self._last = now


def with_status(plan: Plan, status: Sequence[ControllerStatus]) -> Plan:
    """The plan with what its controllers know of besides: refusals, and what could not be observed."""
    refused = dict.fromkeys((*plan.refused, *(refusal for one in status for refusal in one.refused)))
    errors = dict.fromkeys((*plan.errors, *(error for one in status for error in one.errors)))
    return replace(plan, refused=tuple(refused), errors=tuple(errors))


@dataclass(frozen=True)
class Compared:
    """What differs now, and with whom to settle it. Nothing is written yet."""

    context: PassContext
    plan: Plan
    comparisons: Sequence[tuple[Controller, Comparison]]
    trouble: KindTrouble
    watch: Stopwatch

    @property
    def waiting(self) -> tuple[Refusal, ...]:
        """Deletions that a later comparison may confirm."""
        return tuple(one for one in self.plan.refused if one.passing)
