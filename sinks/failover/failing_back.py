"""The way back after a failover: what the source alone has, the flow the other way round, and mirroring again."""

from __future__ import annotations

from collections.abc import Callable

from sinks.failover.fence_lifting import check_liftable
from sinks.failover.record import FailoverRecord, NotNow
from sinks.failover.reverse_flow import check_source_leads
from sinks.failover.scene import Scene
from sinks.failover.states import Command, State, Step
from sinks.failover.unreplicated import Unreplicated, unreplicated
from streaming.number_of import number_of

Export = Callable[[Unreplicated], None]
"""Hands the records on, somewhere that lasts."""


def failback(
    scene: Scene,
    *,
    export: Export | None,
    discard: int | None,
    write_reverse: Callable[[], None],
    take_over: bool = False,
) -> FailoverRecord:
    """Counts what the source alone has, insists that it is dealt with, and writes the flow the other way round.

    Raises NotNow where records are left and neither exported nor discarded, LockstepError.
    """
    if done := scene.journal.has_done(State.REVERSING):
        return done
    found: list[Unreplicated] = []

    def count() -> None:
        found[:] = [unreplicated(scene)]
        scene.say(describe(scene, found[0]))

    steps = {**scene.steps(), Step.COUNT_LOST: count, Step.WRITE_REVERSE: write_reverse}
    record = scene.journal.record
    if record.doing is not Command.REVERSE:
        scene.journal.begin(Command.INVALIDATE, take_over=take_over)
        scene.journal.run(steps)
        _deal_with(scene, found[0], export, discard)
    scene.journal.begin(Command.REVERSE, take_over=take_over)
    return scene.journal.run(steps)


def _deal_with(scene: Scene, found: Unreplicated, export: Export | None, discard: int | None) -> None:
    if found.problems:
        where, why = next(iter(found.problems.items()))
        raise NotNow(f"of {number_of(len(found.problems), 'partition')} nobody can tell, {where} among them: {why}")
    if not found.count:
        return
    if export is not None:
        export(found)
    elif discard is None or discard < found.count:
        raise NotNow(
            f"{scene.settings.flow.source} has {number_of(found.count, 'record')} that never reached "
            f"{scene.settings.flow.target}: hand them on with --export FOLDER, or say --discard {found.count}"
        )


def describe(scene: Scene, found: Unreplicated) -> str:
    """What was counted, for people."""
    topics = ", ".join(f"{topic} {count}" for topic, count in found.by_topic().items())
    most = "" if found.exact else "at most "
    records = f"{most}{number_of(found.count, 'record')} on {scene.settings.flow.source}"
    return f"{records} never reached {scene.settings.flow.target}{': ' + topics if topics else ''}"


def check_resume(scene: Scene, typed: str | None = None) -> None:
    """Whether `resume` may begin, or go on; writes nothing. Raises NotNow, FenceUnclear, LockstepError."""
    if scene.journal.record.state is not State.REVERSING:
        raise NotNow(f"the flow is {scene.journal.record.describe()}: only one that is REVERSING can mirror again")
    if scene.journal.record.doing is not Command.RESUME:
        check_source_leads(scene, typed)
    check_liftable(scene)


def resume(scene: Scene, *, typed: str | None = None, take_over: bool = False) -> FailoverRecord:
    """The source leads again: the fence goes, and the flow is kept in step as before.

    `typed`: the state of the flow the other way round, by whoever knows that the source leads although it was not cut
    over. Raises NotNow, FenceUnclear, LockstepError.
    """
    if done := scene.journal.has_done(State.MIRRORING):
        return done
    check_resume(scene, typed)
    scene.journal.begin(Command.RESUME, take_over=take_over)
    return scene.journal.run(scene.steps())
