"""What a pass is made of: controllers. Each keeps one or a few kinds of resources that are polled together.

A kind is four things. A pass (`sinks.engine.reconcile`) calls them in this order:

1. `poll`: does anything differ? As cheaply as possible.
2. `survey`: if so, what do both sides have?
3. `difference`: what should the target have, and what differs? Pure: the answer is a `Comparison`, values alone.
4. `Write`: changes to outcomes.

Two questions come from elsewhere: `second_look` before deletions (are these items really gone on the source?), and
`alike` from `lockstep adopt`.

No controller keeps what is dirty, backs off, compares again, waits for what it created, or guards deletions. Its agenda
(`sinks.every_kind.kinds_agenda`) and the engine do that for every kind. What a controller keeps between two passes is
cheap to lose: after a restart everything is compared once more.
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
    """What a pass knows when its controllers poll.

    `now`: monotonic seconds. `signal_works`: no signal means that nothing changed. `requested`: upstream topics that an
    operator asked for. `everything`: compare all items of both sides. `idle`: kinds that are paused or rest.
    `confirming`: kinds with a deletion that waits for the comparison that is due now. `beside`: what was known of other
    flows when the pass began.
    """

    now: float
    listed: Listed
    ledger: Ledger
    signal_works: bool = False
    requested: Collection[str] = ()
    everything: bool = False
    idle: frozenset[Kind] = frozenset()
    confirming: frozenset[Kind] = frozenset()
    beside: OtherDrains = NO_OTHERS


class Sighting(Enum):
    """The source's answer about one item by name, where the target has an item too many."""

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


def sightings(keys: Iterable[Key], wanted: Collection[Key], held: Collection[Key]) -> dict[Key, Sighting]:
    """Returns the sighting of each key. `wanted`: the target should have them. `held`: the source has them."""
    return {
        key: Sighting.WANTED if key in wanted else Sighting.LEFT_OUT if key in held else Sighting.GONE for key in keys
    }


class Controller(Protocol):
    """Keeps one kind or a few kinds of one flow in step. `agenda`: the agenda of these kinds.

    `poll` and `survey` raise LockstepError. An error that concerns only these kinds stops no others
    (`sinks.engine.report`).
    """

    @property
    def kinds(self) -> frozenset[Kind]: ...

    def poll(self, context: PassContext, agenda: KindsAgenda) -> Polled:
        """Find out cheaply whether something changed. The agenda is told at once, because a poll reports a difference
        once."""

    def survey(self, context: PassContext, agenda: KindsAgenda) -> Any:
        """Reads both sides, and may apply the kind's rules to what it read."""

    def difference(self, context: PassContext, seen: Any) -> Comparison:
        """Returns the changes that the target needs, including backed-off ones. Asks no cluster."""

    def second_look(self, context: PassContext, keys: Collection[Key]) -> Mapping[Key, Sighting]:
        """Ask the source by name for items that the target should no longer have. An item that the answer lacks is
        unknown."""

    def alike(self, context: PassContext, compared: Comparison) -> Alike:
        """Returns items that both sides have alike, made by any client. Called only by `lockstep adopt`."""


Write = Callable[[Sequence[Change]], list[Outcome]]
"""Writes changes of one kind to the target. Returns an outcome for each change, and for each part that was tried apart.
Raises LockstepError for what concerns all."""


@runtime_checkable
class StreamFollower(Protocol):
    """The controller of consumer groups, the only one that reads MM2's topics."""

    def take_in(self, syncs: Collection[SyncSeen], checkpoints: Collection[CheckpointSeen]) -> None:
        """Queue what a micro-batch brought. Called from the batch's thread."""

    def written(self, context: PassContext, outcomes: Sequence[Outcome]) -> None:
        """Called with the outcomes of what it compared; an empty list if there was nothing to write."""

    def status(self, context: PassContext, agenda: KindsAgenda) -> ControllerStatus:
        """For the report, at the end of every pass."""

    def close(self) -> None:
        """Save what it keeps between two full comparisons, and close its clients."""
