"""Clusters, ledger, audit and guard of a flow, made from its settings: constructor calls only.

What only the running job has is in `app.job.flow_wiring`.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from app.local.java_gateway import kafka_jvm
from app.settings import Settings
from sinks.engine.audit import Audit, process_identity
from sinks.engine.guard import Guard, former_ledger
from sinks.engine.leadership import Identity
from sinks.engine.lease import Lease
from sinks.engine.ledger import Ledger
from sinks.engine.pins import PinFile
from sinks.engine.seal import Seal
from sinks.flow_settings import FlowSettings
from sinks.kafka.jvm.java_client import JavaAdmin
from sinks.kafka.jvm.jvm_committed import BulkGroups
from sinks.kafka.jvm.jvm_ends import JvmEnds, JvmRecords
from sinks.kafka.jvm.jvm_levels import JvmLevels
from sinks.kafka.jvm.jvm_transactions import JvmTransactions
from sinks.kafka.librdkafka.client_config import client_config
from sinks.kafka.librdkafka.kafka_cluster import KafkaCluster
from sinks.kafka.ports.cluster import Cluster, CountRequest, Reader, count_nothing
from sinks.kafka.ports.cluster_ports import ClusterPorts
from sinks.kafka.ports.watches import UnwatchedConfigs, UnwatchedGroups, UnwatchedList
from sinks.kafka.request_timeout import longest_write, request_timeout
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


def ledger(flow: FlowSettings, target: Cluster, *, to_write: bool, permit: Callable[[], None] = lambda: None) -> Ledger:
    """The ledger of a flow, read now. Raises LedgerUntrusted, ClusterUnreachable, RightsMissing.

    `permit`: of who must lead the flow to write it. A ledger that has the name of another separator stays in use: where
    separators differ in `.` and `_` alone, Kafka does not even take the new name beside the old one.
    """
    seal, writer = Seal(flow.flow.name, flow.safety.ledger_secret), target if to_write else None
    opened = partial(Ledger, reader=target, writer=writer, factor=flow.safety.ledger_factor, seal=seal, permit=permit)
    found = opened(flow.internal.ledger)
    former = None if found.exists else former_ledger(flow.flow, target, flow.internal.ledger)
    return found if former is None else opened(former)


def guard(flow: FlowSettings, source: Reader, target: Reader, *, job: bool = False) -> Guard:
    """What checks both clusters of a flow, before anything else is read of them. `job`: it makes the local file."""
    pins = PinFile(flow.safety.pins, create=job) if flow.safety.pins else None
    ledgers = (flow.internal.ledger, flow.internal.reverse_ledger)
    return Guard(flow.flow, source, target, said=flow.safety.cluster_ids, pins=pins, ledgers=ledgers)


class LazyJvm:
    """A Java process for a command, started when it is needed first; ends with `stack`."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    @cached_property
    def gateway(self) -> Any:
        """py4j's gateway to it. Raises LockstepError where Java does not start."""
        return self._stack.enter_context(kafka_jvm())


@dataclass(frozen=True)
class FlowClusters:
    """Both clusters of a flow, for a command that reads or writes once; `jvm` for what only Java's client can ask."""

    source: KafkaCluster
    target: KafkaCluster
    ports: tuple[ClusterPorts, ClusterPorts]


@contextmanager
def both_clusters(settings: Settings, flow: FlowSettings, running: Any = None) -> Iterator[FlowClusters]:
    """Opens both clusters of a flow, and closes them. `running`: py4j's gateway to a Java process that is there already
    and is asked for what concerns many topics; without it one is started for what only Java's client knows."""
    with ExitStack() as stack:
        jvm = LazyJvm(stack)
        clusters = [connect(settings, alias, flow.flow) for alias in (flow.flow.source, flow.flow.target)]
        for cluster in clusters:
            stack.callback(cluster.close)
        source, target = (_unwatched_ports(settings, flow, cluster, jvm) for cluster in clusters)
        if running is not None:
            source, target = (_through_jvm(settings, flow, ports, running, stack) for ports in (source, target))
        yield FlowClusters(clusters[0], clusters[1], (source, target))


def _through_jvm(
    settings: Settings, flow: FlowSettings, ports: ClusterPorts, gateway: Any, stack: ExitStack
) -> ClusterPorts:
    made_of = (ports.alias, gateway, settings.cluster(ports.alias, flow.flow).admin, count_nothing)
    ends = JvmEnds(*made_of)
    stack.callback(ends.close)
    groups = BulkGroups(ports.groups, ends, *made_of)
    stack.callback(groups.close)
    records = ports.records
    return replace(ports, groups=groups, records=lambda isolation: JvmRecords(records(isolation), ends, isolation))


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
        transactions=lambda: JvmTransactions(JavaAdmin(cluster.alias, jvm.gateway, client, count_nothing)),
        java=lambda: JavaAdmin(cluster.alias, jvm.gateway, client, count_nothing),
    )


def lease(
    settings: Settings,
    flow: FlowSettings,
    command: str,
    *,
    patience: float = 0.0,
    wake: Callable[[], None] = lambda: None,
) -> Lease:
    """The leadership of a flow, for a process that runs this command; `patience` and `wake` as in Lease.

    Opens nothing before the first claim. Raises LockstepError for client settings that cannot be used.
    """
    target, seal = flow.flow.target, Seal(flow.flow.name, flow.safety.ledger_secret)
    client = settings.cluster(target, flow.flow).admin
    opened, reserve = partial(KafkaCluster, target, client), longest_write(target, client)
    return Lease(flow.flow.name, opened, seal, process(command), reserve, patience=patience, wake=wake)


def process(command: str) -> Identity:
    """This process, for others to read."""
    return Identity(f"lockstep-{command}-{os.getpid()}", socket.gethostname())
