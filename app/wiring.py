"""Who gets what: constructor calls only, so that a reader sees a flow's parts in one place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from app.flow_lease import lease
from app.local.java_gateway import kafka_jvm
from app.settings import Settings
from sinks.engine.audit import Audit, process_identity
from sinks.engine.claims import Claims
from sinks.engine.flow_parts import FlowParts
from sinks.engine.guard import Guard
from sinks.engine.ledger import Ledger
from sinks.engine.metrics import Metrics
from sinks.engine.pins import PinFile
from sinks.engine.reconcile import FlowReconcile
from sinks.engine.report import Observer
from sinks.engine.seal import Seal
from sinks.failover.source_ends import SourceEndsKeeper
from sinks.flow_settings import FlowSettings
from sinks.kafka.jvm.epoch_signal import EpochSignal
from sinks.kafka.jvm.java_client import JavaAdmin
from sinks.kafka.jvm.jvm_acls import JvmAclWatch
from sinks.kafka.jvm.jvm_committed import BulkGroups
from sinks.kafka.jvm.jvm_configs import JvmWatch
from sinks.kafka.jvm.jvm_groups import JvmGroupWatch
from sinks.kafka.jvm.jvm_levels import JvmLevels
from sinks.kafka.librdkafka.client_config import client_config
from sinks.kafka.librdkafka.kafka_cluster import KafkaCluster
from sinks.kafka.librdkafka.login import try_login
from sinks.kafka.ports.cluster import CountRequest, Reader, count_nothing
from sinks.kafka.ports.cluster_ports import ClusterPorts
from sinks.kafka.ports.unwatched import UnwatchedConfigs, UnwatchedGroups, UnwatchedList
from sinks.kafka.request_timeout import request_timeout
from sinks.kinds.assembly import Assembly, assemble
from sinks.kinds.offsets.commit_feed import CommitFeed
from sinks.kinds.offsets.direction import ClusterGroups
from sinks.kinds.topics.listing import list_both
from sinks.notify.latest import Patience
from sinks.notify.listener_observer import ListenerObserver
from sinks.notify.log_listener import LogListener
from sinks.notify.replication_listeners import Announcements, wants_nothing
from streaming.errors import LockstepError
from streaming.flow import Flow


def connect(
    settings: Settings, alias: str, flow: Flow | None = None, count_request: CountRequest = count_nothing
) -> KafkaCluster:
    """The cluster of an alias, as a flow names it. Raises LockstepError for client settings that cannot be used."""
    return KafkaCluster(alias, settings.cluster(alias, flow).admin, count_request)


def client_mistakes(settings: Settings, flow: FlowSettings) -> list[LockstepError]:
    """What is wrong with the client settings of either cluster of a flow. Connects to none."""
    found: list[LockstepError] = []
    for alias in (flow.flow.source, flow.flow.target):
        client = settings.cluster(alias, flow.flow).admin
        try:
            client_config(alias, client)
            request_timeout(alias, client)
        except LockstepError as error:
            found.append(error)
    return found


def audit(flow: FlowSettings, target: KafkaCluster) -> Audit:
    """The audit topic of a flow."""
    return Audit(flow.internal.audit, target, flow.safety.audit_factor, process_identity())


def ledger(
    flow: FlowSettings, target: KafkaCluster, *, to_write: bool, permit: Callable[[], None] = lambda: None
) -> Ledger:
    """The ledger of a flow, read now. Raises LedgerUntrusted, ClusterUnreachable, RightsMissing.

    `permit`: of who must lead the flow to write it.
    """
    seal, writer = Seal(flow.flow.name, flow.safety.ledger_secret), target if to_write else None
    return Ledger(flow.internal.ledger, target, writer, flow.safety.ledger_factor, seal=seal, permit=permit)


def guard(flow: FlowSettings, source: Reader, target: Reader, *, job: bool = False) -> Guard:
    """What checks both clusters of a flow, before anything else is read of them. `job`: it makes the local file."""
    pins = PinFile(flow.safety.pins, create=job) if flow.safety.pins else None
    ledgers = (flow.internal.ledger, flow.internal.reverse_ledger)
    return Guard(flow.flow, source, target, said=flow.safety.cluster_ids, pins=pins, ledgers=ledgers)


class LazyJvm:
    """A Java process for a command, started when somebody needs it first; ends with `stack`."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    @cached_property
    def gateway(self) -> Any:
        """py4j's gateway to it. Raises LockstepError where Java does not start."""
        return self._stack.enter_context(kafka_jvm())


@dataclass(frozen=True)
class FlowClusters:
    """Both clusters of a flow, for a command that looks or writes once; `jvm` for what only Java's client can ask."""

    source: KafkaCluster
    target: KafkaCluster
    ports: tuple[ClusterPorts, ClusterPorts]


@contextmanager
def both_clusters(settings: Settings, flow: FlowSettings) -> Iterator[FlowClusters]:
    """Opens both clusters of a flow, and closes them."""
    with ExitStack() as stack:
        jvm = LazyJvm(stack)
        clusters = [connect(settings, alias, flow.flow) for alias in (flow.flow.source, flow.flow.target)]
        for cluster in clusters:
            stack.callback(cluster.close)
        source, target = (_unwatched_ports(settings, flow, cluster, jvm) for cluster in clusters)
        yield FlowClusters(clusters[0], clusters[1], (source, target))


