"""A Kafka broker in a container, by testcontainers: the same configuration as a local one's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import docker  # type: ignore[import-untyped] # it ships no types
from docker.errors import DockerException  # type: ignore[import-untyped] # it ships no types
from testcontainers.core.container import DockerContainer
from testcontainers.core.docker_client import DockerClient

from app.local.broker import nodes, server_properties
from app.local.jars import KAFKA
from app.local.ports import brokers_known_at
from app.local.waiting import wait_for

IMAGE = f"apache/kafka:{KAFKA}"
READY_WITHIN = 120.0


def docker_answers() -> bool:
    """Whether there is a Docker engine."""
    try:
        return bool(docker.from_env(timeout=5).ping())
    except DockerException:
        return False


def environment(properties: Mapping[str, str]) -> dict[str, str]:
    """Server properties in the words of the official image (KIP-975): `_` stands for a dot, `___` for a hyphen."""
    return {
        "KAFKA_" + name.replace("_", "__").replace("-", "___").replace(".", "_").upper(): value
        for name, value in properties.items()
    }


@contextmanager
def broker_in_container() -> Iterator[str]:
    """A single broker; yields its bootstrap address when it serves clients, and removes it in the end."""
    host = DockerClient().host()
    (node,) = nodes(1)
    properties = server_properties(node, [node], "/tmp/kafka-data") | {
        "listeners": f"PLAINTEXT://0.0.0.0:{node.plain},CONTROLLER://127.0.0.1:{node.controller}",
        "advertised.listeners": f"PLAINTEXT://{host}:{node.plain}",
    }
    container = DockerContainer(IMAGE, env=environment(properties)).with_bind_ports(node.plain, node.plain)
    with container:
        ready = f"the broker of the image {IMAGE} to serve"
        wait_for(lambda: brokers_known_at(node.plain, host) == 1, READY_WITHIN, ready)
        yield f"{host}:{node.plain}"
