"""Clusters, ledger, audit and guard of a flow, made from its settings: constructor calls only.

What only the running job has is in `app.job.flow_wiring`.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial

from app.local.java_gateway import process_jvm
from app.settings import Settings
from sinks.engine.cluster_guard import ClusterGuard, former_ledger
from sinks.faults import LedgerUntrusted
from sinks.flow_settings import FlowSettings
from sinks.kafka.jvm.java_admin import JavaAdmin
from sinks.kafka.jvm.jvm_acls import JvmAcls, JvmAclWatch
from sinks.kafka.jvm.jvm_levels import JvmLevels
from sinks.kafka.jvm.jvm_transactions import JvmTransactions
from sinks.kafka.jvm.jvm_watches import JvmGroupWatch, JvmWatch
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.kafka.ports.cluster import Cluster, CountRequest, Reader, count_nothing
from sinks.kafka.ports.cluster_ports import ClusterPorts
from sinks.kafka.ports.watches import UnwatchedConfigs, UnwatchedGroups, UnwatchedList
from sinks.kafka.records.client_config import client_config
from sinks.kafka.request_timeout import longest_write, request_timeout
from sinks.ledger.audit import Audit, audit_seal, process_identity
from sinks.ledger.lease import Identity, Lease
from sinks.ledger.ledger import Ledger
from sinks.ledger.pins import PinFile
from sinks.ledger.seal import Seal
from streaming.errors import LockstepError
from streaming.flow import Flow


def open_cluster(alias: str, properties: Mapping[str, str], count: CountRequest = count_nothing) -> KafkaCluster:
    """A cluster by its Java client properties, asked through this program's JVM.

    Raises LockstepError for client settings that cannot be used.
    """
    return KafkaCluster(alias, properties, process_jvm, count)


def connect(
    settings: Settings,
    alias: str,
    flow: Flow,
    count: CountRequest = count_nothing,
) -> KafkaCluster:
    """The cluster of an alias, as a flow names it. Raises LockstepError for client settings that cannot be used."""
    return open_cluster(alias, settings.cluster(alias, flow).admin, count)


def client_mistakes(settings: Settings, flow: FlowSettings) -> list[LockstepError]:
    """The mistakes in the client settings of both clusters of a flow. Connects to none."""
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
    seal = audit_seal(flow.flow.name, flow.safety.ledger_secret)
    return Audit(flow.internal.audit, target, flow.safety.audit_factor, process_identity(), seal=seal)


COPIED_LEDGER = (
    "{} on the cluster {} looks like this flow's ledger under the name of another separator. Under this replication "
    "policy MM2 may have copied it from {}, so it is not believed, and nothing is written. If it is the ledger, set "
    "replication.policy.separator back, or sign it (lockstep.ledger.secret, `lockstep ledger sign`). Else delete it"
)


def ledger(flow: FlowSettings, target: Cluster, *, to_write: bool, permit: Callable[[], None] = lambda: None) -> Ledger:
    """The ledger of a flow, read now. Raises LedgerUntrusted, ClusterUnreachable, RightsMissing.

    `permit`: raises unless this process leads the flow. A ledger with the name of another separator stays in use. If
    separators differ in `.` and `_` alone, Kafka does not even take the new name beside the old one.
    """
    seal, writer = Seal(flow.flow.name, flow.safety.ledger_secret), target if to_write else None
    opened = partial(Ledger, reader=target, writer=writer, factor=flow.safety.ledger_factor, seal=seal, permit=permit)
    found = opened(flow.internal.ledger)
    former = None if found.exists else _former(flow, target)
    return found if former is None else opened(former)


def _former(flow: FlowSettings, target: Reader) -> str | None:
    """The name of the ledger under another separator; None if there is none.

    Raises LedgerUntrusted for an unsigned topic that MM2 may have copied from the source.
    """
    former = former_ledger(flow.flow, target, flow.internal.ledger)
    if former is None or flow.safety.ledger_secret:
        return former
    if flow.policy.format_remote_topic(flow.flow.source, former) == former:
        raise LedgerUntrusted(COPIED_LEDGER.format(former, target.alias, flow.flow.source))
    return former


def with_ledger_in_use(flow: FlowSettings, target: Reader) -> FlowSettings:
    """The settings with the name of the ledger in use. Raises ClusterUnreachable, RightsMissing."""
    former = None if flow.internal.ledger in target.list_topics() else _former(flow, target)
    return flow if former is None else replace(flow, internal=replace(flow.internal, ledger=former))


def guard(flow: FlowSettings, source: Reader, target: Reader, *, job: bool = False) -> ClusterGuard:
    """The guard that checks the clusters of a flow first. `job`: it creates the local file of cluster ids."""
    pins = PinFile(flow.safety.pins, create=job) if flow.safety.pins else None
    ledgers = (flow.internal.ledger, flow.internal.reverse_ledger)
    return ClusterGuard(flow.flow, source, target, said=flow.safety.cluster_ids, pins=pins, ledgers=ledgers)


@dataclass(frozen=True)
class FlowClusters:
    """Both clusters of a flow, for a command that reads or writes once."""

    source: KafkaCluster
    target: KafkaCluster
    ports: tuple[ClusterPorts, ClusterPorts]


@contextmanager
def both_clusters(settings: Settings, flow: FlowSettings) -> Iterator[FlowClusters]:
    with ExitStack() as stack:
        source, target = (
            stack.enter_context(closing(connect(settings, alias, flow.flow)))
            for alias in (flow.flow.source, flow.flow.target)
        )
        yield FlowClusters(source, target, (cluster_ports(source), cluster_ports(target)))


def ledger_on_target(flow: FlowSettings, clusters: FlowClusters, *, to_write: bool = True) -> Ledger:
    """The ledger, for a caller that needs only the target. Raises as `ClusterGuard.open_for_target` and `ledger`."""
    opened = partial(ledger, flow, clusters.target, to_write=to_write)
    return guard(flow, clusters.source, clusters.target).open_for_target(opened, to_write=to_write)


def admin_of(alias: str, properties: Mapping[str, str], count: CountRequest = count_nothing) -> JavaAdmin:
    """Java's client of a cluster through this program's JVM, to be closed."""
    return JavaAdmin(alias, properties, process_jvm, count)


def cluster_ports(cluster: KafkaCluster, shared_acls: JvmAcls | None = None) -> ClusterPorts:
    """Every port of a cluster. `shared_acls`: the job's, which also polls; None: for a command, which looks once."""
    admin = cluster.admin
    return ClusterPorts(
        cluster=cluster,
        acls=shared_acls or cluster.acls,
        users=cluster.users,
        groups=cluster.groups,
        config_watch=UnwatchedConfigs if shared_acls is None else partial(JvmWatch, admin),
        acl_watch=UnwatchedList if shared_acls is None else partial(JvmAclWatch, shared_acls),
        group_watch=UnwatchedGroups if shared_acls is None else partial(JvmGroupWatch, admin),
        levels=JvmLevels(admin),
        records=cluster.records,
        transactions=JvmTransactions(admin),
        java=lambda: admin,
        epochs=partial(_epochs, [admin] if shared_acls is None else [admin, shared_acls.admin]),
    )


def _epochs(clients: Sequence[JavaAdmin]) -> list[int]:
    return [epoch for client in clients if (epoch := client.metadata_epoch()) is not None]


def lease(
    settings: Settings,
    flow: FlowSettings,
    command: str,
    *,
    patience: float = 0.0,
    wake: Callable[[], None] = lambda: None,
    on_failover: Callable[[], object] = lambda: None,
) -> Lease:
    """The leadership of a flow, for a process that runs this command; `patience`, `wake`, `on_failover` as in Lease.

    Opens nothing before the first claim. Raises LockstepError for client settings that cannot be used.
    """
    target, seal = flow.flow.target, Seal(flow.flow.name, flow.safety.ledger_secret)
    client = settings.cluster(target, flow.flow).admin
    opened, reserve = partial(open_cluster, target, client), longest_write(target, client)
    identity, name = process(command), flow.flow.name
    return Lease(name, opened, seal, identity, reserve, patience=patience, wake=wake, on_failover=on_failover)


def process(command: str) -> Identity:
    return Identity(f"lockstep-{command}-{os.getpid()}", socket.gethostname())
