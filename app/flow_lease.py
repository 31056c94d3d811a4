"""The lease by which a process of Lockstep leads a flow, made from its settings."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from functools import partial

from app.settings import Settings
from sinks.engine.leadership import Identity
from sinks.engine.lease import Lease
from sinks.engine.seal import Seal
from sinks.flow_settings import FlowSettings
from sinks.kafka.librdkafka.kafka_cluster import KafkaCluster
from sinks.kafka.request_timeout import longest_write


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
