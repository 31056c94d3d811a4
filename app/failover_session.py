"""Opens what a failover command works with: one flow's clusters, its ledger to write, and the steps."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from app.settings import Settings
from app.single_pass import group_offsets, single_pass
from app.verify.spark_jobs import SparkOnDemand
from app.wiring import FlowClusters, audit, both_clusters, guard, ledger, ledger_on_target
from sinks.engine.reconcile import FlowReconcile
from sinks.every_kind.controller import Controller
from sinks.failover.fence_notes import OtherLedgers
from sinks.failover.fence_proof import Proof
from sinks.failover.journal import Journal, StateObserver
from sinks.failover.scene import Choices, CopyCheck, Scene
from sinks.failover.steps import failover_steps
from sinks.faults import ClusterUnreachable
from sinks.flow_settings import FlowSettings
from sinks.kinds.assembly import GroupScope
from sinks.kinds.offsets.direction import GroupOffset, count_verdicts
from sinks.kinds.offsets.verdicts import Verdict
from sinks.ledger.audit import process_identity
from sinks.ledger.failover_record import Begun
from sinks.ledger.ledger import Ledger
from sinks.model.changes import Kind
from sinks.model.plan import Refusal
from sinks.verify.partition_verdicts import Difference, FlowReport, PartitionReport
from streaming.errors import LockstepError
from streaming.message_words import first_names, number_of
from streaming.mm2.records import TopicPartition


@dataclass(frozen=True)
class FailoverCall:
    """The options of a failover command.

    `take_over`: the operator says that the process of an unfinished command has ended. `within`: seconds in which all
    records must reach the target. `accepted`: topics whose records may be missing there. `accepted_groups`: groups that
    need not get their last offsets. `verifies`: compare the records of both sides before clients may move. `aborts`:
    abort open transactions on the source behind the fence. `say` prints a line for people. `on_state` gets the state
    before and after each transition.
    """

    why: str = ""
    take_over: bool = False
    within: float = 300.0
    accepted: Sequence[str] = ()
    accepted_groups: Sequence[str] = ()
    verifies: bool = False
    aborts: bool = False
    say: Callable[[str], None] = lambda line: None
    on_state: StateObserver = lambda before, after: None


@contextmanager
def failover_session(
    settings: Settings, flow: FlowSettings, call: FailoverCall, *, needs_source: bool = True, writes: bool = True
) -> Iterator[Scene]:
    """Opens a flow for one command. Without `needs_source` only the target must be the right cluster.

    Raises ClusterUnreachable, WrongCluster, LedgerUntrusted, RightsMissing.
    """
    with both_clusters(settings, flow) as clusters, closing(SparkOnDemand("lockstep cutover")) as spark:
        opened = _opened(flow, clusters, needs_source=needs_source, writes=writes)
        events = audit(flow, clusters.target)
        begun = Begun(process_identity(), "", call.why, claim_of_this_process())
        is_alive = never_alive if call.take_over else may_be_alive
        journal = Journal(flow.flow, opened, events, begun, is_alive=is_alive, on_state=call.on_state)
        try:
            yield Scene(
                flow,
                *clusters.ports,
                journal,
                choices=Choices(Proof(flow.failover.proof_seconds), call.within, frozenset(call.accepted), call.aborts),
                say=call.say,
                verify=CopyCheck(partial(compare_copies, settings, flow, spark, call.say)) if call.verifies else None,
                last_offsets=partial(write_last_offsets, settings, flow, call.accepted_groups),
                does=failover_steps,
                source_answers=needs_source or _answers(clusters),
                other_ledgers=partial(other_ledgers, settings, flow, call.say, writes=writes),
            )
        finally:
            events.close()


@contextmanager
def other_ledgers(
    settings: Settings, flow: FlowSettings, say: Callable[[str], None], *, writes: bool = True
) -> Iterator[OtherLedgers]:
    """Opens the ledgers of the other flows from the same source. `say` gets a line for each that cannot be opened.
    `unread` names those, except ledgers that certainly do not exist yet.
    """
    with ExitStack() as stack:
        found, unread = list[Ledger](), dict[str, str]()
        for other in settings.flows:
            if other.flow.source != flow.flow.source or other.flow == flow.flow:
                continue
            clusters = None
            try:
                clusters = stack.enter_context(both_clusters(settings, other))
                found.append(_opened(other, clusters, needs_source=False, writes=writes))
            except LockstepError as error:
                there = other.flow.target
                say(f"{other.flow.name} may copy the fence's ACLs to {there}. Its ledger cannot be opened: {error}")
                if clusters is None or not _has_none(other, clusters):
                    unread[other.flow.name] = str(error)
        yield OtherLedgers(found, unread)


def _has_none(flow: FlowSettings, clusters: FlowClusters) -> bool:
    """Returns whether the flow certainly has no ledger yet, even if the right to create one is missing."""
    try:
        return not _opened(flow, clusters, needs_source=False, writes=False).exists
    except LockstepError:
        return False


def _answers(clusters: FlowClusters) -> bool:
    try:
        clusters.source.ping()
    except ClusterUnreachable:
        return False
    return True


def _opened(flow: FlowSettings, clusters: FlowClusters, *, needs_source: bool, writes: bool) -> Ledger:
    if not needs_source:
        return ledger_on_target(flow, clusters, to_write=writes)
    guarded = guard(flow, clusters.source, clusters.target)
    opened = guarded.open(partial(ledger, flow, clusters.target, to_write=writes))
    if writes:
        guarded.check(opened)
    return opened


STAYS = "the group stays where it is: --accept-group names it"


def write_last_offsets(
    settings: Settings, flow: FlowSettings, accepted: Collection[str], copies: Collection[str]
) -> str:
    """Writes the groups' last offsets on the target and returns a summary. Raises LockstepError as `write_groups`
    does."""
    shown, kinds = GroupScope(shown=True), [Kind.GROUP_OFFSET]
    opened = single_pass(settings, flow, writes="promote", kinds=kinds, scope=shown, obeys_failover=False)
    with opened as one, one.reconcile.leading():
        most = flow.failover.max_groups_skipping
        return write_groups(one.reconcile, one.controllers, accepted, copies, most_skipping=most)


def write_groups(
    reconcile: FlowReconcile,
    controllers: Collection[Controller],
    accepted: Collection[str],
    copies: Collection[str],
    *,
    most_skipping: int = 0,
) -> str:
    """Writes the groups' offsets on all topics, then checks them. Returns a summary in one line.

    `accepted`: groups whose offsets stay as they are. A group moves if it has an offset on a topic of `copies`, or
    could not be read. Raises LockstepError if an offset of such a group is unknown, in ERROR, or refused. Raises it too
    if these groups may skip records in more than `most_skipping` partitions.
    """
    compared = reconcile.compare(everything=True)
    stay = [change for change in compared.plan.changes if change.key[0] in accepted]
    compared = replace(compared, plan=compared.plan.refusing(stay, STAYS))
    for reason in compared.trouble.faulted.values():
        raise LockstepError(
            f"the groups' last offsets cannot be written: {reason}. Mend that and run the command again. If the source "
            "is lost, `lockstep failover --accept-loss` with a number or `unknown` ends the flow without them"
        )
    report = reconcile.apply(compared)
    outcomes = report.outcomes
    failed = [outcome for outcome in outcomes if outcome.error]
    if failed:
        said = number_of(len(failed), "last offset was", "last offsets were")
        raise LockstepError(f"{said} refused: {failed[0].change.label}: {failed[0].error}")
    rows = group_offsets(controllers)
    # A group that cannot be read may have offsets on any topic. A group moves as a whole, with its other topics.
    moving = {row.group for row in rows if row.unseen or row.topic in copies} - set(accepted)
    others = [row for row in rows if row.group in moving]
    _refuse_held(others)
    _refuse_skipping(others, most_skipping, report.plan.refused)
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in count_verdicts(rows).items() if count)
    return f"last offsets of groups that were written: {len(outcomes)}; groups' partitions: {verdicts or 'none'}"


def _refuse_held(rows: Collection[GroupOffset]) -> None:
    """Raises LockstepError for groups whose offsets could not be read, or that are held in ERROR."""
    unseen = {row.group: row.judgement.reason for row in rows if row.unseen}
    if unseen:
        group, reason = min(unseen.items())
        raise LockstepError(
            f"the last offsets of {first_names(sorted(unseen))} are not known: {group}: {reason}. See that they can be "
            "read and run the command again, or name each of these groups with --accept-group: it stays where it is on "
            "the target"
        )
    held = {row.group: f"{row.where}: {row.judgement.reason}" for row in rows if row.judgement.verdict is Verdict.ERROR}
    if held:
        group, reason = min(held.items())
        raise LockstepError(
            f"Lockstep does not move {first_names(sorted(held))}: {group} on {reason}. `lockstep offsets` shows each "
            "partition. Mend that and run the command again, or accept each of these groups with --accept-group: it "
            "stays where it is on the target"
        )


def _skips(row: GroupOffset) -> bool:
    """Whether the group may skip records on the target. Without an offset there it begins by auto.offset.reset."""
    return row.before is None or (row.skipped > 0 and (row.goes_on_at is None or row.before <= row.goes_on_at))


def _refuse_skipping(rows: Collection[GroupOffset], most: int, refused: Collection[Refusal]) -> None:
    """Raises LockstepError for groups that may skip records: they would begin on the target by auto.offset.reset, or
    the copy lost records that the source still has. `refused`: offsets that were found and not written."""
    left = [row for row in rows if _skips(row)]
    if len(left) <= most:
        return
    first = min(left, key=lambda row: (row.group, row.where))
    tried = first.change and first.change.key
    why = next((one.reason for one in refused if one.key == tried), first.judgement.reason)
    raise LockstepError(
        f"{first_names(sorted({row.group for row in left}))} may skip records on the target: "
        f"{first.group} on {first.where}: {why}. `lockstep offsets` shows each partition. Commit "
        "offsets for them and run the command again, or accept each of these groups with --accept-group: it begins "
        "there by its offset, or by auto.offset.reset. lockstep.failover.max.groups.skipping allows some partitions, "
        "and groups.exclude leaves groups out"
    )


# Which process is at a command of the failover: `user@host/place:pid`, and whether it may still run.


CLAIM = re.compile(r"(?P<who>.*)@(?P<host>[^@/]*?)(?:/(?P<place>[0-9a-f]+))?:(?P<pid>[1-9][0-9]*)", re.DOTALL)


def place_of_this_process() -> str:
    """Returns a hash of the kernel's boot id and the pid namespace (Linux): within them a pid is unique. "" if unknown.

    The host name does not suffice: containers with the host's network share it and have pids of their own.
    """
    try:
        booted = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        namespace = Path("/proc/self/ns/pid").readlink()
    except (OSError, UnicodeDecodeError):
        return ""
    return hashlib.blake2b(f"{booted} {namespace}".encode(), digest_size=4).hexdigest()


def claim_of_this_process() -> str:
    """Returns `user@host/place:pid`, or `user@host:pid` without a place, as earlier versions wrote it."""
    place = place_of_this_process()
    return f"{process_identity()}{f'/{place}' if place else ''}:{os.getpid()}"


def never_alive(claim: str) -> bool:
    """Returns False: used instead of `may_be_alive` if the operator says that the process has ended."""
    return False


def may_be_alive(claim: str) -> bool:
    """Returns whether the process of a claim may still run. True for a process of another host or place."""
    found = CLAIM.fullmatch(claim)
    if found is None or found["host"] != process_identity().rpartition("@")[2]:
        return True
    if found["place"] not in (None, place_of_this_process()):
        return True
    with suppress(PermissionError):
        try:
            os.kill(int(found["pid"]), 0)
        except (ProcessLookupError, OverflowError):
            return False
    return True


# `cutover --verify`: the records of both sides compared, by Spark, before a flow ends.


class NotVerified(LockstepError):
    """Records are missing, changed, reordered or foreign, or could not be compared."""

    code = "NOT_VERIFIED"
    remedy = (
        "`lockstep verify TOPIC` names the records; then type the same command with `--verify` again or without it, or "
        "`lockstep unfence` to go back"
    )


def compare_copies(
    settings: Settings,
    flow: FlowSettings,
    spark: SparkOnDemand,
    say: Callable[[str], None],
    topics: Collection[str],
    ends: Mapping[TopicPartition, int],
) -> None:
    """Compares the records of these topics that are not verified yet. `ends`: end offsets of the target's partitions
    before clients wrote there. Raises NotVerified, LockstepError."""
    from app.verify.flow_check import verify_rest

    say(f"comparing the records of {number_of(len(topics), 'topic')} that are not verified yet")
    say(verdict_line(verify_rest(settings, flow, spark, sorted(topics), ends)))


def verdict_line(report: FlowReport) -> str:
    """Returns the result in one line. Duplicates are allowed, because MM2 copies at least once.

    Raises NotVerified for any other difference and for records not copied yet. The command waited for all, so those are
    lost.
    """
    partitions = number_of(len(report.partitions), "partition")
    if bad := [_described(one) for one in report.partitions if one.pending or not one.is_whole]:
        raise NotVerified(
            f"of {partitions} {number_of(len(bad), 'differs', 'differ')} or cannot be compared: {first_names(bad)}. "
            "`lockstep verify` names the differences; the flow stays as it is"
        )
    twice = sum(one.differences.get(Difference.DUPLICATE, 0) for one in report.partitions)
    copies = f", {number_of(twice, 'is', 'are')} on the target twice (MM2 copies at least once)" if twice else ""
    compared = f"{number_of(report.records, 'record')} of {partitions}"
    return f"compared: {compared}; none is missing, changed or out of order{copies}"


def _described(one: PartitionReport) -> str:
    counts = [f"{count} {kind}" for kind, count in one.differences.items() if count]
    counts += [f"{one.pending} not on the target"] if one.pending else []
    return f"{one.where} {', '.join(counts) or one.verdict.value}"
