"""The result of a pass as values for status, metrics, audit and observers, and the reach of each error.

| error                                             | stops                                               |
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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sinks.every_kind.comparison import Comparison, GroupSummary
from sinks.every_kind.controller import Controller, PassContext
from sinks.every_kind.listing import Listed
from sinks.failover.preflight import FailoverStatus
from sinks.faults import (
    CoordinatorUnavailable,
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
    """Whether an error stops the whole flow. Otherwise it stops only the kind that met it."""
    return isinstance(error, FLOW_WIDE) and not isinstance(error, CoordinatorUnavailable)


@dataclass
class KindTrouble:
    """The errors that stopped kinds in one pass, by kind."""

    faulted: dict[Kind, str] = field(default_factory=dict)
    """The reason of an error."""
    unsupported: dict[Kind, str] = field(default_factory=dict)
    """Why a cluster does not have the kind."""
    held: dict[Kind, str] = field(default_factory=dict)
    """Why changes wait until a person confirms them; other changes of the kind go on."""
    remedies: dict[Kind, str] = field(default_factory=dict)
    """What to do about `faulted` and `unsupported`, where that is known."""

    def note(self, kinds: frozenset[Kind], error: LockstepError) -> None:
        """Note an error of these kinds. The first reason of each kind stays."""
        found = self.unsupported if isinstance(error, NotSupported) else self.faulted
        for kind in kinds:
            if kind not in found and error.remedy:
                self.remedies[kind] = error.remedy
            found.setdefault(kind, str(error))

    def note_waiting(self, kind: Kind, stopped: str | None, held: str | None) -> None:
        """Note why a kind waits for a person. `stopped`: the whole kind waits; `held`: a part of it; None: it does
        not."""
        for reasons, reason in ((self.faulted, stopped), (self.held, held)):
            if reason:
                reasons[kind], self.remedies[kind] = reason, CONFIRM

    def stops(self, kind: Kind) -> bool:
        """Whether the pass does not write some change of the kind."""
        return kind in self.faulted or kind in self.held


@dataclass(frozen=True)
class Report:
    """Result of one pass."""

    plan: Plan
    outcomes: tuple[Outcome, ...] = ()
    everything: bool = False
    """The pass compared all items of both sides."""
    polled: int = 0
    """Number of topics whose configs it polled."""
    trouble: KindTrouble = field(default_factory=KindTrouble)
    """The errors that stopped kinds."""
    paused: frozenset[Kind] = frozenset()
    """Kinds that `lockstep pause` stopped."""
    idle: frozenset[Kind] = frozenset()
    """Kinds that were paused or at rest."""
    missing_topics: tuple[str, ...] = ()
    """MM2's internal topics that do not exist yet, each with its cluster."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Duration of each phase."""
    groups: GroupSummary | None = None
    """None if the pass does not compare groups."""
    effective: tuple[DriftGroup, ...] = ()
    """Configs that differ in effect, of all topics."""
    listed: Listed | None = None
    """Topics of both clusters."""
    now: float = 0.0
    """Start of the pass, in monotonic seconds."""
    ended: str | None = None
    """Why Lockstep no longer writes anything for the flow; all kinds are paused then."""
    failover: FailoverStatus = field(default_factory=FailoverStatus)
    """State of the failover by the ledger."""
    due: float = float("-inf")
    """When the next pass is due on its own."""
    stream_moved: bool = False
    """A group waits for records of MM2 that the stream has not delivered yet."""
    warnings: tuple[str, ...] = ()
    """Probable mistakes in the properties file."""
    caught_up_ms: int | None = None
    """See `SourceEndOffsetStore`."""


class Observer(Protocol):
    """Gets the report of every pass. Must not block, and must not raise."""

    def passed(self, report: Report) -> None:
        """Called at the end of each pass, from the thread of the pass."""

    def due_at(self, now: float) -> float:
        """Returns when the observer wants a pass on its own, in monotonic seconds; infinite: never."""

    def close(self, *, replaced: bool) -> None:
        """Release its resources. `replaced`: another observer takes over, and its first pass waits for this call."""


def notify(observers: Sequence[Observer], report: Report) -> None:
    """Call each observer. Log an exception of an observer, because the pass is recorded already."""
    name = report.plan.flow.name
    for observer in observers:
        try:
            observer.passed(report)
        except LockstepError as error:
            log.warning("%s: %s", name, error)
        except Exception:
            log.exception("%s: a defect of Lockstep's, please report it", name)


PHASES = ("observe", "plan", "apply", "record")


@dataclass(frozen=True)
class Compared:
    """Result of a comparison, before anything is written. `marks`: when its first phase began, and when each ended."""

    context: PassContext
    plan: Plan
    comparisons: Sequence[tuple[Controller, Comparison]]
    trouble: KindTrouble
    marks: list[float]

    @property
    def waiting(self) -> tuple[Refusal, ...]:
        """Deletions that a later comparison may confirm."""
        return tuple(one for one in self.plan.refused if one.passing)
