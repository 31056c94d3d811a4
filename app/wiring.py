"""Who gets what: constructor calls only, so that a reader sees the whole job's parts in one place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from app.local.java_gateway import kafka_jvm
from app.settings import Settings
from sinks.engine.apply import Writer, Writers
from sinks.engine.audit import Audit, process_identity
from sinks.engine.flow_task import Hear
from sinks.engine.guard import Guard
from sinks.engine.ledger import Ledger
from sinks.engine.metrics import Metrics
from sinks.engine.model import Kind
from sinks.engine.pins import PinFile
from sinks.engine.reconcile import Clusters, FlowReconcile
from sinks.engine.seal import Seal
from sinks.flow_settings import FlowSettings, Incremental
from sinks.kafka.jvm.jvm_acls import JvmAclWatch
from sinks.kafka.jvm.jvm_configs import JvmWatch
from sinks.kafka.jvm.jvm_groups import JvmGroupWatch
from sinks.kafka.jvm.jvm_levels import JvmLevels
from sinks.kafka.jvm.quorum_signal import QuorumSignal
from sinks.kafka.librdkafka.kafka_cluster import KafkaCluster
from sinks.kafka.librdkafka.rd_records import KafkaRecords
from sinks.kafka.ports.cluster import CountRequest, Reader, count_nothing
from sinks.kinds.acls.controller import AclController
from sinks.kinds.acls.writer import AclWriter
from sinks.kinds.brokers.controller import BrokerController
from sinks.kinds.brokers.rules import PROPERTIES, BrokerConfigRules
from sinks.kinds.brokers.writer import BrokerWriter
from sinks.kinds.controller import Controller
from sinks.kinds.offsets.checkpoints import CheckpointEmitter
from sinks.kinds.offsets.controller import OffsetClusters, OffsetController
from sinks.kinds.offsets.direction import ClusterGroups
from sinks.kinds.offsets.match_cache import MatchCache
from sinks.kinds.offsets.memory import MirrorTopics, OffsetMemory
from sinks.kinds.offsets.writer import GroupWriter
from sinks.kinds.topics.config_writer import ConfigWriter
from sinks.kinds.topics.writer import TopicWriter
from sinks.kinds.users.controller import UserController
from sinks.kinds.users.writer import UserWriter
from sinks.notify.latest import Patience
from sinks.notify.listener_part import ListenerController
from sinks.notify.listeners import Announcements, DefaultGroupListener, DefaultTopicListener
from sinks.notify.log_listener import LogListener
from streaming.flow import Flow


@dataclass(frozen=True)
class FlowClusters:
    """Both clusters of a flow, for a command that looks or writes once."""

    source: KafkaCluster
    target: KafkaCluster
    clients: tuple[Mapping[str, str], Mapping[str, str]] = field(default=({}, {}), repr=False)

    @contextmanager
    def levels(self) -> Iterator[tuple[JvmLevels, JvmLevels]]:
        """Configs with their levels on both sides, through a Java process that ends with the block."""
        with kafka_jvm() as gateway, ExitStack() as stack:
            pair = levels_of(gateway, *self.clients, (self.source.alias, self.target.alias), count_nothing)
            for one in pair:
                stack.callback(one.close)
            yield pair


def connect(
    settings: Settings, alias: str, flow: Flow | None = None, count_request: CountRequest = count_nothing
) -> KafkaCluster:
    """The cluster of an alias, as a flow names it. Raises LockstepError for client settings that cannot be used."""
    return KafkaCluster(alias, settings.cluster(alias, flow).admin, count_request)


@contextmanager
def both_ends(settings: Settings, flow: FlowSettings) -> Iterator[FlowClusters]:
    """Opens both clusters of a flow, and closes them."""
    with ExitStack() as stack:
        source, target = (connect(settings, alias, flow.flow) for alias in (flow.flow.source, flow.flow.target))
        stack.callback(source.close)
        stack.callback(target.close)
        clients = [settings.cluster(end.alias, flow.flow).admin for end in (source, target)]
        yield FlowClusters(source, target, (clients[0], clients[1]))


def audit(flow: FlowSettings, target: KafkaCluster) -> Audit:
    """The audit topic of a flow."""
    return Audit(flow.internal.audit, target, flow.safety.audit_factor, process_identity())


def ledger(flow: FlowSettings, target: KafkaCluster, *, to_write: bool) -> Ledger:
    """The ledger of a flow, read now. Raises LedgerUntrusted, ClusterUnreachable, RightsMissing."""
    seal, writer = Seal(flow.flow.name, flow.safety.ledger_secret), target if to_write else None
    return Ledger(flow.internal.ledger, target, writer, flow.safety.ledger_factor, seal=seal)


def guard(flow: FlowSettings, source: Reader, target: Reader, *, job: bool = False) -> Guard:
    """What checks both clusters of a flow, before anything else is read of them. `job`: it makes the local file."""
    pins = PinFile(flow.safety.pins, create=job) if flow.safety.pins else None
    ledgers = (flow.internal.ledger, flow.internal.reverse_ledger)
    return Guard(flow.flow, source, target, said=flow.safety.cluster_ids, pins=pins, ledgers=ledgers)


def ends_of(source: KafkaCluster, target: KafkaCluster) -> tuple[ClusterGroups, ClusterGroups]:
    """Both sides as the survey of groups needs them."""
    return ClusterGroups(source, source.groups), ClusterGroups(target, target.groups)


def records_of(flow: FlowSettings, source: KafkaCluster, target: KafkaCluster) -> tuple[KafkaRecords, KafkaRecords]:
    """Readers of both sides' records. An aborted copy on the target lies before the one that counts: it is read too."""
    return source.records(flow.isolation), target.records()


