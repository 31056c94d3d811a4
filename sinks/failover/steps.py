"""The steps of a failover on the two clusters of a flow. Each may be repeated."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from sinks.every_kind.listing import Listed
from sinks.failover.fence_proof import (
    ELECTED_WITHIN_S,
    FenceBroken,
    ends_of_logs,
    forget_proof,
    keep_proof,
    known_proof,
    prove_still,
    written_since,
)
from sinks.failover.fenced_topics import topics_of
from sinks.failover.fencing import lift_fence, name_left, open_fence
from sinks.failover.lost_before_copying import by_topic, lost_by_now, lost_number, unacknowledged
from sinks.failover.open_transactions import NotDrained, await_decided, check_decided, last_writers, tell_open
from sinks.failover.predicted_loss import Prediction, counted, keep_moved_ends, predict
from sinks.failover.record_matching import Pairs
from sinks.failover.scene import POLL_INTERVAL_S, Scene, WaitLines, copies_of
from sinks.failover.uncopied_records import Arrival, arrivals_at_takeover, still_drained, with_seen_ends
from sinks.failover.unreplicated import WrittenSince, written_on_target
from sinks.kafka.ports.record_reader import RecordReader
from sinks.kinds.acls.staged_writes import granted_later
from sinks.ledger.failover_record import ENDED, TRANSITIONS, Command, NotNow, State, Step
from sinks.ledger.fence_acls import fence_acls
from sinks.ledger.kept_divergences import Divergence, divergences, forget_divergences, keep_divergences
from sinks.ledger.kept_end_offsets import UNSEEN_END, by_partition, kept_end_offsets
from sinks.ledger.ledger_entries import Entry, EntryKey
from sinks.model.changes import Kind
from sinks.model.times import milliseconds
from streaming.errors import LockstepError
from streaming.message_words import first_names, number_of
from streaming.mm2.records import TopicPartition

SHOWN_WITHIN = 30.0
"""Seconds within which the source must show the fence's ACLs."""


def failover_steps(scene: Scene) -> Mapping[Step, Callable[[], None]]:
    """Returns the function that does each step. Each may be repeated."""
    return {
        Step.DENY_WRITES: partial(_deny_writes, scene),
        Step.PROVE_FENCE: partial(prove_fence, scene),
        Step.LIFT_FENCE: partial(_lift_fence, scene),
        Step.AWAIT_RECORDS: partial(_await_records, scene),
        Step.KEEP_DIVERGENCE: partial(_keep_divergence, scene),
        Step.LAST_OFFSETS: partial(_write_last_offsets, scene),
        Step.GRANT_WRITES: partial(grant_writes, scene),
    }


def _write_last_offsets(scene: Scene) -> None:
    listed, doing = scene.listed(), scene.journal.record.doing
    moving = scene.topics(listed) if doing is Command.DRAIN else listed.desired.remote
    # What has no copy is left behind, and `accepted` names it.
    copies = {listed.desired.remote[topic] for topic in moving} - set(listed.awaits_mm2().values())
    written = scene.last_offsets(copies)
    # They are written twice: before clients are told to move, and for what groups committed since.
    scene.say(written if doing is Command.DRAIN or not written else f"again, right before the promotion: {written}")


def _deny_writes(scene: Scene) -> None:
    if scene.journal.record.without_fence:
        return
    topics = scene.topics(scene.listed())
    with open_fence(scene) as fence:
        denial = fence.deny(topics)
    wanted = set(fence_acls(topics))
    scene.wait_until(
        lambda: wanted <= set(scene.source.acls.describe()),
        SHOWN_WITHIN,
        "the source to show the fence",
        "; run the command again",
    )
    denied = f"{number_of(len(topics), 'topic')} ({number_of(denial.acls, 'DENY ACL')} created)"
    scene.say(f"on {scene.settings.flow.source} no client may write to {denied}")
    name_left(scene, {acl.resource_name for acl in denial.left})


