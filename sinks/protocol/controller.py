"""What a pass is made of: controllers, each of which keeps one or a few kinds of resources that are polled together.

A pass (`sinks.engine.reconcile`) calls a controller's methods in this order:

1. `poll`: does anything differ? As cheaply as possible.
2. `compare`: if so, what is to be changed? The answer is a `Comparison`, values alone.
3. `look_up`: are these items really gone on the source? Only before deletions.
4. `before_writing` and `settle`: around the writes, where it compared.
5. `status`: how do its kinds stand?

No controller writes, backs off, waits for what it created, or guards deletions: the engine does that for every kind.
What a controller keeps between two passes is cheap to lose: after a restart everything is compared once more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Protocol, runtime_checkable

from sinks.ledger.adoption import Alike
from sinks.ledger.ledger import Ledger
from sinks.model.changes import Change, Key, Kind, Outcome
from sinks.model.effective_drift import DriftGroup
from sinks.model.plan import Plan, Refusal, Unobserved
from sinks.protocol.agenda import Agenda
from sinks.protocol.listing import Listed
from streaming.hints import CheckpointSeen, SyncSeen


@dataclass(frozen=True)
class PassContext:
    """What a pass knows when its controllers poll.

    `now`: monotonic seconds. `signalled`: changes that the source's metadata log tells of, since this controller was
    polled; `signal_works`: whether none means that nothing changed. `requested`: upstream topics that were asked for.
    `everything`: compare all of both sides. `idle`: kinds that are paused, disabled, or wait for their interval.
    `confirming`: kinds of which deletions wait for another comparison, which is due. `agenda`: the flow's.
    """

    now: float
    listed: Listed
    ledger: Ledger
    signalled: int = 0
    signal_works: bool = False
    requested: Collection[str] = ()
    everything: bool = False
    idle: frozenset[Kind] = frozenset()
    confirming: frozenset[Kind] = frozenset()
    agenda: Agenda = field(default_factory=Agenda)


class Sighting(Enum):
    """What the source says of an item that the target has too much of, asked for that item by its name."""

    GONE = auto()
    """The source has it no more."""
    WANTED = auto()
    """The source has it, and the target should have it as well: the list that lacked it was stale."""
    LEFT_OUT = auto()
    """The source has it. Only the settings say that the target should not."""
    BEHIND = auto()
    """The broker that lacks it does not know yet what others know. No controller says so itself."""
    RENAMED = auto()
    """The source may have it under a name that the settings do not tell any more. No controller says so itself."""


@dataclass(frozen=True)
class Wanted:
    """What a flow wants of a kind that it owns: without this none of its deletions leaves (`sinks.engine.deletions`).

    `keys`: on the target. `shown`: how many `items` its source shows. `owned`: what other flows into the target are
    told that this one owns. `kept`: keys that it may own, and deletes in no case.
    """

    kind: Kind
    keys: Collection[Key]
    shown: int
    items: str
    owned: Collection[Key] = ()
    kept: Collection[Key] = ()


@dataclass(frozen=True)
class Comparison:
    """What differs now. Until it is settled a comparison counts as not made: what differed is compared again.

    `present`: by kind, all that the target has of it, each with its topic's id or "". Kinds that were not seen
    in full are left out. `wanted`: None where the source was not seen. `compared`: what was compared, remote topics
    or groups, with which keys begin; None: everything.
    """

    plan: Plan
    present: Mapping[Kind, Mapping[Key, str]] = field(default_factory=dict)
    wanted: Wanted | None = None
    compared: Collection[str] | None = None


class GroupRow(Protocol):
    """A partition of a group, as far as everybody may see it."""

    @property
    def group(self) -> str: ...

    @property
    def topic(self) -> str:
        """Where the group would continue."""

    @property
    def verdict(self) -> str: ...

    def as_json(self) -> dict[str, Any]:
        """One row of `lockstep offsets`."""


@dataclass(frozen=True)
class GroupSummary:
    """How consumer groups stand. `verdicts`: partitions of groups by verdict's name; `bounds`: by group, the most
    records that it reads twice in one of its partitions; `rows`: all partitions, in no order. `refused`: how many
    offset-syncs and checkpoints could not be true."""

    verdicts: Mapping[str, int]
    bounds: Mapping[str, int]
    rows: Sequence[GroupRow] = ()
    refused: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class ControllerStatus:
    """What a controller knows of besides this pass's plan: refused changes that wait, what could not be observed, and
    kinds that a cluster does not support, each with the reason. `effective`: configs that differ in effect, of all
    topics. `polled`: how many items this pass polled. `due`: when the controller is to be polled again without any
    other reason, in monotonic seconds. `stream_moved`: MM2 wrote something that the stream has not brought yet.
    `warnings`: what the file most likely does not mean, as `FlowStatus.reason` has it."""

    refused: Sequence[Refusal] = ()
    errors: Sequence[Unobserved] = ()
    unsupported: Mapping[Kind, str] = field(default_factory=dict)
    groups: GroupSummary | None = None
    effective: Sequence[DriftGroup] = ()
    polled: int = 0
    due: float = float("inf")
    stream_moved: bool = False
    warnings: Sequence[str] = ()


class Controller(Protocol):
    """Keeps one or a few kinds of one flow.

    `poll` and `compare` raise `LockstepError`: what concerns this controller's kinds alone stops them and no others
    (`sinks.engine.kind_trouble`).
    """

    @property
    def kinds(self) -> frozenset[Kind]: ...

    def poll(self, context: PassContext) -> bool:
        """Looks as cheaply as it can; whether `compare` has anything to do."""

    def compare(self, context: PassContext) -> Comparison:
        """Reads both sides; the changes that the target needs now. Backed-off changes are among them."""

    def look_up(self, context: PassContext, keys: Collection[Key]) -> Mapping[Key, Sighting]:
        """Asks the source afresh for what the target should have no more, by name. What is not in the answer is not
        known."""

    def before_writing(self, plan: Plan) -> None:
        """Called right before any of this plan is written, which has these kinds' changes that are not backed off."""

    def settle(self, context: PassContext, plan: Plan, outcomes: Sequence[Outcome]) -> None:
        """Called with the outcomes of that plan's changes, with none where there was nothing to write."""

    def status(self, context: PassContext) -> ControllerStatus:
        """For the report, at the end of every pass."""

    def alike(self, context: PassContext) -> Mapping[Kind, Alike]:
        """By kind, what the last comparison found on the target just as the source has it, made by any client.

        Asked where it is to be adopted.
        """

    def close(self) -> None:
        """Lets go of its clients."""


class Writer(Protocol):
    """Writes changes of one kind to the target."""

    def write(self, changes: Sequence[Change]) -> list[Outcome]:
        """An outcome for each change, and for what was tried apart. Raises LockstepError for what concerns all."""


@runtime_checkable
class StreamListener(Protocol):
    """A controller that takes in what MM2 wrote to its topics."""

    def take_in(self, syncs: Collection[SyncSeen], checkpoints: Collection[CheckpointSeen]) -> None:
        """What a micro-batch brought; called from the batch's thread."""


@runtime_checkable
class SignalExplainer(Protocol):
    """A controller that can tell which records of the source's metadata log its own differences are."""

    @property
    def explained(self) -> int:
        """Of the records that were signalled, how many the last poll found the changes of: others need not look for
        these at once."""