def _unwatched_ports(settings: Settings, flow: FlowSettings, cluster: KafkaCluster, jvm: LazyJvm) -> ClusterPorts:
    client = settings.cluster(cluster.alias, flow.flow).admin
    return ClusterPorts(
        cluster=cluster,
        acls=cluster.acls,
        users=cluster.users,
        groups=cluster.groups,
        config_watch=UnwatchedConfigs,
        acl_watch=UnwatchedList,
        group_watch=UnwatchedGroups,
        levels=lambda: JvmLevels(cluster.alias, jvm.gateway, client, count_nothing),
        records=cluster.records,
        java=lambda: JavaAdmin(cluster.alias, jvm.gateway, client, count_nothing),
    )


@dataclass(frozen=True)
class JobCluster:
    """A cluster of a flow in a running job, with watches in the driver's JVM. `client`: its Java properties."""

    cluster: KafkaCluster
    client: Mapping[str, str]
    groups: BulkGroups
    ports: ClusterPorts

    def close(self) -> None:
        """Lets go of its clients."""
        self.groups.close()
        self.cluster.close()


def _job_cluster(settings: Settings, alias: str, flow: Flow, gateway: Any, count: CountRequest) -> JobCluster:
    client = settings.cluster(alias, flow).admin
    cluster = connect(settings, alias, flow, count)
    groups = BulkGroups(cluster.groups, alias, gateway, client, count)
    ports = ClusterPorts(
        cluster=cluster,
        acls=cluster.acls,
        users=cluster.users,
        groups=groups,
        config_watch=lambda: JvmWatch(alias, gateway, client, count),
        acl_watch=lambda: JvmAclWatch(alias, gateway, client, count),
        group_watch=lambda: JvmGroupWatch(alias, gateway, client, count),
        levels=lambda: JvmLevels(alias, gateway, client, count),
        records=cluster.records,
        java=lambda: JavaAdmin(alias, gateway, client, count),
        log_in=partial(try_login, alias, client),
    )
    return JobCluster(cluster, client, groups, ports)


def flow_in_job(
    settings: Settings,
    flow: FlowSettings,
    gateway: Any,
    metrics: Metrics,
    on_signal: Callable[[], None] = lambda: None,
    on_ledger: Callable[[Ledger], None] = lambda ledger: None,
    claims: Claims | None = None,
    observers: Sequence[Observer] = (),
    commits: CommitFeed | None = None,
) -> FlowReconcile:
    """A flow of a running job; `gateway` is py4j's, to the driver's JVM. `observers`: told of its passes beside the
    listeners of these settings.

    `on_signal` is called, from another thread, when the source's metadata log tells of a change, and while this process
    may begin to lead; `on_ledger` by each pass that reads the ledger. `claims`: of all flows into this target.
    `commits`: what a stream of the source's commits brings. The `close` of what is returned closes the plug-ins of
    these settings, too.
    """
    count = metrics.count_request
    with ExitStack() as opened:
        here = _job_cluster(settings, flow.flow.source, flow.flow, gateway, count)
        opened.callback(here.close)
        there = _job_cluster(settings, flow.flow.target, flow.flow, gateway, count)
        opened.callback(there.close)
        leadership = lease(settings, flow, "run", wake=on_signal)
        led, claimed, heard = there.ports.written_with(leadership.check), claims or Claims(), commits or CommitFeed()
        made = assemble(Assembly(flow, here.ports, led, claims=claimed, commits=heard))
        listening = _observers(settings, flow, here.cluster, there.cluster, metrics)
        keeper = SourceEndsKeeper(here.cluster.records(), flow.failover.ends_interval)
        opened.callback(keeper.close)
        opened.callback(flow.close)
        # From here on it is closed with the flow.
        close = opened.pop_all().close
    return FlowReconcile(
        flow,
        FlowParts(
            list_topics=partial(list_both, flow, here.cluster, there.cluster),
            guard=guard(flow, here.cluster, there.cluster, job=True),
            open_ledger=partial(ledger, flow, there.cluster, to_write=True, permit=leadership.check),
            audit=audit(flow, there.cluster),
            controllers=made.controllers,
            writers=made.writers,
            topic_ids=there.cluster.topic_ids,
            keep=keeper.keep,
            signal=EpochSignal(flow.flow.source, gateway, here.client, count, on_signal),
            observers=[*observers, *listening],
            on_ledger=on_ledger,
            leadership=leadership,
            close=close,
        ),
    )


def _observers(
    settings: Settings, flow: FlowSettings, source: KafkaCluster, target: KafkaCluster, metrics: Metrics
) -> list[Observer]:
    """None where nobody wants to be told anything."""
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
    here, there = ClusterGroups(source, source.groups), ClusterGroups(target, target.groups)
    return [ListenerObserver(flow, here, there, announcements, groups=not wants_nothing(groups))]
