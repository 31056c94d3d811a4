"""Local clusters whose brokers also listen behind a proxy."""

from __future__ import annotations

from typing import Any

from app.local.broker import Node
from app.local.local_cluster import LocalCluster
from app.local.ports import HOST, free_ports
from tests.kafka.secured_cluster import SecuredCluster


class ProxiedCluster(LocalCluster):
    """Each node has one listener more, `PROXIED`, which tells its clients to connect to the proxy.

    `proxies`: ports that the proxy forwards to, by the port where clients expect it, a pair for each node.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.proxies = {free_ports(1)[0]: free_ports(1)[0] for _ in self._nodes}

    def _properties(self, node: Node) -> dict[str, str]:
        plain, (proxy, behind) = super()._properties(node), list(self.proxies.items())[node.id - 1]
        more = {
            "listeners": f"PROXIED://{HOST}:{behind}",
            "advertised.listeners": f"PROXIED://{HOST}:{proxy}",
            "listener.security.protocol.map": "PROXIED:PLAINTEXT",
        }
        return plain | {name: f"{plain[name]},{value}" for name, value in more.items()}


class ProxiedSecuredCluster(ProxiedCluster, SecuredCluster):
    """With the listener `SECURED` as well."""