def prove_fence(scene: Scene) -> None:
    """Waits until the ends of the fenced topics stand still, and keeps these ends in the ledger.

    If a client wrote since the last proof, they must stand still for twice the time since then (LONGEST_PROOF_S).
    Raises FenceBroken, LockstepError.
    """
    partitions = list(scene.pairs(scene.listed()))
    with closing(scene.source.records("read_uncommitted")) as records:
        proof = scene.choices.proof
        came = _written_since_proof(scene, records, partitions)
        if came:
            proof = proof.after_pause((scene.journal.now() - min(came.values())).total_seconds())
            wrote = first_names([str(where) for where in sorted(came)])
            scene.say(f"a client wrote to {wrote} since the fence was proven. {last_writers(scene, came)}")
        source = scene.settings.flow.source
        scene.say(
            f"waiting for the ends on {source} to stand still for {proof.still:g} s. That finds clients that write in "
            "this time. A client that writes less often is found only if it writes before the promotion ends"
        )
        ends = prove_still(records, partitions, proof, scene.waiting, partial(last_writers, scene))
    keep_proof(scene.journal.ledger, ends, scene.journal.now() - timedelta(seconds=proof.still))
    tell_open(scene, [where for where in partitions if where.topic not in scene.choices.accepted])


def _written_since_proof(
    scene: Scene, records: RecordReader, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, datetime]:
    """Returns partitions that got a record since the last proof of their topic, with the time of that proof.

    A partition that was added since then counts from offset 0."""
    proven = known_proof(scene.journal.ledger, topics_of(partitions))
    ends = {where: proven[where.topic].ends.get(where, 0) for where in partitions if where.topic in proven}
    came = written_since(records, ends, ends_of_logs(records, list(ends), scene.waiting))
    return {where: proven[where.topic].since for where in came}


def hold_fence(scene: Scene) -> bool:
    """Proves the fence again if a record came since the last proof, or if a partition has no proof. Returns whether it
    did.

    Raises FenceBroken if a client still writes. The flow then keeps its state.
    """
    partitions = list(scene.pairs(scene.listed()))
    proven = known_proof(scene.journal.ledger, topics_of(partitions))
    if all(where.topic in proven and where in proven[where.topic].ends for where in partitions):
        with closing(scene.source.records("read_uncommitted")) as records:
            if not _written_since_proof(scene, records, partitions):
                return False
    prove_again(scene)
    return True


def prove_again(scene: Scene) -> None:
    """Proves again that no client writes to the topics of a fenced flow. Raises FenceBroken."""
    try:
        prove_fence(scene)
    except FenceBroken as error:
        state = scene.journal.record.state
        raise FenceBroken(f"{error}. The flow stays {state}: run the command again, or `lockstep unfence`") from error


def _lift_fence(scene: Scene) -> None:
    lift_fence(scene)
    record = scene.journal.record
    if record.doing is Command.UNFENCE and record.state not in ENDED:
        _warn_of_moved(scene)
    if record.doing and TRANSITIONS[record.state, record.doing].then is State.MIRRORING:
        keep_moved_ends(scene)
        forget_divergences(scene.journal.ledger)
        forget_proof(scene.journal.ledger)


def _warn_of_moved(scene: Scene) -> None:
    """Warns of records that moved clients wrote to copies on the target. MM2 appends its copies behind them."""
    known, target = divergences(scene.journal.ledger), scene.settings.flow.target
    try:
        found = written_on_target(scene, known) if known else WrittenSince()
    except LockstepError as error:
        # The fence is lifted: what is only said must not end the command.
        scene.say(f"CAREFUL: Lockstep cannot tell whether moved clients wrote on {target}: {error}")
        return
    if found.foreign:
        scene.say(
            f"CAREFUL: a client wrote to {first_names(topics_of(found.foreign))} on {target} after the drain. Only "
            f"{target} has its records: move this client back"
        )
    if found.unknown:
        scene.say(
            f"CAREFUL: Lockstep cannot tell whether moved clients wrote to {first_names(topics_of(found.unknown))} on "
            f"{target} after these topics were drained: see that no client writes there any more"
        )


def missing_records(scene: Scene, pairs: Mapping[TopicPartition, TopicPartition]) -> list[Arrival]:
    """Returns the source partitions with records that are missing on the target, or may be.

    Topics of an earlier batch count as they were when drained: their clients may have moved already.
    """
    with scene.readers() as (source, target):
        found = arrivals_at_takeover(scene.journal.ledger, source, target, pairs)
        found = with_seen_ends(found, source.latest(list(pairs)).items, _seen_ends(scene, pairs))
        return [one for one in found.values() if not one.arrived]


