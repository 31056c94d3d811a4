"""Configures a local broker: KRaft with its own controller, an ACL authorizer, listeners for plaintext and SASL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.local.ports import HOST, free_ports

ADMIN: Final = ("admin", "admin-secret")
"""Name and password of a SASL/PLAIN user who may do everything."""

RESTRICTED: Final = ("restricted", "restricted-secret")
"""Name and password of a SASL/PLAIN user who may do only what an ACL allows."""

PLAIN_USERS: Final = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    + " ".join(f'user_{user}="{password}"' for user, password in (ADMIN, RESTRICTED))
    + ";"
)
SCRAM_USERS: Final = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
"""The JAAS config for SCRAM. It has no users: requests to the cluster create them."""

LISTENER_PROTOCOLS: Final = {
    "PLAINTEXT": "PLAINTEXT",
    "SASL": "SASL_PLAINTEXT",
    "CONTROLLER": "PLAINTEXT",
}
"""The security protocol of each listener."""

BROKER_BASE: Mapping[str, str] = {
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in LISTENER_PROTOCOLS.items()),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": f"User:ANONYMOUS;User:{ADMIN[0]}",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "auto.create.topics.enable": "false",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "5",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    # Allocated at the start, 128 MB by default.
    "log.cleaner.dedupe.buffer.size": "16777216",
}


def logins(listener: str) -> dict[str, str]:
    """Returns the JAAS configs of a SASL listener: the users above with PLAIN, and the cluster's own users with
    SCRAM."""
    users = {"plain": PLAIN_USERS, "scram-sha-256": SCRAM_USERS, "scram-sha-512": SCRAM_USERS}
    return {f"listener.name.{listener}.{name}.sasl.jaas.config": jaas for name, jaas in users.items()}


@dataclass(frozen=True, slots=True)
class Node:
    """One broker and controller with its ports."""

    id: int
    plain: int
    sasl: int
    controller: int


def nodes(count: int) -> tuple[Node, ...]:
    """Returns this many nodes, with ids from 1, on free ports."""
    ports = iter(free_ports(3 * count))
    return tuple(Node(number, *(next(ports) for _ in range(3))) for number in range(1, count + 1))


def server_properties(node: Node, quorum: Sequence[Node], data: Path | str) -> dict[str, str]:
    """Returns a node's `server.properties`. `data`: the folder of its logs."""
    advertised = {"PLAINTEXT": node.plain, "SASL": node.sasl}
    return {
        **BROKER_BASE,
        **logins("sasl"),
        "node.id": str(node.id),
        "controller.quorum.voters": ",".join(f"{voter.id}@{HOST}:{voter.controller}" for voter in quorum),
        "listeners": _listeners({**advertised, "CONTROLLER": node.controller}),
        "advertised.listeners": _listeners(advertised),
        "log.dirs": str(data),
    }


def _listeners(ports: Mapping[str, int]) -> str:
    return ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items())
