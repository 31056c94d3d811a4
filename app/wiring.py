"""Constructs clusters, ledger, audit and guard of a flow from its settings.

`app.job.flow_wiring` constructs what only a running job needs.
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
    """Returns a cluster by its Java client properties. Uses this program's JVM.

    Raises LockstepError for client settings that Java rejects.
    """
    return KafkaCluster(alias, properties, process_jvm, count)


def connect(
    settings: Settings,
    alias: str,
    flow: Flow,
    count: CountRequest = count_nothing,
) -> KafkaCluster:
    """Returns the cluster of an alias with the flow's client settings. Raises LockstepError for settings that Java
    rejects."""
    return open_cluster(alias, settings.cluster(alias, flow).admin, count)


def client_mistakes(settings: Settings, flow: FlowSettings) -> list[LockstepError]:
    """Returns the mistakes in the client settings of both clusters of a flow. Connects to neither."""
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
    "policy MM2 may have copied it from {}, so Lockstep does not trust it and writes nothing. If it is the ledger, set "
    "replication.policy.separator back, or sign it (lockstep.ledger.secret, `lockstep ledger sign`). Else delete it"
)


def ledger(flow: FlowSettings, target: Cluster, *, to_write: bool, permit: Callable[[], None] = lambda: None) -> Ledger:
    """Reads and returns the ledger of a flow. Raises LedgerUntrusted, ClusterUnreachable, RightsMissing.

    `permit`: raises unless this process leads the flow. A ledger whose name has an earlier separator stays in use: if
    the names differ only in `.` and `_`, Kafka refuses the new one.
    """
    seal, writer = Seal(flow.flow.name, flow.safety.ledger_secret), target if to_write else None
    opened = partial(Ledger, reader=target, writer=writer, factor=flow.safety.ledger_factor, seal=seal, permit=permit)
    found = opened(flow.internal.ledger)
    former = None if found.exists else _former(flow, target)
    return found if former is None else opened(former)


def _former(flow: FlowSettings, target: Reader) -> str | None:
    """Returns the name of the ledger under an earlier separator; None if there is no such topic.

    Raises LedgerUntrusted for an unsigned topic that MM2 may have copied from the source.
    """
    former = former_ledger(flow.flow, target, flow.internal.ledger)
    if former is None or flow.safety.ledger_secret:
        return former
    if flow.policy.format_remote_topic(flow.flow.source, former) == former:
        raise LedgerUntrusted(COPIED_LEDGER.format(former, target.alias, flow.flow.source))
    return former


def with_ledger_in_use(flow: FlowSettings, target: Reader) -> FlowSettings:
    """Returns the settings with the name of the ledger in use. Raises ClusterUnreachable, RightsMissing."""
    former = None if flow.internal.ledger in target.list_topics() else _former(flow, target)
    return flow if former is None else replace(flow, internal=replace(flow.internal, ledger=former))


def guard(flow: FlowSettings, source: Reader, target: Reader, *, job: bool = False) -> ClusterGuard:
    """Returns the guard that checks a flow's clusters before use. `job`: it also creates the local file of cluster
    ids."""
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
    """Returns the ledger for a caller that needs only the target. Raises as `ClusterGuard.open_for_target` and
    `ledger`.
    """
    opened = partial(ledger, flow, clusters.target, to_write=to_write)
    return guard(flow, clusters.source, clusters.target).open_for_target(opened, to_write=to_write)


def admin_of(alias: str, properties: Mapping[str, str], count: CountRequest = count_nothing) -> JavaAdmin:
    """Returns Java's Admin client of a cluster, in this program's JVM. The caller closes it."""
    return JavaAdmin(alias, properties, process_jvm, count)


def cluster_ports(cluster: KafkaCluster, shared_acls: JvmAcls | None = None) -> ClusterPorts:
    """Returns the interfaces to a cluster: topics, groups, records, ACLs and so on. `shared_acls`: the job's reader of
    ACLs, which polls. None: a command's, which reads once."""
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
    """Returns the leadership of a flow for a process that runs this command. `patience`, `wake`, `on_failover`: as in
    Lease.

    Connects at the first claim. Raises LockstepError for client settings that Java rejects.
    """
    target, seal = flow.flow.target, Seal(flow.flow.name, flow.safety.ledger_secret)
    client = settings.cluster(target, flow.flow).admin
    opened, reserve = partial(open_cluster, target, client), longest_write(target, client)
    identity, name = process(command), flow.flow.name
    return Lease(name, opened, seal, identity, reserve, patience=patience, wake=wake, on_failover=on_failover)


def process(command: str) -> Identity:
    return Identity(f"lockstep-{command}-{os.getpid()}", socket.gethostname())
