"""The interface of a controller, which syncs one kind or a few kinds that it polls together.

A pass (`sinks.engine.reconcile`) calls in this order:

1. `poll`: does anything differ? As cheaply as possible.
2. `survey`: if so, what do both sides have?
3. `difference`: what should the target have, and what differs? Pure; returns a `Comparison`.
4. `Write`: takes changes, returns outcomes.

Two more questions: `second_look` before deletions (are these items really gone on the source?), and `alike` from
`lockstep adopt`.

A controller does not track dirty keys, back-offs, second comparisons, awaited creations or deletion checks. Its agenda
(`sinks.every_kind.kinds_agenda`) and the engine do that for every kind. A controller may lose what it keeps between two
passes: after a restart everything is compared once more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Protocol, runtime_checkable

from sinks.every_kind.comparison import Comparison, ControllerStatus, Polled
from sinks.every_kind.kinds_agenda import KindsAgenda
from sinks.every_kind.listing import Listed
from sinks.every_kind.wishes import NO_OTHERS, OtherDrains
from sinks.ledger.adoption import Alike
from sinks.ledger.ledger import Ledger
from sinks.model.changes import Change, Key, Kind, Outcome
from streaming.hints import CheckpointSeen, SyncSeen


@dataclass(frozen=True)
class PassContext:
    """The input of a pass's polls."""

    now: float
    """Monotonic seconds."""
    listed: Listed
    ledger: Ledger
    signal_works: bool = False
    """Whether the watch of the source's metadata log works. If so, no new record means that nothing changed."""
    requested: Collection[str] = ()
    """Upstream topics that an operator asked to compare."""
    everything: bool = False
    """Compare all items of both sides."""
    idle: frozenset[Kind] = frozenset()
    """Kinds that are paused or at rest."""
    confirming: frozenset[Kind] = frozenset()
    """Kinds with a deletion that waits for the comparison that is due now."""
    beside: OtherDrains = NO_OTHERS
    """What was known of the other flows into the target when the pass began."""


class Sighting(Enum):
    """The source's answer to a question about one item by name, where the target has an item too many."""

    GONE = auto()
    """The source no longer has it."""
    WANTED = auto()
    """The source has it, and the target should have it as well: the listing that lacked it was stale."""
    LEFT_OUT = auto()
    """The source has it, but the settings exclude it from the target."""
    BEHIND = auto()
    """The broker that lacks it lags behind the metadata of other brokers. The engine finds this, no controller."""
    RENAMED = auto()
    """The source may have it under a name that the settings no longer give. The engine finds this, no controller."""


def sightings(keys: Iterable[Key], wanted: Collection[Key], held: Collection[Key]) -> dict[Key, Sighting]:
    """Returns the sighting of each key. `wanted`: the target should have them. `held`: the source has them."""
    return {
        key: Sighting.WANTED if key in wanted else Sighting.LEFT_OUT if key in held else Sighting.GONE for key in keys
    }


class Controller(Protocol):
    """Syncs one kind or a few kinds of one flow. `agenda`: the agenda of these kinds.

    `poll` and `survey` raise LockstepError. An error that concerns only these kinds stops no others
    (`sinks.engine.report`).
    """

    @property
    def kinds(self) -> frozenset[Kind]: ...

    def poll(self, context: PassContext, agenda: KindsAgenda) -> Polled:
        """Find out cheaply whether something changed. Note each difference in the agenda at once, because a poll
        reports it only once."""

    def survey(self, context: PassContext, agenda: KindsAgenda) -> Any:
        """Read both sides, and maybe apply the kind's rules."""

    def difference(self, context: PassContext, seen: Any) -> Comparison:
        """Returns the changes that the target needs, including backed-off ones. Sends no request to a cluster."""

    def second_look(self, context: PassContext, keys: Collection[Key]) -> Mapping[Key, Sighting]:
        """Ask the source by name for items that the target should no longer have. An item without an answer counts as
        unknown."""

    def alike(self, context: PassContext, compared: Comparison) -> Alike:
        """Returns items that both sides have alike, whichever client made them. Called only by `lockstep adopt`."""


Write = Callable[[Sequence[Change]], list[Outcome]]
"""Writes changes of one kind to the target. Returns one outcome per change; several if it tried parts of it one by one.
Raises LockstepError for an error that concerns all changes."""


@runtime_checkable
class StreamFollower(Protocol):
    """The controller of consumer groups, the only one that reads MM2's topics."""

    def take_in(self, syncs: Collection[SyncSeen], checkpoints: Collection[CheckpointSeen]) -> None:
        """Queue the offset-syncs and checkpoints of a micro-batch. Called from the batch's thread."""

    def written(self, context: PassContext, outcomes: Sequence[Outcome]) -> None:
        """Learn the outcomes of the writes of this pass; an empty list if there was nothing to write."""

    def status(self, context: PassContext, agenda: KindsAgenda) -> ControllerStatus:
        """Returns what the report shows, at the end of every pass."""

    def close(self) -> None:
        """Save the state between two full comparisons, and close the clients."""
