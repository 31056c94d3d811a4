"""What the controller of a kind says in a pass, as values: what its poll found, what differs, what it wants."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from sinks.every_kind.absence import NEVER
from sinks.ledger.adoption import Alike
from sinks.ledger.ownership import Entries
from sinks.model.changes import Key, Kind
from sinks.model.effective_drift import DifferingConfig, DriftGroup
from sinks.model.plan import Plan, Refusal, Unobserved


@dataclass(frozen=True)
class Polled:
    """What a poll found.

    `differs`: whether there is anything to compare. `due`: when the next poll is wanted without any other reason, in
    monotonic seconds; `due_if_refused`: the same while something is refused. `inputs`: what a comparison depends on
    besides its keys. `keys`: all that there are, each with its item's name on the target; None: the kind is one list.
    `comparable`: the keys that can be compared now; None: all. `follows`: whether keys have their turns for a second
    comparison. `possible`: whether anything can be compared before something else changes. `polled`: how many items
    were polled. `explained`: how many of the signalled records the differences explain. `refused`: what the target
    cannot have, whatever is compared. `errors`: what it does not show yet.
    """

    differs: bool
    due: float = NEVER
    due_if_refused: float = NEVER
    inputs: object = None
    keys: Mapping[str, str] | None = None
    comparable: Collection[str] | None = None
    follows: bool = True
    possible: bool = True
    polled: int = 0
    explained: int = 0
    refused: Sequence[Refusal] = ()
    errors: Sequence[Unobserved] = ()


@dataclass(frozen=True)
class Wanted:
    """What a flow wants of a kind that it owns. Without this Lockstep deletes nothing of the kind
    (`sinks.engine.deletion_checks`).

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
    """What differs now. Until the agenda learned from it, it counts as not made: what differed is compared again.

    `present`: by kind, all that the target has of it, each with its topic's id or "". Kinds that were not seen in full
    are left out. `wanted`: None where the source was not seen. `covered`: the keys that were compared, each with its
    item's name on the target; None: the whole list. `again`: keys to compare again in the next pass. `unobserved`: why
    a key could not be compared. `refused`, `drifts`: by key, what the target would not take, and what differs in effect
    though nothing is to be written. `unsupported`: why a cluster has nothing of the kind. `alike`: what the target has
    just as the source has it. `remembered`: what the ledger is to keep.
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

    def refusing(self, kinds: Mapping[Kind, str]) -> Comparison:
        """The comparison with the changes of these kinds refused, each for its reason, until the next one."""
        plan = self.plan.without(kinds, passing=True)
        if self.covered is None:
            return replace(self, plan=plan)
        keys, refused = {name: key for key, name in self.covered.items()}, dict(self.refused)
        for row in plan.refused[len(self.plan.refused) :]:
            if (key := keys.get(row.key[0])) is not None:
                refused[key] = (*refused.get(key, ()), row)
        return replace(self, plan=plan, refused=refused)


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
    """What is known of a controller's kinds besides this pass's plan: refused changes that wait, what could not be
    observed, and why a cluster does not support the kind. `effective`: configs that differ in effect, of all
    topics. `polled`: how many items this pass polled. `due`: when the controller is to be polled again without any
    other reason, in monotonic seconds. `stream_moved`: MM2 wrote something that the stream has not brought yet.
    `warnings`: what the file most likely does not mean, as `FlowStatus.reason` has it."""

    refused: Sequence[Refusal] = ()
    errors: Sequence[Unobserved] = ()
    unsupported: str | None = None
    groups: GroupSummary | None = None
    effective: Sequence[DriftGroup] = ()
    polled: int = 0
    due: float = float("inf")
    stream_moved: bool = False
    warnings: Sequence[str] = ()
