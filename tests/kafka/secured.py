"""Two secured clusters and a job between them that has the least rights, for the tests of both."""

from __future__ import annotations

import secrets
import shlex
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import javaproperties
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from app.cli.rights_command import commands
from app.local.jars import PROJECT
from app.local.local_cluster import LocalCluster, started
from app.local.local_job import LocalJob
from app.local.local_mirror import mirror_properties
from app.local.ports import free_ports
from app.local.waiting import wait_for
from app.rights.flow_rights import EVERY, Right, rights_of_flow
from app.rights.rights_check import RightVerdict, check_rights
from app.settings import Settings, load
from app.wiring import both_clusters
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.kafka.security.tls import trusted_certificates
from streaming.mm2.codec import encode_record
from streaming.mm2.records import Heartbeat
from tests.kafka.kafka_tools import ACLS, KafkaTools
from tests.kafka.markers import Markers, lines_of
from tests.kafka.secured_cluster import SecuredCluster
from tests.kafka.staging import client_of, create, flow_of
from tests.quick_java import QUICK_KAFKA

SMALL = "256m"
SOON = 180.0
PRINCIPAL = "User:lockstep"
FIRST_TIMESTAMP = int(time.time() * 1000)
"""Not of long ago: what is older than `retention.ms` is deleted when the brokers next look."""
Pair = dict[str, SecuredCluster]

INTERNAL = {
    "a": ("mm2-offset-syncs.b.internal",),
    "b": ("heartbeats", "a.heartbeats", "a.checkpoints.internal"),
}
"""What MM2 would have made."""


IMPLIED_BY = {"DESCRIBE": ("ALTER", "DELETE", "READ", "WRITE"), "DESCRIBE_CONFIGS": ("ALTER_CONFIGS",)}
"""As Kafka's StandardAuthorizer has it."""


def implied(right: Right, granted: Iterable[Right]) -> bool:
    """Whether another one of these gives this right, too: a stronger one, or one on more."""
    words = {right.operation, *IMPLIED_BY.get(right.operation, ())}
    return any(one.operation in words and one != right and _covers(one, right) for one in granted)


def _covers(wide: Right, right: Right) -> bool:
    if (wide.cluster, wide.resource_type) != (right.cluster, right.resource_type):
        return False
    prefixed = wide.pattern_type == "PREFIXED" and right.resource_name.startswith(wide.resource_name)
    return prefixed or wide.resource_name in (EVERY, right.resource_name)


@dataclass(frozen=True)
class Stage:
    """Two secured clusters, clients of theirs that may do everything, and a job that may do little."""

    ends: Pair
    source: KafkaCluster
    target: KafkaCluster
    settings: Settings
    config: Path
    folder: Path
    job: LocalJob
    tools: KafkaTools
    secrets: tuple[str, ...] = field(repr=False)
    markers: Markers = field(repr=False)

    def needed(self) -> list[Right]:
        """The rights of the flow."""
        return rights_of_flow(self.settings.flows[0])

    def missing(self) -> set[Right]:
        """The rights that the clusters say are missing."""
        flow = self.settings.flows[0]
        with both_clusters(self.settings, flow) as ends:
            found = check_rights(flow, ends)
        return {finding.right for finding in found if finding.verdict is not RightVerdict.GRANTED}

    def misses(self, right: Right) -> bool:
        """Whether this one is among them."""
        return right in self.missing()

    def beat(self) -> None:
        """A heartbeat, as MM2 writes one again and again: there is none here."""
        self.target.append_log("a.heartbeats", [encode_record(Heartbeat("a", "b", int(time.time() * 1000)))])

    def kind(self, name: str) -> dict[str, Any]:
        """A kind in the job's own status, of a flow that MM2 was heard of a moment ago."""
        self.beat()
        return dict(flow_of(self.job)["kinds"][name])

    def run(self, *arguments: str, config: Path | None = None) -> subprocess.CompletedProcess[str]:
        """A command of Lockstep's on the flow's file, or another."""
        command = [sys.executable, "-m", "app.main", *arguments, "--config", str(config or self.config)]
        return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False, timeout=900)

    def alter_right(self, right: Right, what: str) -> None:
        """Adds (`--add`) a right, or takes it away (`--remove`)."""
        kind = f"--{right.resource_type.lower()}"
        place = [kind] if right.resource_type == "CLUSTER" else [kind, right.resource_name]
        if right.pattern_type == "PREFIXED":
            place += ["--resource-pattern-type", "prefixed"]
        operation = ["--operation", right.operation.title().replace("_", "")]
        force = ["--force"] if what == "--remove" else []
        bootstrap = self.ends[right.cluster].bootstrap
        user = ["--allow-principal", PRINCIPAL]
        self.tools.run(ACLS, "--bootstrap-server", bootstrap, what, *user, *operation, *place, *force)

    @contextmanager
    def without(self, right: Right) -> Iterator[None]:
        """While this right is taken away, and the cluster knows it."""
        self.alter_right(right, "--remove")
        try:
            wait_for(partial(self.misses, right), SOON, f"{right} to be missed")
            yield
        finally:
            self.alter_right(right, "--add")


