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
    """What stopped kinds in one pass, by kind. `faulted`: the reason. `unsupported`: a cluster does not have the kind.

    `held`: the reason why changes wait until a person confirms them; other changes of the kind go on. `remedies`: what
    to do about the first two, where that is known.
    """

    faulted: dict[Kind, str] = field(default_factory=dict)
    unsupported: dict[Kind, str] = field(default_factory=dict)
    held: dict[Kind, str] = field(default_factory=dict)
    remedies: dict[Kind, str] = field(default_factory=dict)

    def note(self, kinds: frozenset[Kind], error: LockstepError) -> None:
        """Note an error of these kinds. The first reason of each kind stays."""
        found = self.unsupported if isinstance(error, NotSupported) else self.faulted
        for kind in kinds:
            if kind not in found and error.remedy:
                self.remedies[kind] = error.remedy
            found.setdefault(kind, str(error))

    def note_waiting(self, kind: Kind, stopped: str | None, held: str | None) -> None:
        """Note why a kind waits for a person: `stopped` as a whole, `held` in part; None: it does not."""
        for reasons, reason in ((self.faulted, stopped), (self.held, held)):
            if reason:
                reasons[kind], self.remedies[kind] = reason, CONFIRM

    def stops(self, kind: Kind) -> bool:
        """Whether some change of the kind is not written."""
        return kind in self.faulted or kind in self.held


@dataclass(frozen=True)
class Report:
    """Result of one pass.

    `everything`: the pass compared all items of both sides. `polled`: topics whose configs it polled. `trouble`: what
    stopped kinds. `idle`: kinds that were paused or rested. `paused`: kinds that `lockstep pause` stopped.
    `missing_topics`: MM2's internal topics that do not exist yet, each with its cluster. `seconds`: by phase. `groups`:
    None if groups are not compared. `effective`: configs that differ in effect, of all topics. `listed`: topics of both
    clusters. `now`: monotonic seconds at its start. `due`: when the next pass is due without any other reason.
    `stream_moved`: a group waits for records of MM2 that the stream has not brought yet. `failover`: its state by the
    ledger. `ended`: why Lockstep writes nothing for the flow any more; all kinds are paused then. `warnings`: probable
    mistakes in the file. `caught_up_ms`: see `SourceEndOffsetStore`.
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
    """Gets the report of every pass. Must not block, and must not raise."""

    def passed(self, report: Report) -> None:
        """Called at the end of each pass, from the thread of the pass."""

    def due_at(self, now: float) -> float:
        """When it wants a pass without any other reason, in monotonic seconds; infinite: never."""

    def close(self, *, replaced: bool) -> None:
        """Release its resources. `replaced`: another observer takes over, and its first pass waits for this call."""


def notify(observers: Sequence[Observer], report: Report) -> None:
    """Call each observer. An exception of an observer is logged; the pass is recorded already."""
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
