"""The failover commands: fence, unfence, drain, promote, cutover, failover. Each resumes where a crash stopped it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from sinks.every_kind.listing import Listed
from sinks.failover.failing_back import reverse_record
from sinks.failover.fence_notes import own_fences
from sinks.failover.fence_proof import FenceBroken
from sinks.failover.fenced_topics import check_names, doubtful_heartbeats
from sinks.failover.fencing import FenceCopied, FenceUnclear, NoAuthorizer, check_deniable, check_liftable, lift_fence
from sinks.failover.predicted_loss import ANY_LOSS, TYPED_UNKNOWN, Prediction, predict, seen_last
from sinks.failover.scene import Scene
from sinks.failover.steps import (
    check_acknowledged,
    check_copied,
    compare_copies,
    hold_fence,
    prove_again,
    tell_late,
    wanted_pairs,
)
from sinks.failover.unreplicated import counted_topics
from sinks.faults import LedgerUntrusted, RightsMissing
from sinks.kinds.desired_topics import is_replicated
from sinks.kinds.file_warnings import forgotten_copies, without_copy
from sinks.kinds.offsets.polled_groups import chosen_groups
from sinks.kinds.topics.controller import TOPICS_HIDDEN_BY_SOURCE
from sinks.ledger.failover_record import TRANSITIONS, Command, FailoverRecord, NotNow, State, Step
from sinks.ledger.fence_acls import fence_acls
from sinks.ledger.kept_divergences import divergences
from sinks.ledger.kept_end_offsets import kept_end_offsets
from sinks.model.changes import Key, Kind
from streaming.message_words import first_names, number_of


def fence(scene: Scene, topics: tuple[str, ...] = (), *, without_fence: bool = False) -> FailoverRecord:
    """Fences these topics of the source, or with none given all that producers write. Lifts the fence again if a client
    still writes.

    Topics that an earlier command fenced stay fenced, because their clients may have moved.
    Raises FenceCopied, FenceBroken, FenceUnclear, NoAuthorizer, NotNow, LockstepError.
    """
    known, before = scene.journal.record, own_fences(scene.journal.ledger)
    try:
        return _fenced(scene, topics, without_fence=without_fence)
    except (FenceBroken, FenceCopied, NoAuthorizer) as error:
        try:
            became = _taken_back(scene, known, before)
        except FenceUnclear as unclear:
            became = str(unclear)
        raise type(error)(f"{error}. {became[:1].upper()}{became[1:]}") from error


def _taken_back(scene: Scene, known: FailoverRecord, before: Collection[Key]) -> str:
    """Lifts the part of a broken fence that this command added, and returns a sentence about it.

    `known`: the record before the command. `before`: keys of the ACLs that this flow had then. If an earlier `fence`
    was half done, only topics whose clients may have moved stay fenced.
    """
    moved = divergences(scene.journal.ledger)
    half = known.doing is Command.FENCE
    if known.state is State.MIRRORING or (half and not moved):
        unfence(scene)
        return "The fence was taken back"
    stays = {acl.key for acl in fence_acls(moved)} | (set() if half else set(before))
    added = own_fences(scene.journal.ledger) - stays
    if added:
        lift_fence(scene, added)
    taken = (
        f"The fence of {first_names(sorted(key[1] for key in added))} was taken back" if added else "The fence stays"
    )
    return f"{taken}; run the command again, or lift the whole fence with `lockstep unfence`"


def _fenced(scene: Scene, topics: tuple[str, ...], *, without_fence: bool) -> FailoverRecord:
    listed = scene.listed()
    check_seen(scene, listed)
    topics = _with_known(scene, listed, topics)
    wanted = scene.fenced(listed, topics)
    scene.journal.check(Command.FENCE)
    if not without_fence:
        check_deniable(scene, wanted)
    scene.journal.begin(Command.FENCE, topics=topics, without_fence=without_fence)
    return scene.journal.run(scene.steps())


def _with_known(scene: Scene, listed: Listed, topics: tuple[str, ...]) -> tuple[str, ...]:
    """Returns these topics and all that are fenced already. () stands for all topics that producers write.

    Fenced topics stay in the list, because clients of drained topics may have moved.
    """
    known = scene.journal.record
    if known.state not in (State.FENCED, State.DRAINED):
        return topics
    return tuple(sorted({*scene.topics(listed), *(topics or scene.fenced(listed))})) if known.topics else ()


def check_fence(scene: Scene, topics: tuple[str, ...] = ()) -> None:
    """Checks that `fence` can tell which flow owns the DENY ACLs that exist already. Writes nothing.

    Raises FenceUnclear, NoAuthorizer, LockstepError.
    """
    listed = scene.listed()
    check_deniable(scene, scene.fenced(listed, _with_known(scene, listed, topics)))


def check_cutover(scene: Scene, *, without_fence: bool = False) -> None:
    """Checks that `cutover` loses nothing, and can fence its topics. Raises NotNow, and as `check_fence`."""
    record = scene.journal.record
    fences = record.state is State.MIRRORING or record.doing is Command.FENCE
    check_nothing_lost(scene)
    if fences and not without_fence:
        check_fence(scene)


def check_nothing_lost(scene: Scene) -> None:
    """Checks that a cutover loses no topic and no record, according to the ledger and the file. Raises NotNow."""
    listed = scene.listed()
    check_seen(scene, listed)
    _check_none_left_out(scene, listed)
    check_acknowledged(scene, listed)


def check_seen(scene: Scene, listed: Listed) -> None:
    """Raises NotNow for topics that the source hides (`Scene.hidden`). Also for topics with fewer partitions than a job
    saw, unless `--accept` names them."""
    flow = scene.settings.flow
    if hidden := scene.hidden(listed):
        raise NotNow(TOPICS_HIDDEN_BY_SOURCE.format(flow.source, first_names(hidden), flow.target))
    remote, kept = listed.desired.remote, kept_end_offsets(scene.journal.ledger)
    fewer = {topic for topic in remote.keys() & kept.keys() if listed.source[topic] < len(kept[topic].ends)}
    if left := sorted(fewer - scene.choices.accepted):
        raise NotNow(
            f"{flow.source} lists fewer partitions of {first_names(left)} than a job saw. See that none of its brokers "
            "is cut off from the controller, and run the command again. If the topic was made anew, name it with "
            "--accept"
        )


def _check_none_left_out(scene: Scene, listed: Listed) -> None:
    """Raises NotNow for topics that a cutover would leave behind, unless `--accept` names them.

    Such a topic is neither named nor excluded in the file, as after a typo, or has no copy on the target.
    """
    flow, forgotten = scene.settings.flow, forgotten_copies(scene.settings, listed)
    if left := sorted(set(forgotten) - scene.choices.accepted):
        raise NotNow(
            f"{first_names(left)} would be left behind: {flow.target} has a copy, but neither `topics` nor "
            "`topics.exclude` names it. Mend the file, or name it with --accept"
        )
    refused = {one.key[0]: one.reason for one in listed.desired.refused}
    for topic in sorted(listed.source.keys() - listed.desired.remote.keys() - scene.choices.accepted):
        name = scene.settings.policy.format_remote_topic(flow.source, topic)
        if name in refused and topic not in listed.desired.shared and is_replicated(scene.settings, topic):
            raise NotNow(
                f"{topic} would be left behind, because Lockstep does not create {name}: {refused[name]}. To leave it "
                "behind, name it with --accept"
            )
    for why in without_copy(scene.settings, listed, scene.choices.accepted):
        raise NotNow(f"{why}. To leave them behind, name them there or with --accept")
    doubtful = set(doubtful_heartbeats(scene.settings, listed.desired.remote)) - scene.choices.accepted
    if doubtful:
        raise NotNow(
            f"{first_names(sorted(doubtful))}: MM2 takes such names for copies of heartbeats, so no fence covers them, "
            f"and no flow of the file copies them to {flow.source}. If an application writes one, stop it first. Then "
            "name them with --accept"
        )
    if not scene.fenced(listed) and not divergences(scene.journal.ledger):
        raise NotNow(
            f"{flow.name} replicates no topic that clients write, so there is nothing to cut over. "
            f"{_way_on_idle(scene)}"
        )


def _way_on_idle(scene: Scene) -> str:
    """Returns in sentences what the operator does if the flow has no topic that clients write."""
    flow, state = scene.settings.flow, scene.journal.record.state
    see = "`lockstep topics` lists its topics: see that `topics` names the ones you mean"
    try:
        there = reverse_record(scene)
    except (LedgerUntrusted, RightsMissing):
        return see
    if there is None or there.state is not State.REVERSING:
        return see
    return (
        f"{see}. If clients wrote only copies on {flow.source}, or nothing, lead back without a cutover, with the file "
        f"of {flow.reverse.name}: `lockstep offsets --reverse --execute`, then `lockstep failback --done --yes {state}`"
    )


def unfence(scene: Scene) -> FailoverRecord:
    """Lifts the fence on the source. Raises NotNow, FenceUnclear, LockstepError."""
    scene.journal.check(Command.UNFENCE)
    # A half-done `unfence` would block another `fence`.
    check_liftable(scene)
    scene.journal.begin(Command.UNFENCE)
    return scene.journal.run(scene.steps())


def drain(scene: Scene) -> FailoverRecord:
    """Waits until all records of the fenced topics are on the target. Raises NotDrained, NotNow, LockstepError."""
    scene.journal.begin(Command.DRAIN)
    return scene.journal.run(scene.steps())


def promote(scene: Scene) -> FailoverRecord:
    """Ends the flow, so that the target takes over. Raises NotNow, NotDrained, LockstepError.

    All topics must be fenced. Without a fence, `promote` proves again that no client writes. Then it checks once more
    for new records.
    """
    if done := promoted(scene):
        return done
    record = scene.journal.check(Command.PROMOTE)
    if Step.LAST_OFFSETS not in record.done:
        if record.without_fence:
            # Without a fence only this proof shows that no client writes. The last proof may be old.
            prove_again(scene)
        _check_whole(scene)
        if compare_copies(scene, wanted_pairs(scene)):
            # The comparison takes a while. A client may have written since.
            _check_whole(scene)
    scene.journal.begin(Command.PROMOTE)
    ended = scene.journal.run(scene.steps())
    tell_late(scene)
    return ended


def check_promote(scene: Scene) -> None:
    """Checks that `promote` may begin, but does not prove the fence again. Writes nothing. Raises as `promote`."""
    record = scene.journal.check(Command.PROMOTE)
    if Step.LAST_OFFSETS not in record.done:
        _check_all_fenced(scene)
        check_copied(scene)


def promoted(scene: Scene) -> FailoverRecord | None:
    """Returns the record of a flow that is PROMOTED already, and tells the operator; None if it is not.

    The promotion may be this command's, which died right after it, or one of an earlier cutover."""
    done = scene.journal.has_done(State.PROMOTED)
    if done is not None:
        flow = scene.settings.flow
        scene.say(
            f"nothing is left to do: {flow.target} has taken over, by the command that began at {done.begun.at}. For "
            f"another cutover {flow.name} must mirror again first: `lockstep failback`, and once {flow.source} leads "
            "again `lockstep failback --done`"
        )
    return done


