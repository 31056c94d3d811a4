"""Plans and statuses made on the spot, for commands that run without a job."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace

from app.wiring import FlowClusters, audit, broker_rules, ends_of, guard, ledger, mirror_topics, records_of
from sinks.engine.apply import apply_steps
from sinks.engine.ledger import Ledger
from sinks.engine.model import Kind, Outcome
from sinks.engine.plan import Plan, Unobserved, join_plans, make_plan
from sinks.engine.status import FlowStatus, Heartbeats, KindStatus, Task, flow_state
from sinks.faults import NotSupported
from sinks.flow_settings import FlowSettings
from sinks.kinds.acls.survey import survey_acls
from sinks.kinds.brokers.survey import any_broker, survey_brokers
from sinks.kinds.offsets.direction import GroupOffset, backward, forward
from sinks.kinds.offsets.match_cache import AT_LEISURE, MatchCache
from sinks.kinds.offsets.memory import OffsetMemory
from sinks.kinds.offsets.survey import chosen_groups, replicated_offsets, survey_offsets
from sinks.kinds.offsets.writer import GroupWriter
from sinks.kinds.topics.effective import broker_drifts, groups_of, warnings
from sinks.kinds.topics.survey import Listed, Progress, list_both, survey
from sinks.kinds.users.survey import survey_users
from streaming.errors import LockstepError, MalformedRecord
from streaming.mm2.codec import decode_heartbeat

LAST_HEARTBEATS = 200
"""Records at the end of a heartbeats topic to look through: one a second and flow, so some minutes' worth."""


def plan_flow(flow: FlowSettings, ends: FlowClusters, progress: Progress = lambda done, total: None) -> Plan:
    """What `apply` would do now. Writes nothing. Raises what stops the flow."""
    return _planned(flow, ends, ledger(flow, ends.target, to_write=False), progress)


def _planned(
    flow: FlowSettings, ends: FlowClusters, remembered: Ledger, progress: Progress = lambda done, total: None
) -> Plan:
    guard(flow, ends.source, ends.target).compare(remembered)
    listed, paused = list_both(flow, ends.source, ends.target), remembered.paused()
    seen = survey(
        flow,
        ends.source,
        ends.target,
        listed,
        owned=remembered.owned(Kind.TOPIC),
        paused=paused,
        progress=progress,
    )
    plans = [seen.plan]
    if flow.enabled[Kind.ACL] and Kind.ACL not in paused:
        plans += _access(flow, ends, listed, remembered)
    if flow.enabled[Kind.BROKER_CONFIG] and Kind.BROKER_CONFIG not in paused:
        plans.append(_brokers(flow, ends, remembered))
    if flow.enabled[Kind.GROUP_OFFSET] and Kind.GROUP_OFFSET not in paused:
        rows = group_offsets(flow, ends, listed, remembered)
        plans.append(make_plan(flow.flow, [change for row in rows if (change := row.change)]))
    return join_plans(flow.flow, plans)


def _access(flow: FlowSettings, ends: FlowClusters, listed: Listed, remembered: Ledger) -> Iterator[Plan]:
    try:
        acls = survey_acls(flow, ends.source.acls, ends.target.acls, listed, remembered.owned(Kind.ACL))
        yield acls.plan
        if flow.provider and acls.principals is not None and Kind.SCRAM_USER not in remembered.paused():
            yield survey_users(flow, ends.source.users, ends.target.users, acls.principals, flow.provider, remembered)
    except NotSupported as error:
        yield Plan(flow.flow, notes=(f"left alone: {error}",))


def _brokers(flow: FlowSettings, ends: FlowClusters, remembered: Ledger) -> Plan:
    """The plan, with each default that differs where neither side sets anything: as a note, and as drift.

    A running job knows nothing of these: it takes all configs of a broker on each side to see them.
    """
    rules = broker_rules(flow)
    with ends.levels() as (source, target):
        plan = survey_brokers(flow, rules, source, target, remembered.owned(Kind.BROKER_CONFIG))
        here, there = any_broker(source, ends.source.alias), any_broker(target, ends.target.alias)
    if isinstance(here, Unobserved) or isinstance(there, Unobserved):
        return plan
    drifts = list(broker_drifts(here, there, rules))
    return replace(plan, notes=(*plan.notes, *warnings(flow.flow, drifts)), effective=groups_of(drifts))


