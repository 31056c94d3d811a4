"""Constructs a flow of the running job and its parts, in one place. Constructor calls only."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from threading import Lock

from app.settings import Settings
from app.wiring import admin_of, audit, cluster_ports, connect, guard, lease, ledger
from sinks.background import at_once, begun
from sinks.engine.flow_components import FlowComponents, SeeLedger
from sinks.engine.metrics import Metrics
from sinks.engine.reconcile import FlowReconcile
from sinks.engine.report import Observer
from sinks.every_kind.wishes import Wishes
from sinks.failover.scene import copies_of
from sinks.failover.source_end_offsets import SourceEndOffsetStore
from sinks.flow_settings import FlowSettings
from sinks.kafka.jvm.jvm_acls import JvmAcls, SharedJvmAcls
from sinks.kafka.jvm.metadata_signal import JvmMetadataSignal
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.kafka.ports.cluster import CountRequest
from sinks.kafka.ports.cluster_ports import ClusterPorts
from sinks.kinds.assembly import Assembly, assemble
from sinks.kinds.offsets.controller import offset_memory
from sinks.kinds.offsets.memory import OffsetMemory
from sinks.kinds.offsets.same_offsets import CopiedEnds
from sinks.kinds.shared_listings import FlowListing, SharedListings
from sinks.notify.announcements import Announcements, ListenerObserver
from sinks.notify.log_listener import LogListener
from sinks.notify.notifier import Patience
from sinks.plugins.listeners import wants_nothing
from streaming.flow import Flow


def _job_cluster(
    settings: Settings, alias: str, flow: Flow, opening: ExitStack, count: CountRequest, shared: SharedJvmAcls
) -> tuple[KafkaCluster, ClusterPorts, Hashable]:
    """Returns a cluster of the running job, its ports with watches in the driver's JVM, and its account (alias and
    client settings). Flows with equal accounts see the same of the cluster, so they share listings."""
    cluster = opening.enter_context(closing(connect(settings, alias, flow, count)))
    account = (alias, tuple(sorted(cluster.properties.items())))

    def acls() -> JvmAcls:
        return JvmAcls(admin_of(alias, cluster.properties, count))

    return cluster, cluster_ports(cluster, opening.enter_context(shared.used(account, acls))), account


@dataclass(frozen=True)
class JobHooks:
    """Callbacks and shared objects that a flow gets from its job.

    Another thread calls `on_signal` when the source's metadata log reports a change, `on_vacant` while this process may
    begin to lead, and `on_failover` after a command recorded a failover state. `overrides` gets each ledger that a pass
    has read. `wishes`: shared by all flows into this target. `listings`, `acls`, `full_turn`: shared by all flows of
    the job. `observers`: get the reports of the flow's passes, beside its listeners. `comes_again`: False in
    `run --once`.
    """

    on_signal: Callable[[], None] = lambda: None
    on_vacant: Callable[[], None] = lambda: None
    on_failover: Callable[[], object] = lambda: None
    overrides: SeeLedger | None = None
    wishes: Wishes = field(default_factory=Wishes)
    listings: SharedListings = field(default_factory=SharedListings)
    acls: SharedJvmAcls = field(default_factory=SharedJvmAcls)
    full_turn: Lock = field(default_factory=Lock)
    observers: Sequence[Observer] = ()
    comes_again: bool = False


def flow_in_job(
    settings: Settings, flow: FlowSettings, metrics: Metrics, hooks: JobHooks | None = None
) -> FlowReconcile:
    """Returns a flow of a running job. Its `close` also closes the plug-ins of these settings."""
    hooks, count = hooks or JobHooks(), metrics.count_request
    with ExitStack() as opened:
        source, here, _ = _job_cluster(settings, flow.flow.source, flow.flow, opened, count, hooks.acls)
        target, there, account = _job_cluster(settings, flow.flow.target, flow.flow, opened, count, hooks.acls)
        leadership = lease(settings, flow, "run", wake=hooks.on_vacant, on_failover=hooks.on_failover)
        led = there.written_with(leadership.check)
        again, beside = hooks.comes_again, begun if hooks.comes_again else at_once
        assembly = Assembly(flow, here, led, comes_again=again, beside=beside, wishes=hooks.wishes)
        made = assemble(assembly)
        listening = _observers(settings, flow, source, target, metrics)
        # A client for it alone: its samples do not wait for the answers of others.
        sampled = admin_of(flow.flow.source, source.properties, count)
        listing = FlowListing(flow, source, target, hooks.listings, account)
        source_ends = _source_ends(flow, here, there, offset_memory(made.controllers))
        opened.callback(source_ends.close)
        opened.callback(flow.close)
        # From here on it is closed with the flow.
        opened = opened.pop_all()
    return FlowReconcile(
        flow,
        FlowComponents(
            topics=listing,
            guard=guard(flow, source, target, job=True),
            open_ledger=partial(ledger, flow, target, to_write=True, permit=leadership.check),
            audit=audit(flow, target),
            controllers=made.controllers,
            writers=made.writers,
            target=target,
            source_ends=source_ends,
            signal=JvmMetadataSignal(sampled, hooks.on_signal),
            source_epochs=here.epochs,
            observers=[*hooks.observers, *listening],
            overrides=hooks.overrides,
            leadership=leadership,
            full_turn=hooks.full_turn,
            wishes=hooks.wishes,
            opened=opened,
        ),
    )


def _source_ends(
    flow: FlowSettings, here: ClusterPorts, there: ClusterPorts, memory: OffsetMemory
) -> SourceEndOffsetStore:
    # What a transaction of MM2's that it did not end brought is taken back.
    target = there.records("read_committed")
    return SourceEndOffsetStore(
        here.records(flow.isolation),
        flow.failover.ends_interval,
        syncs=memory.histories.latest,
        target=target,
        note_shrunk=memory.note_source_shrunk,
        cut=memory.cut_logs.take,
        copied_ends=CopiedEnds(target) if flow.keeps_offsets else None,
        copied_topics=partial(copies_of, flow),
        absent=here.cluster.confirmed_absent,
    )


def _observers(
    settings: Settings, flow: FlowSettings, source: KafkaCluster, target: KafkaCluster, metrics: Metrics
) -> list[Observer]:
    """Returns the observers that call the flow's listeners; empty if the file names no listener."""
    chosen, internal = flow.listeners, flow.internal
    topics, groups = chosen.topics, chosen.groups
    if wants_nothing(topics) and wants_nothing(groups):
        return []
    opened = partial(connect, settings, flow.flow.target, flow.flow)
    for listener in (topics, groups):
        if isinstance(listener, LogListener):
            listener.write_to(opened, internal.topics, internal.groups, flow.replication_factor)
        # It is closed in the thread in which it is called.
        flow.closing.hand_over(listener)
    patience = Patience(limit=chosen.timeout)
    announcements = Announcements(flow.flow, topics, groups, metrics.count_listener, patience, secrets=chosen.secrets)
    return [ListenerObserver(flow, source.groups, target.groups, announcements, groups=not wants_nothing(groups))]
