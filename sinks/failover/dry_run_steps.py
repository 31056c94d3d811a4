"""Foretells for a dry run the steps that commands would take from here, and the topics concerned."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from sinks.failover.fence_notes import own_fences
from sinks.failover.predicted_loss import seen_last
from sinks.failover.scene import Scene
from sinks.failover.unreplicated import counted_topics
from sinks.kinds.offsets.polled_groups import chosen_groups
from sinks.ledger.failover_record import TRANSITIONS, Command, NotNow, State, Step
from sinks.ledger.kept_divergences import divergences
from sinks.model.changes import Kind


@dataclass(frozen=True)
class Foreseen:
    """`steps`: in order, each with its command. `then`: the state after them. `topics`: of the source, sorted."""

    steps: Sequence[tuple[Command, Step]]
    then: State
    topics: Sequence[str]


def foreseen(scene: Scene, commands: Sequence[Command]) -> Foreseen:
    """Returns the steps of commands that follow each other. Commands that cannot begin from here are left out.

    Raises NotNow where none of them could begin, LockstepError.
    """
    record = scene.journal.record
    state, steps = record.state, list[tuple[Command, Step]]()
    for command in commands:
        row = TRANSITIONS.get((state, command))
        if row is None:
            if any(one is not command and TRANSITIONS.get((state, one)) for one in commands):
                continue
            raise NotNow(f"the flow is {record.describe()}, where `{command.typed}` cannot begin")
        steps += [(command, step) for step in row.steps]
        state = row.then
    topics = {topic for command in dict(steps) for topic in _CONCERNED[command](scene)}
    return Foreseen(steps, state, sorted(topics))


def moved_groups(scene: Scene) -> int:
    """Counts the groups that `promote` writes last offsets of, as the source lists them now. Raises LockstepError."""
    if not scene.settings.enabled.get(Kind.GROUP_OFFSET, False):
        return 0
    return len(chosen_groups(scene.settings, scene.source.groups.names()))


def _written(scene: Scene) -> Collection[str]:
    return scene.topics(scene.listed())


def _denied(scene: Scene) -> Collection[str]:
    # `unfence` deletes these even where topics share a name on the target by now.
    return {str(key[1]) for key in own_fences(scene.journal.ledger)}


def _diverged(scene: Scene) -> Collection[str]:
    return counted_topics(scene) if scene.source_answers else divergences(scene.journal.ledger).keys()


_CONCERNED: Mapping[Command, Callable[[Scene], Collection[str]]] = {
    Command.FENCE: _written,
    Command.DRAIN: _written,
    Command.PROMOTE: _written,
    Command.UNFENCE: _denied,
    Command.RESUME: _denied,
    Command.INVALIDATE: _diverged,
    Command.REVERSE: _diverged,
    # The source may be gone.
    Command.FAIL_OVER: lambda scene: seen_last(scene.journal.ledger, scene.settings),
}
