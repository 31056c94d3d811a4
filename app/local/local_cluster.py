"""Runs a Kafka cluster on this machine, for the demo, the tests and the benchmark: brokers as child processes."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import javaproperties

from app.local.broker import Node, nodes, server_properties
from app.local.jar_sets import KAFKA_JARS, JarSet
from app.local.jars import fetched
from app.local.java import QUICK_START, JavaProcess, stop_all
from app.local.ports import HOST, brokers_known_at
from app.local.startable import JavaService, logging_options
from app.local.waiting import wait_for
from app.private_files import replace_file

CLUSTER_READY_WITHIN = 300.0
"""Seconds in which a cluster must start. It takes 3 on an idle machine."""


class LocalCluster(JavaService):
    """A cluster of `brokers` nodes, each both broker and controller, with data and logs in `folder`.

    `heap`: of each node, as in `-Xmx`. `java_options`: of each node. `overrides`: server properties. `allow_everyone`:
    allows what no ACL covers; otherwise only super users may do that. `jars`: of the Kafka version to run.
    """

    def __init__(
        self,
        alias: str,
        folder: Path,
        brokers: int = 1,
        *,
        heap: str = "512m",
        java_options: Sequence[str] = (),
        overrides: Mapping[str, str] | None = None,
        allow_everyone: bool = False,
        jars: JarSet = KAFKA_JARS,
    ) -> None:
        super().__init__(folder)
        self.alias, self._jars = alias, jars
        self._nodes = nodes(brokers)
        self._overrides = {"allow.everyone.if.no.acl.found": str(allow_everyone).lower(), **(overrides or {})}
        self._options = [f"-Xmx{heap}", "-XX:+UseSerialGC", *java_options]

    @property
    def bootstrap(self) -> str:
        """The addresses of the plaintext listeners. Their clients are super users without a login."""
        return ",".join(f"{HOST}:{node.plain}" for node in self._nodes)

    @property
    def sasl_bootstrap(self) -> str:
        """The addresses of the SASL_PLAINTEXT listeners: PLAIN with `broker.ADMIN` or `broker.RESTRICTED`, and
        SCRAM."""
        return ",".join(f"{HOST}:{node.sasl}" for node in self._nodes)

    def client_properties(self, user: tuple[str, str] | None = None) -> dict[str, str]:
        """Returns Java client properties: for the plaintext listener, or for SASL/PLAIN with this user (name and
        password)."""
        if user is None:
            return {"bootstrap.servers": self.bootstrap}
        return {
            "bootstrap.servers": self.sasl_bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            **login(user, "PLAIN"),
        }

    def start(self, *, wait: bool = True) -> None:
        """Starts all nodes; the first start formats the storage. Returns when they serve clients, or at once unless
        `wait`.

        If a node does not start, stops the others and raises LockstepError with the end of its log. Does nothing while
        nodes run.
        """
        if self.pids:
            return
        self._processes = []
        self._prepare(fetched(self._jars))
        for node in self._nodes:
            self._processes.append(self._started(node))
        if wait:
            self.wait_until_ready()

    def stop_node(self, number: int) -> None:
        """Stops one node by its id; its data stays. The others continue while a majority runs."""
        self._processes[number - 1].stop()

    def kill_node(self, number: int) -> None:
        """Sends SIGKILL to one node by its id, as a crash; its data stays."""
        self._processes[number - 1].kill()

    def start_node(self, number: int) -> None:
        """Starts a stopped node. Returns when every node knows all others again."""
        self._processes[number - 1] = self._started(self._nodes[number - 1])
        self.wait_until_ready()

    def wait_until_ready(self, timeout: float = CLUSTER_READY_WITHIN) -> None:
        """Returns when every node serves clients and knows all others. Raises LockstepError after stopping
        everything."""
        self._wait_for(self._serves, timeout, f"the brokers of cluster {self.alias} to serve (logs in {self._folder})")

    def _started(self, node: Node) -> JavaProcess:
        options = [*self._options, *logging_options(self._folder)]
        return JavaProcess("kafka.Kafka", [str(self._file(node))], fetched(self._jars), self._log(node), options)

    def _serves(self) -> bool:
        self.check()
        return all(brokers_known_at(node.plain) == len(self._nodes) for node in self._nodes)

    def restart(self) -> None:
        self.stop()
        self.start()

    def _prepare(self, classpath: Sequence[Path]) -> None:
        """Writes the nodes' files and formats their storage, before the first node starts."""
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "A")
        processes = []
        for node in self._nodes:
            # A folder of an earlier process has the ports of then.
            file, log = self._write(node), self._folder / f"format-{node.id}.log"
            if not (self._data(node) / "meta.properties").exists():
                arguments = ["format", "--cluster-id", cluster_id, "--config", str(file)]
                options = [*QUICK_START, *self._options]
                processes.append(JavaProcess("kafka.tools.StorageTool", arguments, classpath, log, options))
        try:
            for process in processes:
                wait_for(
                    process.succeeded, CLUSTER_READY_WITHIN, f"the storage of cluster {self.alias} to be formatted"
                )
        finally:
            stop_all(processes)

    def _write(self, node: Node) -> Path:
        path = self._file(node)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = javaproperties.dumps(self._properties(node), timestamp=False)
        replace_file(path, text.encode("latin-1"))
        return path

    def _properties(self, node: Node) -> dict[str, str]:
        """Returns a node's properties. The cluster's overrides come last and win."""
        return server_properties(node, self._nodes, self._data(node)) | self._overrides

    def _data(self, node: Node) -> Path:
        return self._folder / f"data-{node.id}"

    def _file(self, node: Node) -> Path:
        return self._folder / f"server-{node.id}.properties"

    def _log(self, node: Node) -> Path:
        return self._folder / f"broker-{node.id}.log"


@contextmanager
def started(*clusters: LocalCluster) -> Iterator[None]:
    """Starts these clusters side by side, and stops them at the end, even after an error. Raises as `start`."""
    with ExitStack() as stack:
        for cluster in clusters:
            stack.callback(cluster.stop)
            cluster.start(wait=False)
        for cluster in clusters:
            cluster.wait_until_ready()
        yield


def login(user: tuple[str, str], mechanism: str) -> dict[str, str]:
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    name, password = (word.replace("\\", "\\\\").replace('"', '\\"') for word in user)
    return {
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": (
            f'org.apache.kafka.common.security.{module} required username="{name}" password="{password}";'
        ),
    }
