"""Values that the controller of a kind returns in a pass: result of the poll, comparison, what the flow wants,
status."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from sinks.ledger.adoption import Alike
from sinks.ledger.ownership import Entries
from sinks.model.changes import Key, Kind
from sinks.model.effective_drift import DifferingConfig, DriftGroup
from sinks.model.plan import Plan, Refusal, Unobserved
from sinks.model.times import NEVER_AT


@dataclass(frozen=True)
class Polled:
    """Result of a poll."""

    differs: bool
    """Whether there is something to compare."""
    due: float = NEVER_AT
    """When the next poll is due on its own, in monotonic seconds."""
    due_if_refused: float = NEVER_AT
    """When it is due while a change is refused."""
    inputs: object = None
    """Other inputs of a comparison besides its keys. If they change, everything is compared."""
    keys: Mapping[str, str] | None = None
    """All keys, each with its item's name on the target; None: the kind is one list."""
    comparable: Collection[str] | None = None
    """Keys that can be compared now; None: all."""
    compares_twice: bool = True
    """Whether each full comparison compares a few keys once more, in turns."""
    possible: bool = True
    """Whether anything can be compared now."""
    polled: int = 0
    """Number of polled items."""
    explained: int = 0
    """Number of records of the source's metadata log that the differences explain."""
    refused: Sequence[Refusal] = ()
    """Changes that the target would not accept."""
    errors: Sequence[Unobserved] = ()
    """Items that the source hides or that the target does not show yet."""


@dataclass(frozen=True)
class Wanted:
    """The items of a kind that a flow wants on the target. Without this value Lockstep deletes nothing of the kind
    (`sinks.engine.deletion_checks`)."""

    kind: Kind
    keys: Collection[Key]
    """Keys that the target should have."""
    shown: int
    """Number of items that the source shows."""
    items: str
    """The word for these items in messages."""
    owned: Collection[Key] = ()
    """Keys that other flows into the target may treat as owned by this flow."""
    kept: Collection[Key] = ()
    """Keys that the flow never deletes, even if it owns them."""


@dataclass(frozen=True)
class Comparison:
    """The differences of one comparison. They count only once the agenda has noted them; until then the comparison is
    made again."""

    plan: Plan
    present: Mapping[Kind, Mapping[Key, str]] = field(default_factory=dict)
    """Every item on the target by kind, with its topic's id or "". Lacks kinds that were not listed in full."""
    wanted: Wanted | None = None
    """None if the source was not observed."""
    covered: Mapping[str, str] | None = None
    """The compared keys, each with its item's name on the target; None: the whole list."""
    again: Collection[str] = ()
    """Keys to compare again in the next pass."""
    unobserved: Mapping[str, Unobserved] = field(default_factory=dict)
    """Why a key could not be compared."""
    refused: Mapping[str, Sequence[Refusal]] = field(default_factory=dict)
    """Changes that the target would not accept, by key."""
    drifts: Mapping[str, Sequence[DifferingConfig]] = field(default_factory=dict)
    """Configs that differ in effect although there is nothing to write, by key."""
    unsupported: str | None = None
    """Why a cluster does not have the kind."""
    alike: Alike = field(default_factory=Alike)
    """Items that both sides have alike."""
    remembered: Entries = field(default_factory=dict)
    """Entries for the ledger."""

    def with_plan(self, plan: Plan) -> Comparison:
        """Returns the comparison with this plan, which refuses some of its changes."""
        if self.covered is None:
            return replace(self, plan=plan)
        keys, refused = {name: key for key, name in self.covered.items()}, dict(self.refused)
        for row in plan.refused[len(self.plan.refused) :]:
            if (key := keys.get(row.key[0])) is not None:
                refused[key] = (*refused.get(key, ()), row)
        return replace(self, plan=plan, refused=refused)


class GroupRow(Protocol):
    """One partition of a group, as `status` and the page show it."""

    @property
    def group(self) -> str: ...

    @property
    def topic(self) -> str:
        """The topic where the group would continue."""

    @property
    def verdict(self) -> str: ...

    def as_json(self) -> dict[str, Any]:
        """Returns one row of `lockstep offsets`."""


@dataclass(frozen=True)
class GroupSummary:
    """State of the consumer groups."""

    verdicts: Mapping[str, int]
    """Number of partitions by verdict."""
    bounds: Mapping[str, int]
    """Most records that a group reads twice in one partition, by group."""
    rows: Sequence[GroupRow] = ()
    """All partitions, unsorted."""
    refused: Mapping[str, int] = field(default_factory=dict)
    """Number of offset-syncs and checkpoints whose offsets cannot be true, by reason."""
    unread: str | None = None
    """Why the offsets of a group could not be read; None if all were."""


@dataclass(frozen=True)
class ControllerStatus:
    """The status of a controller's kinds, besides the plan of this pass."""

    refused: Sequence[Refusal] = ()
    """Changes that wait."""
    errors: Sequence[Unobserved] = ()
    """Items that could not be observed."""
    unsupported: str | None = None
    """Why a cluster does not have a kind."""
    groups: GroupSummary | None = None
    effective: Sequence[DriftGroup] = ()
    """Configs that differ in effect, of all topics."""
    polled: int = 0
    """Number of items that this pass polled."""
    due: float = NEVER_AT
    """When the next poll is due on its own, in monotonic seconds."""
    stream_moved: bool = False
    """MM2 wrote records that the stream has not delivered yet."""
    warnings: Sequence[str] = ()
    """Probable mistakes in the properties file, for `FlowStatus.reason`."""
