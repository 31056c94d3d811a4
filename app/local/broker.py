"""The configuration of a local broker: KRaft, its own controller, an ACL authorizer, SASL beside plaintext."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.local.ports import free_ports

HOST: Final = "127.0.0.1"
ADMIN: Final = ("admin", "admin-secret")
"""A user of SASL/PLAIN who may do everything, with the password."""

RESTRICTED: Final = ("restricted", "restricted-secret")
"""A user of SASL/PLAIN who may do nothing that no ACL allows, with the password."""

BASE: Mapping[str, str] = {
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT,SASL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": f"User:ANONYMOUS;User:{ADMIN[0]}",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.sasl.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        + " ".join(f'user_{user}="{password}"' for user, password in (ADMIN, RESTRICTED))
        + ";"
    ),
    "listener.name.sasl.scram-sha-256.sasl.jaas.config": (
        "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    ),
    "listener.name.sasl.scram-sha-512.sasl.jaas.config": (
        "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    ),
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


@dataclass(frozen=True, slots=True)
class Node:
    """One broker and controller with its ports; clients of `behind_proxy` are told to come to `proxy` instead."""

    id: int
    plain: int
    sasl: int
    controller: int
    proxy: int
    behind_proxy: int


def nodes(count: int) -> tuple[Node, ...]:
    """As many, ids from 1, on free ports."""
    ports = iter(free_ports(5 * count))
    return tuple(Node(number, *(next(ports) for _ in range(5))) for number in range(1, count + 1))


def server_properties(node: Node, quorum: Sequence[Node], data: Path | str, proxied: bool = False) -> dict[str, str]:
    """What `server.properties` says. `data`: the folder of its logs; `proxied`: with the listener behind a proxy."""
    bound = {"PLAINTEXT": node.plain, "SASL": node.sasl}
    advertised = dict(bound)
    if proxied:
        bound["PROXIED"], advertised["PROXIED"] = node.behind_proxy, node.proxy
    bound["CONTROLLER"] = node.controller
    return {
        **BASE,
        "node.id": str(node.id),
        "controller.quorum.voters": ",".join(f"{voter.id}@{HOST}:{voter.controller}" for voter in quorum),
        "listeners": _listeners(bound),
        "advertised.listeners": _listeners(advertised),
        "log.dirs": str(data),
    }


def _listeners(ports: Mapping[str, int]) -> str:
    return ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items())
