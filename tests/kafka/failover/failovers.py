"""A flow for the tests of the failover: a real MM2, producers that obey ACLs or do not, and commands on its file."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException, Producer

from app.http.page_history import FlowHistory
from app.job.preflight_watch import PreflightWatch
from app.local.broker import RESTRICTED
from app.local.jars import PROJECT
from app.local.local_cluster import LocalCluster
from app.local.local_mirror import mirror_properties
from app.local.waiting import wait_for
from app.settings import load
from app.wiring import audit, both_clusters, guard, ledger, open_cluster
from sinks.engine.flow_task import FlowTask
from sinks.engine.metrics import Metrics
from sinks.engine.reconcile import FlowComponents, FlowReconcile
from sinks.failover.cut_reader import all_records
from sinks.failover.preflight import Preflight
from sinks.failover.scene import copies_of
from sinks.failover.source_end_offsets import SourceEndOffsetStore
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.kafka.ports.acl_binding import AclBinding
from sinks.kafka.ports.cluster import TopicSpec
from sinks.kinds.assembly import Assembly, assemble
from sinks.kinds.offsets.controller import offset_memory
from sinks.ledger.failover_record import FailoverRecord
from sinks.ledger.kept_end_offsets import KnownPosition
from sinks.ledger.ledger import Ledger
from sinks.model.changes import Kind
from streaming.hints import NewestHeartbeat
from streaming.mm2.records import TopicPartition
from tests.conftest import Clusters
from tests.inline_work import inline
from tests.sinks.builders import flow_settings
from tests.sinks.memory_flow import PlainListing
from tests.sinks.scripted_pass import ScriptedPass

SOURCE, TARGET = "leaving", "taking"
"""Aliases that no other test has."""

SOON = 180.0
EVERY_SECOND = ("emit.heartbeats", "emit.checkpoints", "refresh.topics", "refresh.groups", "sync.group.offsets")


def properties(clusters: Clusters, **own: str) -> dict[str, str]:
    """A quick MM2 for topics `leaving-…`, which leaves all but records to Lockstep."""
    keys = {f"{name}.interval.seconds": "1" for name in EVERY_SECOND} | {
        "topics": "leaving-.*, failover-drill-.*",
        "groups": "leaving-.*",
        "offset.lag.max": "0",
        "sync.topic.configs.enabled": "false",
        "sync.topic.acls.enabled": "false",
        "lockstep.sync.full.acl.enabled": "true",
        "lockstep.sync.group.offsets.enabled": "true",
        "lockstep.failover.fence.proof": "1 second",
        "lockstep.http.port": "0",
        f"{TARGET}.offset.flush.interval.ms": "1000",
    }
    pair = {SOURCE: clusters.a.bootstrap, TARGET: clusters.b.bootstrap}
    return mirror_properties(pair, [f"{SOURCE}->{TARGET}"], **keys | own)


def write_file(folder: Path, lines: dict[str, str], name: str = "mm2.properties") -> Path:
    """The properties file."""
    path = folder / name
    path.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))
    return path


@dataclass(frozen=True)
class Flow:
    """Clients of both clusters, and the flow's file."""

    a: KafkaCluster
    b: KafkaCluster
    config: Path
    clusters: Clusters

    def run(self, *arguments: str, config: Path | None = None) -> subprocess.CompletedProcess[str]:
        """A command of Lockstep's, in a process of its own."""
        command = [sys.executable, "-m", "app.main", *arguments, "--config", str(config or self.config)]
        return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False, timeout=900)

    def asked(self, *arguments: str, code: int = 0, config: Path | None = None) -> dict[str, Any]:
        """The command's JSON of the flow."""
        done = self.run(*arguments, "-o", "json", config=config)
        assert done.returncode == code, done.stderr + done.stdout
        (flow,) = json.loads(done.stdout)["flows"]
        return dict(flow)

    def ledger(self) -> Ledger:
        """As it is now."""
        return Ledger(f"lockstep-ledger.{SOURCE}.internal", self.b, None, 1)

    def record(self) -> FailoverRecord:
        """How far the failover is now."""
        return self.ledger().failover()

    def look_as_a_job_does(self) -> None:
        """What a pass of the running job keeps in the ledger: MM2's offset-syncs, and the source's ends."""
        settings = load(self.config)
        (flow,) = settings.flows
        with both_clusters(settings, flow) as clusters, closing(clusters.source.records(flow.isolation)) as records:
            made = assemble(Assembly(flow, *clusters.ports), [Kind.GROUP_OFFSET])
            syncs = offset_memory(made.controllers).histories.latest
            components = FlowComponents(
                topics=PlainListing(flow, clusters.source, clusters.target),
                guard=guard(flow, clusters.source, clusters.target),
                open_ledger=partial(ledger, flow, clusters.target, to_write=True),
                audit=audit(flow, clusters.target),
                controllers=made.controllers,
                writers=made.writers,
                target=clusters.target,
                source_ends=SourceEndOffsetStore(
                    records,
                    5.0,
                    beside=inline,
                    syncs=syncs,
                    copied_topics=partial(copies_of, flow),
                    absent=clusters.source.confirmed_absent,
                ),
            )
            job = FlowReconcile(flow, components)
            job.run_pass(everything=True)
            job.close()

    def preflight_as_a_job_does(self) -> tuple[Preflight, dict[TopicPartition, KnownPosition]]:
        """What the running job asks now and then, of a flow with which all else is well; and what it counted."""
        script, history = ScriptedPass(), FlowHistory()
        script.settings = flow_settings(flow=load(self.config).flows[0].flow)
        task = FlowTask(script, Metrics("0"))  # type: ignore[arg-type]
        task.step(NewestHeartbeat(round(time.time() * 1000)))
        history.passed(script.report)
        watch = PreflightWatch(task, history, lambda: load(self.config))
        watch.tick()
        watch.close()
        made = task.status().failover.preflight
        assert made is not None
        return made, script.counted

    def make_topic(self, topic: str, partitions: int = 2, replicas: int = 1) -> None:
        """A topic on the source that `restricted` may write, with a record in each partition that MM2 has copied."""
        assert self.a.create_topics({topic: TopicSpec(partitions, replicas)}) == {topic: None}
        allowed = [
            AclBinding("TOPIC", topic, "LITERAL", f"User:{RESTRICTED[0]}", "*", operation, "ALLOW")
            for operation in ("WRITE", "DESCRIBE")
        ]
        assert not any(self.a.acls.create(allowed).values())
        wait_for(lambda: topic in self.a.list_topics(), SOON, f"{topic} to be listed")
        produce(self.clusters.a, topic, partitions, 1)
        for partition in range(partitions):
            self.wait_until_copied(topic, partition)

    def end(self, topic: str, partition: int, *, copy: bool = False) -> int:
        """The end of a partition on the source, or of its copy; 0 where there is none yet."""
        cluster, name = (self.b, f"{SOURCE}.{topic}") if copy else (self.a, topic)
        # librdkafka remembers that a topic was not there until all topics are listed once more.
        cluster.list_topics()
        seen = cluster.groups.ends([TopicPartition(name, partition)]).items
        return seen[TopicPartition(name, partition)].end if seen else 0

    def wait_until_copied(self, topic: str, partition: int = 0) -> None:
        """Until the target has as many records as the source."""

        def copied() -> bool:
            end = self.end(topic, partition)
            return 0 < end <= self.end(topic, partition, copy=True)

        wait_for(copied, SOON, f"{topic}-{partition} to be copied")