def cutover(
    scene: Scene,
    *,
    without_fence: bool = False,
    batch: int | None = None,
    agreed: Callable[[Scene], None] = lambda scene: None,
) -> FailoverRecord:
    """Fences, drains and promotes: a planned failover. Run again, it resumes where it stopped. Raises what these raise.

    `batch`: how many topics are fenced and drained at a time, so that their clients can move before the others.
    `agreed`: raises unless the operator agrees. It is called before anything is written.
    """
    if done := promoted(scene):
        return done
    if batch is not None and scene.settings.acls.stage_writes:
        raise NotNow(
            "clients that move after a batch could not write: lockstep.acl.stage.writes holds their rights back until "
            "the last batch is promoted. Leave out --batch, or turn the key off and run `lockstep apply` first"
        )
    check_cutover(scene, without_fence=without_fence)
    agreed(scene)
    record = scene.journal.record
    if record.doing is Command.UNFENCE:
        record = unfence(scene)
    if batch is not None and record.doing is not Command.PROMOTE:
        record = _drained_in_batches(scene, batch, without_fence=without_fence)
    elif record.state is State.MIRRORING or record.doing is Command.FENCE or _not_fenced(scene, record):
        # Also of a flow with some fenced topics: no other may move clients before all are.
        record = fence(scene, without_fence=without_fence)
    elif record.state is State.FENCED:
        _check_closed(scene)
    if record.state is State.FENCED:
        drain(scene)
    return promote(scene)


