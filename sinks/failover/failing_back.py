"""The way back after a failover: exports records that only the source has, reverses the flow, then mirrors again."""

from __future__ import annotations

from collections.abc import Callable

from sinks.failover.fencing import check_liftable
from sinks.failover.predicted_loss import ANY_LOSS, TYPED_UNKNOWN
from sinks.failover.scene import Scene
from sinks.failover.unreplicated import Unreplicated, not_copied_back, unreplicated
from sinks.faults import LedgerUntrusted, RightsMissing
from sinks.ledger.failover_record import ENDED, Command, FailoverRecord, NotNow, State, Step
from sinks.ledger.ledger import Ledger
from sinks.ledger.seal import Seal
from streaming.message_words import number_of

Export = Callable[[Unreplicated], None]
"""Stores records that only one cluster has in a durable place."""


def failback(
    scene: Scene,
    *,
    export: Export | None,
    discard: float | None,
    write_reverse: Callable[[], None],
) -> FailoverRecord:
    """Counts records that only the source has, exports or discards them, and writes the reverse flow's file.

    `discard`: how many records may be left behind. ANY_LOSS allows any number, and partitions that could not be
    checked. Raises NotNow if more records are left and `export` is None, LockstepError.
    """
    if done := scene.journal.has_done(State.REVERSING):
        return done
    flow, found = scene.settings.flow, list[Unreplicated]()

    def count() -> None:
        found[:] = [unreplicated(scene)]
        scene.say(describe(found[0], flow.source, flow.target))

    steps = {**scene.steps(), Step.COUNT_LOST: count, Step.WRITE_REVERSE: write_reverse}
    record = scene.journal.record
    if record.doing is not Command.REVERSE:
        scene.journal.begin(Command.INVALIDATE)
        scene.journal.run(steps)
    else:
        # Records may have come since the run that died.
        count()
    _deal_with(found[0], flow.source, flow.target, export, discard)
    scene.journal.begin(Command.REVERSE)
    return scene.journal.run(steps)


def _deal_with(found: Unreplicated, here: str, there: str, export: Export | None, discard: float | None) -> None:
    """Exports the records that only cluster `here` has. Raises NotNow if they may be neither exported nor discarded."""
    if found.problems and discard != ANY_LOSS:
        where, why = next(iter(found.problems.items()))
        unclear = number_of(len(found.problems), "partition")
        raise NotNow(
            f"for {unclear} of {here} it is unknown which records never reached {there}, for example {where}: {why}. "
            f"Mend that, or say --discard {TYPED_UNKNOWN}, and --export FOLDER for what is known"
        )
    if not found.count:
        return
    if export is not None:
        export(found)
    elif discard is None or discard < found.count:
        raise NotNow(
            f"{here} has {number_of(found.count, 'record')} that never reached {there}: hand them on with --export "
            f"FOLDER, or say --discard {found.count}"
        )


def describe(found: Unreplicated, here: str, there: str) -> str:
    """Returns the count in a sentence. Cluster `here` has the records, cluster `there` lacks them."""
    topics = ", ".join(f"{topic} {count}" for topic, count in found.by_topic().items())
    most = "" if found.exact else "at most "
    records = f"{most}{number_of(found.count, 'record')} on {here}"
    return f"{records} never reached {there}{': ' + topics if topics else ''}"


def check_resume(
    scene: Scene, typed: str | None = None, *, export: Export | None = None, discard: float | None = None
) -> None:
    """Checks that `resume` may begin or continue. Writes to no cluster, but may export records. Raises as `resume`."""
    if scene.journal.record.state is not State.REVERSING:
        raise NotNow(
            f"the flow is {scene.journal.record.describe()}: only one that is REVERSING can mirror again. Run "
            "`lockstep failback` first"
        )
    if scene.journal.record.doing is not Command.RESUME:
        check_source_leads(scene, typed)
    check_liftable(scene)
    # Also of a run that died: clients may have written since. What MM2 copies meanwhile is on the source.
    flow, found = scene.settings.flow, not_copied_back(scene)
    if found.count:
        scene.say(f"{describe(found, flow.target, flow.source)}. MM2 does not copy these topics back")
    _deal_with(found, flow.target, flow.source, export, discard)


def resume(
    scene: Scene,
    *,
    typed: str | None = None,
    export: Export | None = None,
    discard: float | None = None,
) -> FailoverRecord:
    """Makes the source lead again: lifts its fence, and the flow mirrors as before.

    `typed`: the reverse flow's state. The operator types it to confirm that the source leads without a cutover.
    `discard`: how many records of clients on the copies, which MM2 does not copy back, may be left behind.
    Raises NotNow if more are left and `export` is None, FenceUnclear, LockstepError.
    """
    if done := scene.journal.has_done(State.MIRRORING):
        return done
    check_resume(scene, typed, export=export, discard=discard)
    scene.journal.begin(Command.RESUME)
    return scene.journal.run(scene.steps())


LEADS = ENDED - {State.FAILING_OVER}
"""States of the reverse flow in which its target has taken over."""


def check_source_leads(scene: Scene, typed: str | None) -> None:
    """Raises NotNow unless the reverse flow was cut over since this failover, or the operator typed its state."""
    flow = scene.settings.flow
    reverse = flow.reverse
    try:
        record, why = reverse_record(scene), "it does not exist"
    except (LedgerUntrusted, RightsMissing) as error:
        record, why = None, str(error)
    # A reverse flow keeps the state of its last cutover until it is led back itself.
    before = record is not None and record.ended_at < scene.journal.record.ended_at
    if record is not None and record.state in LEADS and not before:
        scene.say(f"{flow.source} leads again: {reverse.name} is {record.describe()}")
        return
    word = record.state.value if record else TYPED_UNKNOWN
    if typed == word:
        return
    least = ""
    if record is None:
        topic = scene.settings.internal.reverse_ledger
        said = f"it is unknown whether {flow.source} leads again. The ledger of {reverse.name}, {topic} there: {why}"
    elif record.state is State.MIRRORING:
        said = f"{reverse.name} is {record.describe()}: no cutover moved the lead back to {flow.source}"
        least = "that says that there is nothing to cut over, or if "
    else:
        since = ", from an earlier failover" if before else ""
        said = f"{reverse.name} is {record.describe()}{since}: {flow.target} still leads"
    raise NotNow(
        f"{said}. Nothing was written. Once {flow.name} mirrors again, {flow.target} follows {flow.source}. So run "
        f"`lockstep cutover` with the file of {reverse.name} first. If {least}clients write to {flow.source} already, "
        f"confirm that with --yes {word}"
    )


def reverse_record(scene: Scene) -> FailoverRecord | None:
    """Returns the reverse flow's record; None if it has no ledger. Raises LedgerUntrusted, RightsMissing,
    ClusterUnreachable."""
    reverse = scene.settings.flow.reverse
    seal = Seal(reverse.name, scene.settings.safety.reverse_secret)
    ledger = Ledger(scene.settings.internal.reverse_ledger, scene.source.cluster, None, None, seal=seal)
    return ledger.failover() if ledger.exists else None
