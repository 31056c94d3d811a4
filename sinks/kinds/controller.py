"""What a walk is made of: parts, each of which keeps one or a few kinds of resources that are looked at together.

A part looks cheaply at every walk and says whether anything may differ; only then is it compared in full. It keeps in
memory what is cheap to lose: after a restart everything is compared once more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sinks.engine.effective_drift import DriftGroup
from sinks.engine.ledger import Ledger
from sinks.engine.model import Kind, Outcome
from sinks.engine.plan import Plan, Refusal, Unobserved
from sinks.kinds.offsets.verdicts import Verdict
from sinks.kinds.topics.survey import Listed


@dataclass(frozen=True)
class PassContext:
    """What a walk knows when its parts look.

    `now`: monotonic seconds. `news`: changes that the source's metadata log tells of, `quiet`: whether it is listened
    to. `requested`: upstream topics that somebody asked for. `everything`: compare all of both sides. `idle`: kinds
    that are paused or rest.
    """

    now: float
    listed: Listed
    ledger: Ledger
    news: int = 0
    quiet: bool = False
    requested: Collection[str] = ()
    everything: bool = False
    idle: frozenset[Kind] = frozenset()


@dataclass(frozen=True)
class GroupSummary:
    """How consumer groups stand. `verdicts`: partitions of groups by verdict; `bounds`: by group, the most records that
    it reads twice in one of its partitions."""

    verdicts: Mapping[Verdict, int]
    bounds: Mapping[str, int]


@dataclass(frozen=True)
class ControllerStatus:
    """What a part knows of besides this walk's plan: refused changes that wait, what could not be seen, and kinds that
    a cluster does not support, each with the reason. `effective`: configs in force with two values, of all topics."""

    refused: Sequence[Refusal] = ()
    errors: Sequence[Unobserved] = ()
    unsupported: Mapping[Kind, str] = field(default_factory=dict)
    groups: GroupSummary | None = None
    effective: Sequence[DriftGroup] = ()


class Controller(Protocol):
    """One part of a flow's walk."""

    def look(self, context: PassContext) -> bool:
        """Looks as cheaply as it can; whether `compare` has anything to do. Raises what stops the flow."""

    def compare(self, context: PassContext) -> Plan:
        """The changes that the target needs now, refused ones that must wait left out."""

    def before_writing(self, plan: Plan) -> None:
        """Called with the whole plan before any of it is written."""

    def learn(self, context: PassContext, plan: Plan, outcomes: Sequence[Outcome]) -> None:
        """What became of the whole plan; called after a `compare` alone."""

    def status(self, context: PassContext) -> ControllerStatus:
        """For the report, at the end of every walk."""

    def close(self) -> None:
        """Lets go of its clients."""