def _drained_in_batches(scene: Scene, size: int, *, without_fence: bool) -> FailoverRecord:
    record = scene.journal.record
    if record.doing is Command.FENCE:
        record = fence(scene, tuple(scene.topics(scene.listed())), without_fence=without_fence)
    elif record.state is State.FENCED:
        _check_closed(scene)
    while True:
        if record.state is State.FENCED:
            record = drain(scene)
            drained = number_of(len(scene.topics(scene.listed())), "topic is", "topics are")
            scene.say(f"{drained} drained: their clients may move")
        if not (left := _not_fenced(scene, record)):
            return record
        record = fence(scene, tuple(left[:size]), without_fence=without_fence)


def _not_fenced(scene: Scene, record: FailoverRecord) -> list[str]:
    if record.state is not State.MIRRORING and not record.topics:
        return []
    every = scene.fenced(scene.listed())
    return sorted(set(every) - set(record.topics))


def _check_whole(scene: Scene) -> None:
    _check_all_fenced(scene)
    hold_fence(scene)
    check_copied(scene)


def _check_all_fenced(scene: Scene) -> None:
    check_nothing_lost(scene)
    record, every = scene.journal.record, scene.fenced(scene.listed())
    if record.topics and (left := sorted(set(every) - set(record.topics))):
        said = number_of(len(left), "topic is", "topics are")
        raise NotNow(f"{said} replicated, but not fenced: {first_names(left)}. Run `lockstep fence` again")
    if not record.without_fence:
        _check_denied(scene, every)