def group_offsets(
    flow: FlowSettings,
    ends: FlowClusters,
    listed: Listed,
    remembered: Ledger,
    groups: Collection[str] | None = None,
    *,
    back: bool = False,
) -> list[GroupOffset]:
    """A row for each group (of `groups`, if given) and partition; `back`: from the target to the source.

    The offsets come from the ledger and from what compaction left of MM2's topics.
    """
    memory = OffsetMemory()
    memory.load(remembered, mirror_topics(flow, ends.source, ends.target))
    source, target = ends_of(ends.source, ends.target)
    direction = backward(source, target, listed) if back else forward(flow, source, target, listed)
    chosen = chosen_groups(flow, direction.here.groups.names())
    wanted = chosen if groups is None else [group for group in chosen if group in groups]
    committed = replicated_offsets(direction, wanted)
    if not flow.matching:
        return survey_offsets(flow, direction, committed, memory)
    every = sum(map(len, committed.values()))
    with closing(MatchCache(*records_of(flow, ends.source, ends.target), AT_LEISURE, every)) as matches:
        return survey_offsets(flow, direction, committed, memory, matches)


def write_back(flow: FlowSettings, ends: FlowClusters, rows: Iterable[GroupOffset]) -> tuple[Outcome, ...]:
    """Writes what `group_offsets` found on the way back to the source's groups, audited on the target."""
    guard(flow, ends.source, ends.target).check(ledger(flow, ends.target, to_write=True))
    plan = make_plan(flow.flow, [change for row in rows if (change := row.change)])
    writers = {Kind.GROUP_OFFSET: GroupWriter(ends.source.alias, ends.source.groups)}
    outcomes: list[Outcome] = []
    try:
        for step in apply_steps(plan, writers):
            outcomes += step
    finally:
        audit(flow, ends.target).record(plan, outcomes)
    return tuple(outcomes)


def newest_heartbeat(flow: FlowSettings, ends: FlowClusters) -> Heartbeats | None:
    """The newest heartbeat that crossed from source to target, or was emitted for the flow; None without one."""
    crossed = flow.policy.format_remote_topic(flow.flow.source, flow.policy.heartbeats_topic())
    for topic in (crossed, flow.internal.heartbeats):
        newest = 0
        for key, value in ends.target.read_log(topic, last=LAST_HEARTBEATS):
            try:
                heartbeat = decode_heartbeat(key, value)
            except MalformedRecord:
                continue
            if (heartbeat.source, heartbeat.target) == (flow.flow.source, flow.flow.target) or topic == crossed:
                newest = max(newest, heartbeat.timestamp)
        if newest:
            return Heartbeats(newest)
    return None


def status_flow(flow: FlowSettings, ends: FlowClusters) -> FlowStatus:
    """How a flow stands, from both clusters alone: what a running job knows besides is not in it."""
    try:
        remembered = ledger(flow, ends.target, to_write=False)
        plan, heartbeats = _planned(flow, ends, remembered), newest_heartbeat(flow, ends)
    except LockstepError as error:
        return FlowStatus(flow.flow, flow_state(str(error), None, 0), reason=str(error))
    age = max(0.0, time.time() - heartbeats.timestamp_ms / 1000) if heartbeats else None
    return FlowStatus(
        flow=flow.flow,
        state=flow_state(None, age, flow.pace.heartbeat_timeout),
        heartbeat_age_seconds=age,
        reason="no job answers; this is what a look at both clusters shows",
        kinds={kind: _kind_status(flow.enabled, remembered.paused(), kind, plan) for kind in Kind},
        effective=plan.effective,
    )


def _kind_status(enabled: Mapping[Kind, bool], paused: set[Kind], kind: Kind, plan: Plan) -> KindStatus:
    if not enabled.get(kind, False):
        return KindStatus(Task.DISABLED, "not enabled")
    refused = tuple(refusal for refusal in plan.refused if refusal.kind is kind)
    drift = sum(change.kind is kind for change in plan.changes) + len(refused)
    blind = next((error.reason for error in plan.errors if error.kind is kind), None)
    return KindStatus(Task.PAUSED if kind in paused else Task.ACTIVE, blind, drift, refused=refused)