def make_user(cluster: LocalCluster, user: tuple[str, str]) -> None:
    """A SCRAM user."""
    credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    upsertion = UserScramCredentialUpsertion(user[0], credential, user[1].encode())
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    for future in admin.alter_user_scram_credentials([upsertion]).values():
        future.result()


def grant(tools: KafkaTools, ends: Mapping[str, LocalCluster], settings: Settings, principal: str) -> None:
    """Runs the commands that `lockstep rights` prints, at the plaintext listeners, whose user may do everything."""
    for line in commands(settings, principal):
        if line and not line.startswith("#"):
            words = shlex.split(line)
            alias = next(name for name in ends if settings.clusters[name].bootstrap_servers == words[2])
            tools.run(ACLS, "--bootstrap-server", ends[alias].bootstrap, *words[words.index("--add") :])


@contextmanager
def secured_pair(top: Path) -> Iterator[Pair]:
    """Two clusters with a listener of SASL_SSL each."""
    ends = {alias: SecuredCluster(alias, top / alias, heap=SMALL, java_options=QUICK_KAFKA) for alias in "ab"}
    with started(*ends.values()):
        yield ends


def write_file(
    folder: Path,
    ends: Mapping[str, SecuredCluster],
    user: tuple[str, str],
    port: int,
    secret: Mapping[str, str] | None = None,
) -> Path:
    """The properties file; Java's own names of every setting. What b's clients trust is PEM, within the file."""
    settings = {alias: cluster.secured_properties(user) for alias, cluster in ends.items()}
    settings["b"] |= {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": trusted_certificates(settings["b"]) or "",
    }
    for name in ("location", "password"):
        del settings["b"][f"ssl.truststore.{name}"]
    clients = {f"{alias}.{name}": value for alias, own in settings.items() for name, value in own.items()}
    keys = {
        "topics": "orders.*",
        "lockstep.sync.topic.configs.enabled": "true",
        "lockstep.sync.group.offsets.enabled": "true",
        "lockstep.http.port": str(port),
        # After a right was missing it is tried again as often as this.
        "lockstep.full.comparison.interval": "5 seconds",
        "lockstep.checkpoint.dir": str(folder / "checkpoints"),
    }
    properties = mirror_properties(dict.fromkeys(ends, ""), ["a->b"], **clients, **keys, **(secret or {}))
    path = folder.parent / "mirror.properties"
    path.write_text(javaproperties.dumps(properties, timestamp=False), encoding="latin-1")
    return path


def produce(cluster: LocalCluster, topic: str, records: int) -> None:
    """Records whose n-th has the key, value and timestamp n, into the first partition, as a copy has them, too."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for number in range(records):
        text = str(number).encode()
        producer.produce(topic, text, text, partition=0, timestamp=FIRST_TIMESTAMP + number)
    assert producer.flush(SOON) == 0


@contextmanager
def secured_stage(ends: Pair, tools: KafkaTools, top: Path) -> Iterator[Stage]:
    """The job runs, granted what `lockstep rights` prints, run through Kafka's own tool."""
    folder, port, user = top / "run", free_ports(1)[0], ("lockstep", secrets.token_hex(12))
    folder.mkdir()
    with ExitStack() as stack:
        for cluster in ends.values():
            make_user(cluster, user)
        source, target = (stack.enter_context(client_of(cluster)) for cluster in ends.values())
        for client in (source, target):
            for topic in INTERNAL[client.alias]:
                create(client, topic, 1, {"cleanup.policy": "compact"})
        create(source, "orders", 2, {"retention.ms": "3600000"})
        markers = Markers()
        config = write_file(folder, ends, user, port, lines_of(markers, top))
        settings = load(config)
        known = (user[1], settings.clusters["a"].admin["ssl.truststore.password"])
        job = LocalJob(config, port, folder / "job.log", token=settings.job.http_token)
        grant(tools, ends, settings, PRINCIPAL)
        staged = Stage(ends, source, target, settings, config, folder, job, tools, known, markers)
        stack.callback(job.stop)
        job.start()
        job.wait_until_compared()
        yield staged