def _check_closed(scene: Scene) -> None:
    """Checks that no client writes to topics that an earlier run fenced. After their drain, clients are told to
    move."""
    if scene.journal.record.without_fence:
        prove_again(scene)
    else:
        _check_denied(scene, scene.topics(scene.listed()))
        hold_fence(scene)


def _check_denied(scene: Scene, topics: Collection[str]) -> None:
    """Raises NotNow unless the source has the DENY ACLs of all these topics now."""
    there = set(scene.source.acls.describe())
    if left := [acl.resource_name for acl in fence_acls(topics) if acl not in there]:
        raise NotNow(
            f"{first_names(left)} can be written on {scene.settings.flow.source}: it is new since the fence, or "
            "another client deleted its DENY ACL. Run `lockstep fence` again"
        )


# A failover does not wait for the source. The operator agrees to the loss, and the ledger keeps it, before the flow
# ends.


def failover(
    scene: Scene,
    *,
    accept_loss: float | None,
    agreed: Callable[[Prediction], None],
) -> FailoverRecord:
    """Ends the flow although records may be lost. `agreed` raises unless the operator agrees to the predicted loss.

    `accept_loss`: most records that may be lost. If the source answers, it must be at least the predicted number, or
    ANY_LOSS if that is unknown.
    Raises NotNow, LockstepError.
    """
    if done := scene.journal.has_done(State.FAILED_OVER):
        return done
    known = scene.journal.record
    scene.journal.check(Command.FAIL_OVER)
    if known.doing is not Command.FAIL_OVER:
        prediction = predict(scene)
        if prediction.whole:
            check_names(scene.settings, scene.listed().desired.shared)
        check_loss(scene, prediction, accept_loss)
        agreed(prediction)
    scene.journal.begin(Command.FAIL_OVER)
    return scene.journal.run(scene.steps())


def check_loss(scene: Scene, prediction: Prediction, accept_loss: float | None) -> None:
    """Raises NotNow if more loss is predicted than `accept_loss`. If the source answers, `accept_loss` is required."""
    if accept_loss is None:
        if scene.source_answers:
            raise NotNow(_why_to_accept(scene.settings.flow.source, prediction))
        return
    records = prediction.records
    if records is None and accept_loss < ANY_LOSS:
        of = first_names(sorted(map(str, prediction.unknown))) or "any topic"
        raise NotNow(
            f"it is unknown how many records of {of} are lost, but --accept-loss allows only {accept_loss:.0f}. "
            f"`--accept-loss {TYPED_UNKNOWN}` accepts it"
        )
    if records is not None and records > accept_loss:
        raise NotNow(
            f"{number_of(records, 'record')} would be lost, but --accept-loss allows only {accept_loss:.0f}. "
            f"`--accept-loss {records}` accepts it"
        )


def _why_to_accept(source: str, prediction: Prediction) -> str:
    if prediction.whole:
        return (
            f"{source} answers, and `lockstep cutover` loses no record. To fail over all "
            f"the same, say --accept-loss with at least {prediction.typed}"
        )
    silent = first_names(sorted(map(str, prediction.unanswered))) or "its records"
    return (
        f"{source} answers, but not for {silent}. Once its brokers are back, `lockstep cutover` loses no "
        f"record. To fail over without them, say --accept-loss {prediction.typed}"
    )


# Predicts for a dry run which steps the commands would do now, and on which topics.


@dataclass(frozen=True)
class Foreseen:
    """The steps in order, each with its command. `then`: the state after them. `topics`: the source's, sorted."""

    steps: Sequence[tuple[Command, Step]]
    then: State
    topics: Sequence[str]


def foreseen(scene: Scene, commands: Sequence[Command]) -> Foreseen:
    """Returns the steps that these commands would do, one command after the other. Skips commands that cannot begin.

    Raises NotNow if none can begin, LockstepError.
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
    """Returns how many groups of the source `promote` would write last offsets for. Raises LockstepError."""
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