def _seen_ends(scene: Scene, pairs: Pairs) -> dict[TopicPartition, int]:
    """Returns the highest end of each source partition that a job or a proof of the fence saw."""
    ledger = scene.journal.ledger
    seen = dict(by_partition(kept_end_offsets(ledger))[1])
    for proven in known_proof(ledger, topics_of(pairs)).values():
        seen |= {where: max(end, seen.get(where, 0)) for where, end in proven.ends.items()}
    return seen


def wanted_pairs(scene: Scene) -> dict[TopicPartition, TopicPartition]:
    """Returns the source partitions whose last record must be on the target, with their copies. Topics that `--accept`
    names are left out."""
    accepted = scene.choices.accepted
    return {where: copy for where, copy in scene.pairs(scene.listed()).items() if where.topic not in accepted}


def _await_records(scene: Scene) -> None:
    """Waits until all records are on the target, and compares them if `--verify` is given. Afterwards clients may
    move."""
    pairs = wanted_pairs(scene)
    _await_last(scene, pairs)
    compared = compare_copies(scene, pairs)
    if hold_fence(scene) or compared:
        # The comparison takes a while. A client may have written since.
        _await_last(scene, pairs)
    check_acknowledged(scene, scene.listed())
    partitions = number_of(len(pairs), "partition")
    scene.say(f"the last record of each of {partitions} is on {scene.settings.flow.target}")


def check_acknowledged(scene: Scene, listed: Listed) -> None:
    """Raises NotNow for topics that lost records before MM2 copied them, unless they are accepted or acknowledged."""
    remote, now_ms = listed.desired.remote, milliseconds(scene.journal.now())
    with scene.readers() as (source, target):
        lost = unacknowledged(lost_by_now(scene.journal.ledger, source, target, remote, now_ms))
        pairs = {where: TopicPartition(remote[where.topic], where.partition) for where in lost if where.topic in remote}
        # Retention goes on in both logs after the drain.
        whole = still_drained(scene.journal.ledger, source, target, pairs)
        lost = {where: one for where, one in lost.items() if where not in whole}
    topics = [one for one in by_topic(lost) if not one.is_compacted and one.topic not in scene.choices.accepted]
    if topics:
        named = first_names([f"{lost_number(one)} of {one.topic}" for one in topics])
        raise NotNow(
            f"LOST BEFORE COPYING: {named} are not on {scene.settings.flow.target}. Copy them by other means, "
            "then `lockstep ledger acknowledge`; or name the topics with --accept"
        )


def _await_last(scene: Scene, pairs: Mapping[TopicPartition, TopicPartition]) -> None:
    left, lines = dict(pairs), WaitLines(scene.say, scene.waiting.clock, scene.choices.drain_within)
    # First, because only then has a reader of committed records all records of the source.
    await_decided(scene, pairs, lines)
    while missing := missing_records(scene, left):
        if lines.is_over:
            label = scene.settings.copier.label
            raise NotDrained(describe_missing(missing, scene.choices.drain_within, label))
        lines.go_on(f"{scene.settings.copier.label}, since {count_missing(missing)}")
        left = {one.where: pairs[one.where] for one in missing}
        scene.waiting.sleep(POLL_INTERVAL_S)


def check_copied(scene: Scene) -> None:
    """Checks that each partition's last record is on the target. Waits only for brokers that give no answer, as during
    a leader election. Raises NotDrained."""
    pairs = wanted_pairs(scene)
    check_decided(scene, pairs)
    within = min(ELECTED_WITHIN_S, scene.choices.drain_within)
    lines = WaitLines(scene.say, scene.waiting.clock, within)
    while missing := missing_records(scene, pairs):
        if lines.is_over or not all(one.problem for one in missing):
            seconds = within if lines.is_over else 0
            raise NotDrained(describe_missing(missing, seconds, scene.settings.copier.label))
        lines.go_on(f"brokers to answer, since {count_missing(missing)}")
        scene.waiting.sleep(POLL_INTERVAL_S)