def mirror_topics(flow: FlowSettings, source: KafkaCluster, target: KafkaCluster) -> MirrorTopics:
    """Where MM2 writes what the flow's offsets follow from."""
    internal = flow.internal
    syncs_on = source if internal.offset_syncs_cluster == source.alias else target
    return MirrorTopics(internal.offset_syncs, syncs_on, internal.checkpoints, target)


class ConfigWriters:
    """One ConfigWriter per target and mode, so that flows into one target fall back, and warn, once."""

    def __init__(self) -> None:
        self._writers: dict[tuple[str, Incremental], ConfigWriter] = {}

    def of(self, target: KafkaCluster, mode: Incremental) -> ConfigWriter:
        """The writer for this target and mode."""
        return self._writers.setdefault((target.alias, mode), ConfigWriter(target, mode))


def writers_to(target: KafkaCluster, flow: FlowSettings, configs: ConfigWriters) -> Writers:
    """A writer for each kind."""
    writers: dict[Kind, Writer] = {
        Kind.TOPIC: TopicWriter(target),
        Kind.TOPIC_CONFIG: configs.of(target, flow.incremental),
        Kind.ACL: AclWriter(target.acls),
        Kind.GROUP_OFFSET: GroupWriter(target.alias, target.groups),
    }
    return writers | ({Kind.SCRAM_USER: UserWriter(target.users, flow.provider)} if flow.provider else {})


def levels_of(
    gateway: Any, source: Mapping[str, str], target: Mapping[str, str], aliases: tuple[str, str], count: CountRequest
) -> tuple[JvmLevels, JvmLevels]:
    """Configs with their levels on both sides, by the clients' properties."""
    return JvmLevels(aliases[0], gateway, source, count), JvmLevels(aliases[1], gateway, target, count)


def broker_rules(flow: FlowSettings) -> BrokerConfigRules:
    """Which configs of brokers are copied."""
    return BrokerConfigRules({PROPERTIES: ",".join(flow.broker_configs)})


def listener_part(
    settings: Settings, flow: FlowSettings, source: KafkaCluster, target: KafkaCluster, metrics: Metrics
) -> ListenerController | None:
    """None where nobody wants to be told anything."""
    chosen, internal = flow.listeners, flow.internal
    topics, groups = chosen.topics, chosen.groups
    if isinstance(topics, DefaultTopicListener) and isinstance(groups, DefaultGroupListener):
        return None
    opened = partial(connect, settings, flow.flow.target, flow.flow)
    for listener in (topics, groups):
        if isinstance(listener, LogListener):
            listener.write_to(opened, internal.topics, internal.groups, flow.replication_factor)
    patience = Patience(limit=chosen.timeout)
    announcements = Announcements(flow.flow, topics, groups, metrics.count_listener, patience, secrets=chosen.secrets)
    ends, wanted = ends_of(source, target), not isinstance(groups, DefaultGroupListener)
    return ListenerController(flow, *ends, announcements, groups=wanted)


def flow_parts(
    settings: Settings,
    flow: FlowSettings,
    gateway: Any,
    metrics: Metrics,
    configs: ConfigWriters,
    on_news: Callable[[], None] = lambda: None,
    on_ledger: Callable[[Ledger], None] = lambda ledger: None,
) -> tuple[FlowReconcile, Hear]:
    """What a flow in a running job is made of; `gateway` is py4j's, to the driver's JVM.

    `on_news` is called, from another thread, when the source's metadata log tells of a change; `on_ledger` by each walk
    that reads the ledger.
    """
    count = metrics.count_request
    source, target = (connect(settings, alias, flow.flow, count) for alias in (flow.flow.source, flow.flow.target))
    source_client, target_client = (settings.cluster(end.alias, flow.flow).admin for end in (source, target))
    clusters = Clusters(
        source=source,
        target=target,
        source_watch=JvmWatch(source.alias, gateway, source_client, count),
        target_watch=JvmWatch(target.alias, gateway, target_client, count),
        source_signal=QuorumSignal(source.alias, gateway, source_client, count, on_news),
    )
    acls = AclController(
        flow,
        source.acls,
        target.acls,
        JvmAclWatch(source.alias, gateway, source_client, count),
        JvmAclWatch(target.alias, gateway, target_client, count),
    )
    parts: list[Controller] = [acls] if flow.enabled[Kind.ACL] else []
    if flow.provider is not None:
        parts.append(UserController(flow, source.users, target.users, flow.provider, lambda: acls.principals))
    writers = writers_to(target, flow, configs)
    if flow.enabled[Kind.BROKER_CONFIG]:
        levels = levels_of(gateway, source_client, target_client, (source.alias, target.alias), count)
        parts.append(BrokerController(flow, broker_rules(flow), *levels))
        writers = {**writers, Kind.BROKER_CONFIG: BrokerWriter(levels[1])}
    memory = OffsetMemory()
    groups = OffsetClusters(
        *ends_of(source, target),
        mirror_topics(flow, source, target),
        JvmGroupWatch(source.alias, gateway, source_client, count),
    )
    emit = CheckpointEmitter(flow.internal.checkpoints, target, flow.replication_factor, memory)
    matches = MatchCache(*records_of(flow, source, target)) if flow.matching else None
    parts.append(OffsetController(flow, groups, memory, matches, emit if flow.emit_checkpoints else None))
    if told := listener_part(settings, flow, source, target, metrics):
        parts.append(told)
    reconcile = FlowReconcile(
        settings=flow,
        clusters=clusters,
        guard=guard(flow, source, target, job=True),
        open_ledger=lambda: ledger(flow, target, to_write=True),
        audit=audit(flow, target),
        writers=writers,
        parts=parts,
        on_ledger=on_ledger,
    )
    return reconcile, memory.hear
