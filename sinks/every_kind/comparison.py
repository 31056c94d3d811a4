"""What the controller of a kind says in a pass, as values: what its poll found, what differs, what it wants."""

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
    """There is something to compare."""
    due: float = NEVER_AT
    """When the next poll is due without any other reason, in monotonic seconds."""
    due_if_refused: float = NEVER_AT
    """The same while a change is refused."""
    inputs: object = None
    """What a comparison depends on besides its keys."""
    keys: Mapping[str, str] | None = None
    """All keys, each with its item's name on the target; None: the kind is one list."""
    comparable: Collection[str] | None = None
    """Keys that can be compared now; None: all."""
    compares_twice: bool = True
    """Keys take turns for a second comparison."""
    possible: bool = True
    """Something can be compared now."""
    polled: int = 0
    """Number of polled items."""
    explained: int = 0
    """How many signalled records the differences explain."""
    refused: Sequence[Refusal] = ()
    """What the target cannot have."""
    errors: Sequence[Unobserved] = ()
    """What the source hides, or the target does not show yet."""


@dataclass(frozen=True)
class Wanted:
    """What a flow wants of a kind that it owns. Without this Lockstep deletes nothing of the kind
    (`sinks.engine.deletion_checks`).

    `keys`: on the target. `shown`: how many `items` its source shows. `owned`: keys that other flows into the target
    may take as owned by this one. `kept`: keys that the flow may own and never deletes.
    """

    kind: Kind
    keys: Collection[Key]
    shown: int
    items: str
    owned: Collection[Key] = ()
    kept: Collection[Key] = ()


@dataclass(frozen=True)
class Comparison:
    """What differs now. Until the agenda has learned it, the comparison counts as not made, and is made again.

    `present`: by kind, every item on the target with its topic's id or "". A kind that was not seen in full is left
    out. `wanted`: None if the source was not seen. `covered`: compared keys, each with its item's name on the target;
    None: the whole list. `again`: keys to compare again in the next pass. `unobserved`: why a key could not be
    compared. `refused`: by key, what the target would not take. `drifts`: by key, what differs in effect although
    nothing is to be written. `unsupported`: why a cluster does not have the kind. `alike`: items that both sides have
    alike. `remembered`: entries for the ledger.
    """

    plan: Plan
    present: Mapping[Kind, Mapping[Key, str]] = field(default_factory=dict)
    wanted: Wanted | None = None
    covered: Mapping[str, str] | None = None
    again: Collection[str] = ()
    unobserved: Mapping[str, Unobserved] = field(default_factory=dict)
    refused: Mapping[str, Sequence[Refusal]] = field(default_factory=dict)
    drifts: Mapping[str, Sequence[DifferingConfig]] = field(default_factory=dict)
    unsupported: str | None = None
    alike: Alike = field(default_factory=Alike)
    remembered: Entries = field(default_factory=dict)

    def with_plan(self, plan: Plan) -> Comparison:
        """Returns the comparison with this plan, which refuses more of the same changes."""
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
        """Where the group would continue."""

    @property
    def verdict(self) -> str: ...

    def as_json(self) -> dict[str, Any]:
        """One row of `lockstep offsets`."""


@dataclass(frozen=True)
class GroupSummary:
    """State of the consumer groups. `verdicts`: number of partitions by verdict. `bounds`: by group, the most records
    that it reads twice in one partition. `rows`: all partitions, unsorted. `refused`: number of offset-syncs and
    checkpoints that could not be true. `unread`: why the offsets of a group could not be read, if there is one."""

    verdicts: Mapping[str, int]
    bounds: Mapping[str, int]
    rows: Sequence[GroupRow] = ()
    refused: Mapping[str, int] = field(default_factory=dict)
    unread: str | None = None


@dataclass(frozen=True)
class ControllerStatus:
    """What a controller knows of its kinds besides the plan of this pass. `refused`: changes that wait. `errors`: what
    could not be observed. `unsupported`: why a cluster does not have a kind.

    `effective`: configs that differ in effect, of all topics. `polled`: number of items that this pass polled. `due`:
    when the next poll is due without any other reason, in monotonic seconds. `stream_moved`: MM2 wrote records that the
    stream has not brought yet. `warnings`: probable mistakes in the file, for `FlowStatus.reason`.
    """

    refused: Sequence[Refusal] = ()
    errors: Sequence[Unobserved] = ()
    unsupported: str | None = None
    groups: GroupSummary | None = None
    effective: Sequence[DriftGroup] = ()
    polled: int = 0
    due: float = NEVER_AT
    stream_moved: bool = False
    warnings: Sequence[str] = ()
