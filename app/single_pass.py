"""Runs a single pass over one flow for a command. Unlike a job's pass it compares everything, however long that
takes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial

from app.settings import Settings
from app.wiring import FlowClusters, audit, both_clusters, guard, lease, ledger, ledger_on_target
from sinks.background import awaited, begun
from sinks.engine.deletion_checks import SECOND_LOOK_AFTER_S
from sinks.engine.flow_components import FlowComponents
from sinks.engine.flow_status import age_of, first_statuses, kind_status, state_of
from sinks.engine.reconcile import FlowReconcile
from sinks.engine.report import Compared, Report
from sinks.engine.status import Failing, FlowState, FlowStatus, as_far_as_known, silence
from sinks.every_kind.controller import Controller, StreamFollower
from sinks.every_kind.wishes import Wishes
from sinks.failover.preflight import NEVER_READ
from sinks.failover.scene import both_readers
from sinks.failover.uncopied_records import pairs_of
from sinks.flow_settings import FlowSettings
from sinks.kinds.assembly import EVERY_GROUP, Assembly, CompareProgress, GroupScope, assemble
from sinks.kinds.offsets.controller import OffsetController
from sinks.kinds.offsets.direction import GroupOffset
from sinks.kinds.offsets.same_offsets import CopiedEnds
from sinks.kinds.shared_listings import FlowListing, SharedListings, list_both
from sinks.ledger.lease import Leader, Leadership, Unled
from sinks.ledger.lease_records import decoded, last_leader
from sinks.ledger.ledger import Ledger
from sinks.ledger.seal import Seal
from sinks.model.changes import Kind
from sinks.model.times import utc_now
from streaming.errors import LockstepError, MalformedRecord
from streaming.hints import NewestHeartbeat
from streaming.mm2.codec import decode_heartbeat

log = logging.getLogger(__name__)

HANDED_OVER_WITHIN = 90.0
"""Seconds that a command waits for a job to end its pass and hand over, or for the lease of one that is gone."""

CATCHES_UP_WITHIN = 5.0
"""Seconds in which a copier that keeps offsets must catch up with the source's present ends to count as alive."""

LAST_HEARTBEATS = 200
"""Records to read at the end of a heartbeats topic. Each flow writes one a second, so this covers minutes."""


@dataclass(frozen=True)
class SinglePass:
    """One flow's pass: `reconcile.compare` observes, `reconcile.apply` writes the differences.

    `reviewed`: a person sees the plan before Lockstep applies it. `wait`: sleeps for so many seconds.
    """

    flow: FlowSettings
    clusters: FlowClusters
    reconcile: FlowReconcile
    controllers: tuple[Controller, ...]
    kinds: tuple[Kind, ...] = tuple(Kind)
    reviewed: bool = True
    wait: Callable[[float], None] = time.sleep

    def compare(self, *, force: bool = False) -> Compared:
        """Compares everything. Without a person who reviews the plan, compares again before a deletion, as the job
        does.

        The deletion of a topic needs a minute, so it stays in `Compared.waiting`. Raises the errors that stop a flow.
        """
        compared = self.reconcile.compare(everything=True, force=force)
        if self.reviewed or all(one.kind.row.data for one in compared.waiting):
            return compared
        self.wait(SECOND_LOOK_AFTER_S)
        return self.reconcile.compare(everything=True, force=force)

    def compare_groups(self) -> Compared:
        """Compares as `compare` does. Raises LockstepError if the groups' offsets cannot be compared."""
        compared = self.compare()
        for reason in compared.trouble.faulted.values():
            raise LockstepError(reason)
        return compared

    @property
    def group_offsets(self) -> list[GroupOffset]:
        """The offsets of each group and partition, as the last comparison saw them."""
        return group_offsets(self.controllers)


def group_offsets(controllers: Iterable[Controller]) -> list[GroupOffset]:
    """Returns the offsets of each group and partition from the last comparison by these controllers."""
    return [row for one in controllers if isinstance(one, OffsetController) for row in one.rows]


