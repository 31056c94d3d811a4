"""A command's single pass over one flow: the same pass as the job's, which looks at everything in its own time."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

from app.settings import Settings
from app.wiring import FlowClusters, audit, both_clusters, guard, ledger
from sinks.engine.claims import Claims
from sinks.engine.kind_status import first_status, kind_status
from sinks.engine.ledger import utc_now
from sinks.engine.model import Kind
from sinks.engine.reconcile import Compared, FlowParts, FlowReconcile
from sinks.engine.status import FlowState, FlowStatus, Heartbeats, as_far_as_known, at, flow_state, silence
from sinks.flow_settings import FlowSettings
from sinks.kinds.assembly import EVERY_GROUP, Assembly, GroupScope, Progress, assemble, no_progress
from sinks.kinds.controller import Controller
from sinks.kinds.offsets.controller import OffsetController
from sinks.kinds.offsets.direction import GroupOffset
from sinks.kinds.topics.listing import list_both
from streaming.errors import LockstepError, MalformedRecord
from streaming.mm2.codec import decode_heartbeat

CLAIMED = (Kind.ACL, Kind.SCRAM_USER, Kind.CLIENT_QUOTA)
"""Kinds whose flows claim what they want, so that none deletes what another still wants (`sinks.engine.claims`)."""

LAST_HEARTBEATS = 200
"""Records at the end of a heartbeats topic to look through: one a second and flow, so some minutes' worth."""


@dataclass(frozen=True)
class SinglePass:
    """`reconcile.compare` looks, `reconcile.apply` writes what was compared."""

    flow: FlowSettings
    clusters: FlowClusters
    reconcile: FlowReconcile
    controllers: tuple[Controller, ...]
    kinds: tuple[Kind, ...] = tuple(Kind)

    def compare(self, *, force: bool = False) -> Compared:
        """Everything, once. Raises what stops the flow."""
        return self.reconcile.compare(everything=True, force=force)

    @property
    def group_offsets(self) -> list[GroupOffset]:
        """What the last comparison knows of each group and partition."""
        return [row for one in self.controllers if isinstance(one, OffsetController) for row in one.rows]


@contextmanager
def single_pass(
    settings: Settings,
    flow: FlowSettings,
    *,
    writes: bool = False,
    kinds: Collection[Kind] = tuple(Kind),
    scope: GroupScope = EVERY_GROUP,
    progress: Progress = no_progress,
    claims: Claims | None = None,
    obeys_failover: bool = True,
) -> Iterator[SinglePass]:
    """Opens both clusters for one pass over these kinds. `writes`: False for who only looks.

    `claims`: of all flows into this target that the command compares. `obeys_failover`: False for a pass on behalf of a
    failover, and for the way back: they are made for a flow that has ended.
    """
    with ExitStack() as stack:
        clusters = stack.enter_context(both_clusters(settings, flow))
        made = assemble(
            Assembly(flow, *clusters.ports, once=True, progress=progress, scope=scope, claims=claims or Claims()), kinds
        )
        for controller in made.controllers:
            stack.callback(controller.close)
        parts = FlowParts(
            list_topics=partial(list_both, flow, clusters.source, clusters.target),
            guard=guard(flow, clusters.source, clusters.target),
            open_ledger=partial(ledger, flow, clusters.target, to_write=writes),
            audit=audit(flow, clusters.target),
            controllers=made.controllers,
            writers=made.writers,
            topic_ids=clusters.target.topic_ids,
            obeys_failover=obeys_failover and not scope.back,
        )
        yield SinglePass(flow, clusters, FlowReconcile(flow, parts), tuple(made.controllers), tuple(kinds))


def expected_claims(settings: Settings, kinds: Collection[Kind] = tuple(Kind)) -> dict[str, Claims]:
    """By target, for a command that compares these kinds of all these flows one after the other."""
    claims = {flow.flow.target: Claims() for flow in settings.flows}
    for flow in settings.flows:
        for kind in CLAIMED:
            if kind in kinds and flow.enabled.get(kind, False):
                claims[flow.flow.target].expect(flow.flow, kind)
    return claims


def newest_heartbeat(flow: FlowSettings, clusters: FlowClusters) -> Heartbeats | None:
    """The newest heartbeat that was copied from source to target, or emitted for the flow; None without one."""
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
            return Heartbeats(newest)
    return None


def status_now(settings: Settings, flow: FlowSettings) -> FlowStatus:
    """How a flow stands, from both clusters alone: what a running job knows besides is not in it."""
    try:
        with single_pass(settings, flow) as one:
            report = one.reconcile.look_only(one.compare())
            heartbeats = newest_heartbeat(flow, one.clusters)
    except LockstepError as error:
        kinds = as_far_as_known({kind: first_status(kind, flow) for kind in Kind}, FlowState.ERROR, utc_now())
        return FlowStatus(flow.flow, FlowState.ERROR, reason=str(error), kinds=kinds)
    age = max(0.0, time.time() - heartbeats.timestamp_ms / 1000) if heartbeats else None
    first = {kind: first_status(kind, flow) for kind in Kind}
    state = flow_state(None, age, flow.pace.heartbeat_timeout)
    kinds = {kind: kind_status(kind, before, report, utc_now()) for kind, before in first.items()}
    reasons = (silence(state, age), "no job answers; this is what both clusters show now")
    return FlowStatus(
        flow=flow.flow,
        state=state,
        heartbeat_age_seconds=age,
        reason="; ".join(reason for reason in reasons if reason),
        kinds=as_far_as_known(kinds, state, at(heartbeats)),
        effective=report.effective,
    )
