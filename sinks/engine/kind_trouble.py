"""How far trouble reaches: one kind, or the flow. Pure.

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

from collections.abc import Mapping
from dataclasses import dataclass, field

from sinks.faults import (
    CoordinatorUnavailable,
    IncrementalUnsupported,
    LedgerUntrusted,
    NoAnswer,
    NotLeading,
    NotSupported,
    WrongCluster,
)
from sinks.model.changes import Kind
from sinks.model.plan import CONFIRM
from streaming.errors import LockstepError

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