def values(cluster: LocalCluster, where: TopicPartition) -> list[bytes | None]:
    """Of all records of a partition, in order."""
    with (
        closing(open_cluster("any", {"bootstrap.servers": cluster.bootstrap})) as client,
        closing(client.records()) as records,
    ):
        return [record.value for record in all_records(records, {where: 0})[where]]


def produce(cluster: LocalCluster, topic: str, partitions: int, records: int) -> None:
    """So many records to each partition, as a super user."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for number in range(records):
        for partition in range(partitions):
            producer.produce(topic, b"v%d" % number, b"k%d" % number, partition)
    assert producer.flush(SOON) == 0


@contextmanager
def producing(cluster: LocalCluster, topics: Sequence[str], *, super_user: bool = False) -> Iterator[None]:
    """A producer that goes on writing, whatever it is told, for as long as this lasts."""
    user = None if super_user else RESTRICTED
    java = cluster.client_properties(user)
    config: dict[str, str | int] = {"bootstrap.servers": java["bootstrap.servers"], "linger.ms": 5}
    if user is not None:
        config |= {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user[0],
            "sasl.password": user[1],
        }
    stop, producer = threading.Event(), Producer(config)

    def write() -> None:
        number = 0
        while not stop.wait(0.01):
            number += 1
            for topic in topics:
                with suppress(KafkaException, BufferError):
                    producer.produce(topic, b"value %d" % number, b"key", 0)
            producer.poll(0)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        producer.purge()
        producer.flush(1)
