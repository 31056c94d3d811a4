"""A Kafka cluster of this machine in ZooKeeper mode, as Kafka had it until 3.9."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import javaproperties

from app.local.broker import Node
from app.local.java import JavaProcess
from app.local.java_logging import logging_options
from app.local.local_cluster import LocalCluster
from app.local.ports import HOST, free_ports

MAIN: Final = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
KRAFT_ONLY: Final = ("process.roles", "node.id", "controller.")
"""How properties begin that brokers in ZooKeeper mode refuse."""

ZOOKEEPER_MODE: Final[Mapping[str, str]] = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    # What a killed broker left there would keep it from coming back for longer than a row takes until then.
    "zookeeper.session.timeout.ms": "4000",
    # A broker waits so long for ZooKeeper, which starts at the same time.
    "zookeeper.connection.timeout.ms": "60000",
}


class ZookeeperCluster(LocalCluster):
    """As a cluster in KRaft mode, with a ZooKeeper of its own, which outlives a killed broker."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._port = free_ports(1)[0]
        self._zookeeper: JavaProcess | None = None

    def stop(self) -> None:
        """Brokers first: they tell ZooKeeper that they go."""
        super().stop()
        if self._zookeeper is not None:
            self._zookeeper.stop()
            self._zookeeper = None

    def _prepare(self, classpath: Sequence[Path]) -> None:
        for node in self._nodes:
            self._write(node)
        if self._zookeeper is None:
            file = self._folder / "zookeeper.properties"
            own = {
                "dataDir": str(self._folder / "zookeeper"),
                "clientPort": str(self._port),
                "clientPortAddress": HOST,
                "admin.enableServer": "false",
                # The least session that it grants is two of them, the most twenty.
                "tickTime": "1000",
            }
            file.write_text(javaproperties.dumps(own, timestamp=False), encoding="latin-1")
            options = ["-Xmx256m", "-XX:+UseSerialGC", *logging_options(self._folder)]
            log = self._folder / "zookeeper.log"
            self._zookeeper = JavaProcess(MAIN, [str(file)], classpath, log, options)

    def _properties(self, node: Node) -> dict[str, str]:
        kept = {name: value for name, value in super()._properties(node).items() if not name.startswith(KRAFT_ONLY)}
        for name in ("listeners", "advertised.listeners"):
            kept[name] = ",".join(one for one in kept[name].split(",") if not one.startswith("CONTROLLER:"))
        own = {"broker.id": str(node.id), "zookeeper.connect": f"{HOST}:{self._port}"}
        return {**kept, **ZOOKEEPER_MODE, **own}