def _keep_divergence(scene: Scene) -> None:
    """Writes to the ledger where each copy ends now, and what it lacks: the topics' divergences.

    Topics of an earlier batch keep the divergence from before their clients moved. Without batches, a repeated drain
    renews the divergences. In a planned failover this raises NotDrained if a record came since the last check, or if
    the end of a copy is unknown.
    """
    ledger, record = scene.journal.ledger, scene.journal.record
    if record.doing is Command.FAIL_OVER:
        prediction = with_all_copies(scene, predict(scene))
        keep_divergences(ledger, _divergences_now(scene, prediction))
        return
    drains = record.doing is Command.DRAIN
    kept = divergences(ledger).keys() if drains and record.topics else set()
    topics = set(scene.topics(scene.listed())) - kept
    _refuse_open(scene)
    prediction = counted(scene, topics if drains or record.topics else None)
    _refuse_late(scene, prediction)
    # For a topic that the source does not show, or no longer has, the copy's end is all that will be known.
    found = _divergences_now(scene, prediction if drains else with_all_copies(scene, prediction))
    needed = found.keys() & topics - scene.choices.accepted
    if endless := [topic for topic in sorted(needed) if UNSEEN_END in found[topic].ends]:
        raise NotDrained(
            f"{scene.settings.flow.target} does not tell where its copies of {first_names(endless)} end. See that each "
            "partition there has a leader, and run the command again"
        )
    # After the drain clients may have moved: their records lie behind the ends that the drain kept.
    keep_divergences(ledger, found, renews=drains and not record.topics)


def _divergences_now(scene: Scene, prediction: Prediction) -> dict[str, Divergence]:
    """Returns the divergence of each source topic: where its copy ends now, and the predicted loss."""
    found: dict[str, Divergence] = {}
    with closing(scene.target.records("read_uncommitted")) as target:
        copies = {
            TopicPartition(prediction.remote[topic], number)
            for topic, ends in prediction.known.items()
            for number in range(len(ends))
        }
        logs = target.ends(list(copies)).items
    for topic, known in prediction.known.items():
        name = prediction.remote[topic]
        lost = [prediction.arrivals.get(TopicPartition(topic, number)) for number in range(len(known))]
        found[topic] = Divergence(
            name,
            [
                # Of an empty log of the source nothing is in its copy.
                logs[where].end if (where := TopicPartition(name, number)) in logs else UNSEEN_END if end else 0
                for number, end in enumerate(known)
            ],
            list(known),
            [one.behind.records if one and one.behind else -1 for one in lost],
            all(one is not None and one.behind is not None and one.behind.exact for one in lost),
        )
    return found


def _refuse_open(scene: Scene) -> None:
    """Raises NotDrained if a transaction opened since the last check."""
    try:
        check_decided(scene, wanted_pairs(scene))
    except NotDrained as error:
        raise _came_late(scene, str(error)) from error


def _refuse_late(scene: Scene, prediction: Prediction) -> None:
    """Raises NotDrained if a record came since the last check."""
    accepted = scene.choices.accepted
    late = [one for where, one in prediction.arrivals.items() if not one.arrived and where.topic not in accepted]
    if late:
        raise _came_late(scene, count_missing(late))


def tell_late(scene: Scene) -> None:
    """Warns of records that came to the source since the proof of the fence. Only a warning, for the flow has
    ended."""
    source = scene.settings.flow.source
    try:
        partitions = list(scene.pairs(scene.listed()))
        with closing(scene.source.records("read_uncommitted")) as records:
            came = _written_since_proof(scene, records, partitions)
    except LockstepError as error:
        scene.say(f"CAREFUL: it is unknown whether a client wrote to {source} while the flow ended: {error}")
        return
    if came:
        scene.say(
            f"CAREFUL: records came to {first_names(topics_of(came))} on {source} while the flow ended. The target may "
            f"lack them. {last_writers(scene, came)}Stop these clients; `lockstep failback` counts and exports these "
            "records"
        )