@contextmanager
def single_pass(
    settings: Settings,
    flow: FlowSettings,
    *,
    writes: str | None = None,
    kinds: Collection[Kind] = tuple(Kind),
    scope: GroupScope = EVERY_GROUP,
    progress: CompareProgress | None = None,
    wishes: Wishes | None = None,
    obeys_failover: bool = True,
    reviewed: bool = False,
) -> Iterator[SinglePass]:
    """Opens both clusters for one pass over these kinds. `writes`: the command that writes, inside
    `reconcile.leading()`. None: it only reads.

    `wishes`: shared by all flows into this target that the command compares. `obeys_failover`: False for a pass during
    a failover or for the way back, because the flow has ended by then. `reviewed`: a person sees the plan before
    Lockstep applies it.
    """
    with ExitStack() as stack:
        clusters = stack.enter_context(both_clusters(settings, flow))
        leadership: Leadership = Unled()
        if writes is not None:
            leadership = stack.enter_context(closing(lease(settings, flow, writes, patience=HANDED_OVER_WITHIN)))
        here, there = (one.written_with(leadership.check) for one in clusters.ports)
        shared = wishes or Wishes()
        # A person sees what is only shown.
        reviewed = reviewed or writes is None
        made = assemble(Assembly(flow, here, there, once=True, progress=progress, scope=scope, wishes=shared), kinds)
        for controller in made.controllers:
            if isinstance(controller, StreamFollower):
                stack.callback(controller.close)
        components = FlowComponents(
            topics=FlowListing(flow, clusters.source, clusters.target, SharedListings(), flow.flow.target),
            guard=guard(flow, clusters.source, clusters.target),
            open_ledger=partial(ledger, flow, clusters.target, to_write=writes is not None, permit=leadership.check),
            audit=audit(flow, clusters.target),
            controllers=made.controllers,
            writers=made.writers,
            target=clusters.target,
            obeys_failover=obeys_failover and not scope.back,
            leads_back=scope.back,
            leadership=leadership,
            source_epochs=here.epochs,
            wishes=shared,
            reviewed=reviewed,
        )
        reconcile = FlowReconcile(flow, components)
        yield SinglePass(flow, clusters, reconcile, tuple(made.controllers), tuple(kinds), reviewed)


def group_offsets_now(settings: Settings, flow: FlowSettings, groups: Collection[str]) -> list[GroupOffset]:
    """Returns where these groups would continue on the target, even if the flow has ended. Writes nothing. Raises
    LockstepError."""
    scope = GroupScope(groups, shown=True)
    with single_pass(settings, flow, kinds=[Kind.GROUP_OFFSET], scope=scope, obeys_failover=False) as one:
        one.compare_groups()
        return one.group_offsets


def ledger_now(settings: Settings, flow: FlowSettings) -> Ledger | None:
    """The flow's ledger, for a command that reads it once. None if it cannot be read."""
    try:
        with both_clusters(settings, flow) as clusters:
            return ledger_on_target(flow, clusters, to_write=False)
    except LockstepError as error:
        log.debug("%s: its ledger cannot be read: %s", flow.flow.name, error)
        return None


def expected_wishes(
    settings: Settings,
    kinds: Collection[Kind] = tuple(Kind),
    read: Callable[[Settings, FlowSettings], Ledger | None] = ledger_now,
) -> dict[str, Wishes]:
    """Wishes by target, for a command that compares these kinds of all chosen flows one after the other.

    `read`: returns the ledger of a flow that --flow leaves out. It alone tells what that flow drained and wanted.
    """
    wishes = {flow.flow.target: Wishes() for flow in settings.flows}
    beside = [flow for flow in settings.left_out if flow.flow.target in wishes]
    read_side_by_side = {flow.flow: begun(partial(read, settings, flow), f"ledger {flow.flow.name}") for flow in beside}
    for one, found in read_side_by_side.items():
        wishes[one.target].leave_out(one, awaited(found))
    for flow in settings.flows:
        wishes[flow.flow.target].join(flow.flow)
        for kind in kinds:
            if kind.row.of_principals and flow.enabled.get(kind, False):
                wishes[flow.flow.target].expect(flow.flow, kind)
    return wishes


def newest_heartbeat(flow: FlowSettings, clusters: FlowClusters) -> NewestHeartbeat | None:
    """Returns the newest heartbeat that was copied from source to target, or emitted for the flow; None without one.

    A copier without heartbeats counts as alive if the copies have the records that the source had a moment ago.
    """
    if flow.keeps_offsets:
        return _caught_up(flow, clusters)
    copied = flow.policy.format_remote_topic(flow.flow.source, flow.policy.heartbeats_topic())
    for topic in (copied, flow.internal.heartbeats):
        newest = 0
        for key, value in clusters.target.read_log(topic, last=LAST_HEARTBEATS):
            try:
                heartbeat = decode_heartbeat(key, value)
            except MalformedRecord:
                continue
            if (heartbeat.source, heartbeat.target) == (flow.flow.source, flow.flow.target) or topic == copied:
                newest = max(newest, heartbeat.timestamp)
        if newest:
            return NewestHeartbeat(newest, copied=topic == copied)
    return None


