"""A local cluster whose brokers also listen with TLS and SASL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from app.local.broker import LISTENER_PROTOCOLS, Node, logins
from app.local.local_cluster import LocalCluster, login
from app.local.ports import HOST, free_ports
from tests.certificates import make_stores

PROTOCOLS: Final = LISTENER_PROTOCOLS | {"SECURED": "SASL_SSL"}


def protocol_map(protocols: Mapping[str, str]) -> str:
    """The value of `listener.security.protocol.map`."""
    return ",".join(f"{name}:{protocol}" for name, protocol in protocols.items())


class SecuredCluster(LocalCluster):
    """Each node has one listener more, `SECURED`: SASL_SSL with the users of the listener `SASL`."""

    def __init__(
        self,
        alias: str,
        folder: Path,
        brokers: int = 1,
        *,
        heap: str = "256m",
        java_options: Sequence[str] = (),
        overrides: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(alias, folder, brokers, heap=heap, java_options=java_options, overrides=overrides)
        self._stores = make_stores(folder.resolve() / "tls")
        self._secured = free_ports(brokers)

    def secured_properties(self, user: tuple[str, str], mechanism: str = "SCRAM-SHA-512") -> dict[str, str]:
        """Returns Java client properties for the listener. A SCRAM user must exist."""
        return {
            "bootstrap.servers": ",".join(f"localhost:{port}" for port in self._secured),
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PKCS12",
            "ssl.truststore.location": str(self._stores.trust_store),
            "ssl.truststore.password": self._stores.password,
            **login(user, mechanism),
        }

    def _properties(self, node: Node) -> dict[str, str]:
        plain, address = super()._properties(node), f"SECURED://{HOST}:{self._secured[node.id - 1]}"
        store = {"type": "PKCS12", "location": str(self._stores.key_store), "password": self._stores.password}
        return {
            **plain,
            **{name: f"{plain[name]},{address}" for name in ("listeners", "advertised.listeners")},
            "listener.security.protocol.map": protocol_map(PROTOCOLS),
            **logins("secured"),
            **{f"listener.name.secured.ssl.keystore.{name}": value for name, value in store.items()},
            **self._overrides,
        }