def _came_late(scene: Scene, what: str) -> NotDrained:
    flow, doing = scene.settings.flow, scene.journal.record.doing
    command = doing.typed if doing else ""
    return NotDrained(
        f"records came to {flow.source} after the last check, and `{command}` is half done: {what}. No client may "
        f"write on {flow.target} yet. Stop the producers on {flow.source} and run the command again, or "
        "`lockstep unfence`"
    )


def describe_missing(missing: Collection[Arrival], seconds: float, copier: str) -> str:
    return (
        f"after {seconds:g} s {count_missing(missing)}. See that {copier} runs and copies these topics, and run the "
        "command again; or name topics whose records may be missing with --accept"
    )


def count_missing(missing: Collection[Arrival]) -> str:
    records = sum(one.behind.records for one in missing if one.behind)
    unknown = [f"{one.where}: {one.problem}" for one in missing if one.problem]
    topics = first_names(topics_of(one.where for one in missing))
    most = "" if all(one.behind.exact for one in missing if one.behind) else "at most "
    return f"{most}{number_of(records, f'record of {topics} is', f'records of {topics} are')} not on the target" + (
        f", and for these partitions it is unknown: {first_names(unknown)}" if unknown else ""
    )


def grant_writes(scene: Scene) -> None:
    """Creates the held-back ALLOW WRITE ACLs on the target. From then on this flow owns these ACLs."""
    ledger = scene.journal.ledger
    staged = ledger.values(Entry.STAGED)
    bindings = granted_later(staged, scene.settings)
    if foreign := len(staged) - len(bindings):
        scene.say(
            f"not granted: {number_of(foreign, 'ACL')}. {ledger.topic} lists them as held back, but with this file no "
            "flow holds them back: check who can write the ledger topic (`lockstep validate --rights`)"
        )
    if not bindings:
        return
    ledger.put({(Entry.INTENT, (Kind.ACL.value, *acl.key)): "" for acl in bindings})
    faults = scene.target.acls.create(bindings)
    entries: dict[EntryKey, str | None] = {}
    for acl in (acl for acl in bindings if faults[acl] is None):
        entries |= {(Entry.STAGED, acl.key): None, (Entry.INTENT, (Kind.ACL.value, *acl.key)): None}
        entries[Entry.OWNED, (Kind.ACL.value, *acl.key)] = ""
    ledger.put(entries)
    if refused := [f"{' '.join(acl.key)}: {fault}" for acl, fault in faults.items() if fault]:
        raise LockstepError(f"the target refused {number_of(len(refused), 'held-back ACL')}: {first_names(refused)}")
    granted = number_of(len(bindings), "ALLOW WRITE is", "ALLOW WRITE are")
    named = first_names(sorted(f"{acl.principal} on {acl.pattern_type} {acl.resource_name}" for acl in bindings))
    scene.say(f"{granted} granted on {scene.settings.flow.target}: {named}")


def with_all_copies(scene: Scene, prediction: Prediction) -> Prediction:
    """Returns the prediction with every copy on the target. Added partitions get UNSEEN_END as their source end."""
    known, remote = {topic: list(ends) for topic, ends in prediction.known.items()}, dict(prediction.remote)
    for topic, (name, partitions) in copies_of(scene.settings, scene.target.cluster.list_topics()).items():
        remote.setdefault(topic, name)
        ends = known.setdefault(topic, [])
        ends += [UNSEEN_END] * (partitions - len(ends))
    return replace(prediction, known=known, remote=remote)


def compare_copies(scene: Scene, pairs: Pairs) -> bool:
    """Compares the records of these partitions that were not compared yet. Returns whether it compared any. Raises what
    `CopyCheck.run` raises."""
    return scene.verify is not None and scene.verify.run({where.topic for where in pairs}, _drained_ends(scene, pairs))


def _drained_ends(scene: Scene, pairs: Pairs) -> dict[TopicPartition, int]:
    """Returns where complete copies ended when they were drained, by partition of the target. Clients that moved may
    have written behind these ends.

    A partition that got records on the source since then is left out, so that its new records are compared, too.
    """
    with scene.readers() as (source, target):
        drained = still_drained(scene.journal.ledger, source, target, pairs)
    return {pairs[where]: end for where, end in drained.items()}