def heartbeat_before(settings: Settings, flow: FlowSettings) -> NewestHeartbeat | None:
    """Returns the newest heartbeat from before the job started; None for a copier without heartbeats. Raises
    LockstepError."""
    if flow.keeps_offsets:
        return None
    with both_clusters(settings, flow) as clusters:
        return newest_heartbeat(flow, clusters)


def _caught_up(flow: FlowSettings, clusters: FlowClusters) -> NewestHeartbeat | None:
    listed = list_both(flow, clusters.source, clusters.target)
    copies = pairs_of(listed.desired.remote, listed.source, listed.desired.remote)
    with both_readers(flow, *clusters.ports) as (source, target):
        now_ms = round(time.time() * 1000)
        latest, copied = source.latest(list(copies)), CopiedEnds(target)
        if latest.errors:
            # An end that the source did not tell may lie beyond the copy.
            return None
        until = time.monotonic() + CATCHES_UP_WITHIN
        while copied.caught_up_ms is None:
            copied.positions(copies)
            copied.note_source(latest.items, now_ms)
            if copied.caught_up_ms is None and time.monotonic() > until:
                return None
            time.sleep(0 if copied.caught_up_ms else 0.2)
        return NewestHeartbeat(copied.caught_up_ms)


def status_now(settings: Settings, flow: FlowSettings, silent: str) -> FlowStatus:
    """Returns a flow's status as both clusters show it, without the job's own knowledge. `silent`: why no job
    answered."""
    failover = NEVER_READ
    try:
        with single_pass(settings, flow) as one:
            try:
                compared = one.compare()
            finally:
                failover = one.reconcile.failover
            report, last = one.reconcile.report_only(compared), _led_by(flow, compared.context.ledger)
            return status_without_job(flow, report, newest_heartbeat(flow, one.clusters), last, silent)
    except LockstepError as error:
        kinds = as_far_as_known(first_statuses(flow), FlowState.ERROR, utc_now())
        failover = replace(failover, unknown=str(error)) if failover == NEVER_READ else failover
        failure = Failing.of(error)
        reason = f"{error}; {silent}"
        return FlowStatus(flow.flow, FlowState.ERROR, None, None, reason, kinds, failure=failure, failover=failover)


def status_without_job(
    settings: FlowSettings, report: Report, newest: NewestHeartbeat | None, led_by: Leader | None, silent: str
) -> FlowStatus:
    """Returns the status of a flow after one pass of a command that wrote nothing. `newest`: its newest heartbeat.

    `led_by`: the process that led the flow last. `silent`: why no job answered. Without a job the flow is not kept in
    step, whatever its last heartbeat says. A flow that has ended needs no job.
    """
    heard, now = age_of(newest), utc_now()
    ended = state_of(None, newest, settings, report.failover) is FlowState.ENDED
    state = FlowState.ENDED if ended else FlowState.NO_JOB
    last = f"{led_by} led the flow last" if led_by else None
    quiet = silence(state_of(None, newest, settings), heard, settings.copier)
    seen = "drift is what both clusters show now"
    return FlowStatus(
        flow=settings.flow,
        state=state,
        heartbeat_age_seconds=heard,
        heartbeat_copied=newest is None or newest.copied,
        reason=None if ended else "; ".join(one for one in (silent, last, quiet, seen) if one),
        kinds=as_far_as_known(
            {kind: kind_status(kind, first, report, now) for kind, first in first_statuses(settings).items()},
            state,
            None,
        ),
        effective=report.effective,
        failover=report.failover,
    )


def _led_by(flow: FlowSettings, ledger: Ledger) -> Leader | None:
    """Returns the last leader in the ledger. Its process may have ended since."""
    name = flow.flow.name
    record = last_leader(decoded(name, ledger.newest_lease(name), Seal(name, flow.safety.ledger_secret)))
    return Leader(record.client, record.host, record.since) if record else None
