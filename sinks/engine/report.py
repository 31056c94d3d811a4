"""What one pass saw and did, as values for status, metrics, audit and observers, and how far its trouble reaches.

| what is raised                                    | stops                                               |
|---------------------------------------------------|-----------------------------------------------------|
| an item's fault is data (`ItemFault`)             | that item                                           |
| a right, a limit, ...                             | its kind, with the reason; the other kinds go on    |
| a coordinator of groups that does not answer      | its kind                                            |
| an API that the file requires, and a broker lacks | the flow, once the other kinds are written          |
| a cluster that does not answer, or the wrong one  | the flow, until it answers again                    |
| a Java process that has ended                     | the flow, until there is another one                |
| another process that leads the flow               | the flow, until this one leads                      |
| an unexpected exception                           | this pass of this flow (`sinks.engine.flow_task`)   |
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from sinks.every_kind.comparison import Comparison, ControllerStatus, GroupSummary
from sinks.every_kind.controller import Controller, PassContext
from sinks.every_kind.listing import Listed
from sinks.failover.preflight import FailoverStatus
from sinks.faults import (
    CoordinatorUnavailable,
    IncrementalUnsupported,
    LedgerUntrusted,
    NoAnswer,
    NotLeading,
    NotSupported,
    WrongCluster,
)
from sinks.model.changes import Kind, Outcome
from sinks.model.effective_drift import DriftGroup
from sinks.model.plan import CONFIRM, Plan, Refusal
from streaming.errors import LockstepError

log = logging.getLogger(__name__)

FLOW_WIDE = (NoAnswer, WrongCluster, LedgerUntrusted, NotLeading)


def stops_flow(error: LockstepError) -> bool:
    """Whether the flow as a whole cannot go on; else it is the trouble of the kind that met it."""
    return isinstance(error, FLOW_WIDE) and not isinstance(error, CoordinatorUnavailable)


def stops_flow_at_the_end(error: LockstepError) -> bool:
    """Whether the flow is in error once its other kinds are written: KIP-894's `required` fails, as in MM2."""
    return isinstance(error, IncrementalUnsupported)


@dataclass
class KindTrouble:
    """What stopped kinds in one pass: `faulted` with the reason, `unsupported` where a cluster has no such thing.

    `held`: kinds with changes that wait until a person confirms them, with the reason; their other changes go on.
    `remedies`: what to do about the first two, where that is known.
    """

    faulted: dict[Kind, str] = field(default_factory=dict)
    unsupported: dict[Kind, str] = field(default_factory=dict)
    held: dict[Kind, str] = field(default_factory=dict)
    remedies: dict[Kind, str] = field(default_factory=dict)

    def note(self, kinds: frozenset[Kind], error: LockstepError) -> None:
        """Takes down what these kinds met; the first reason of each kind stays."""
        found = self.unsupported if isinstance(error, NotSupported) else self.faulted
        for kind in kinds:
            if kind not in found and error.remedy:
                self.remedies[kind] = error.remedy
            found.setdefault(kind, str(error))

    def note_stopped(self, stopped: Mapping[Kind, str], held: Mapping[Kind, str]) -> None:
        """Takes down which kinds wait until a person confirms something of them, wholly or in part."""
        self.faulted.update(stopped)
        self.held.update(held)
        self.remedies.update(dict.fromkeys((*stopped, *held), CONFIRM))

    def stops(self, kind: Kind) -> bool:
        """Whether something of the kind is not done, for whatever reason."""
        return kind in self.faulted or kind in self.held


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
