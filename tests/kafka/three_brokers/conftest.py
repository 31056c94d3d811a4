"""Two clusters of three brokers and an MM2. Each topic has three replicas, and two of them must be in sync."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from confluent_kafka import KafkaException, Message, Producer

from app.local.local_cluster import LocalCluster, started
from app.local.local_mirror import REPLICATED, LocalMirror
from app.local.ports import free_ports
from app.local.waiting import wait_for
from app.wiring import open_cluster
from sinks.kafka.kafka_cluster import KafkaCluster
from tests.conftest import Clusters
from tests.kafka.failover.failover_processes import Commands, command_server
from tests.kafka.failover.failovers import SOON, SOURCE, TARGET, Flow, properties, write_file
from tests.quick_java import QUICK_KAFKA

BROKERS = 3
LEDGER = f"lockstep-ledger.{SOURCE}.internal"

OVERRIDES = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
}


@dataclass(frozen=True)
class Trios:
    """`flow`: with clients of both clusters. `port`: of the job's HTTP, as its file says."""

    flow: Flow
    mirror: LocalMirror
    port: int


@pytest.fixture(scope="package")
def trios(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trios]:
    """MM2 runs between them, and no job."""
    folder, port = tmp_path_factory.mktemp("trios"), free_ports(1)[0]
    a, b = (
        LocalCluster(alias, folder / alias, BROKERS, heap="256m", java_options=QUICK_KAFKA, overrides=OVERRIDES)
        for alias in "ab"
    )
    with started(a, b):
        clusters = Clusters(a, b)
        own = {f"{name}.replication.factor": "3" for name in REPLICATED} | {
            "replication.factor": "3",
            "lockstep.sync.topic.configs.enabled": "true",
            "lockstep.checkpoint.dir": str(folder / "checkpoints"),
            "lockstep.http.port": str(port),
        }
        lines = properties(clusters, **own)
        with (
            LocalMirror(lines, folder / "mirror", java_options=QUICK_KAFKA) as mirror,
            closing(open_cluster(SOURCE, a.client_properties())) as source,
            closing(open_cluster(TARGET, b.client_properties())) as target,
        ):
            yield Trios(Flow(source, target, write_file(folder, lines), clusters), mirror, port)


@pytest.fixture(scope="package")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    """Runs commands that stop themselves at a step."""
    with command_server(tmp_path_factory.mktemp("commands")) as server:
        yield server


def leader(client: KafkaCluster, topic: str) -> int:
    """The id of the broker that leads the topic's first partition."""
    described = client.admin.client.describeTopics(client.admin.rows.texts([topic])).allTopicNames().get()
    return int(described.get(topic).partitions().get(0).leader().id())


def coordinator(client: KafkaCluster, group: str) -> int:
    """The id of the broker that coordinates a group."""
    described = client.admin.client.describeConsumerGroups(client.admin.rows.texts([group])).all().get()
    return int(described.get(group).coordinator().id())


def controller(client: KafkaCluster) -> int:
    """The id of the node that leads the metadata log."""
    return int(client.admin.client.describeMetadataQuorum().quorumInfo().get().leaderId())


@contextmanager
def away(cluster: LocalCluster, *numbers: int) -> Iterator[None]:
    """Kills brokers as a crash does, and starts them again at the end, all of the cluster if most were away."""
    for number in numbers:
        cluster.kill_node(number)
    try:
        yield
    finally:
        if 2 * len(numbers) > BROKERS:
            # A broker alone that comes back finds no majority to ask for the others.
            cluster.kill()
            cluster.start()
        else:
            for number in numbers:
                cluster.start_node(number)


def until_done(commands: Commands, *call: str, config: Path) -> dict[str, Any]:
    """Runs a command again until it ends well, as its message says. Returns the JSON of its flow.

    What a dead broker led has no leader for about ten seconds, and longer on a busy machine.
    """

    def done() -> dict[str, Any] | None:
        ended = commands.run(*call, config=config)
        return ended.flow() if ended.code == 0 else None

    return wait_for(done, 2 * SOON, f"`lockstep {' '.join(call)}` to end well")


@dataclass
class Written:
    """Values that brokers have acknowledged: with `acks=all`, at least two of the three have them."""

    values: list[bytes] = field(default_factory=list)

    def take(self, error: object, message: Message) -> None:
        """What librdkafka tells of each record."""
        value = message.value()
        if error is None and value is not None:
            self.values.append(value)


@contextmanager
def writing(flow: Flow, topic: str, user: tuple[str, str]) -> Iterator[Written]:
    """A producer that writes to the source for as long as this lasts."""
    java = flow.clusters.a.client_properties(user)
    config: dict[str, str | int | bool] = {
        "bootstrap.servers": java["bootstrap.servers"],
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user[0],
        "sasl.password": user[1],
        "enable.idempotence": True,
        "linger.ms": 5,
    }
    written, stop, producer = Written(), Event(), Producer(config)

    def write() -> None:
        number = 0
        while not stop.wait(0.01):
            number += 1
            with suppress(KafkaException, BufferError):
                producer.produce(topic, b"value %d" % number, b"key", 0, on_delivery=written.take)
            producer.poll(0)

    thread = Thread(target=write)
    thread.start()
    try:
        yield written
    finally:
        stop.set()
        thread.join(SOON)
        producer.purge()
        producer.flush(10)
