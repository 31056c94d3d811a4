"""What the tests of the whole job share: a properties file for two local clusters, clients, and how topics look."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
from prometheus_client import CollectorRegistry

from app.local.local_cluster import LocalCluster
from app.local.local_job import LocalJob
from app.local.local_mirror import mirror_properties
from app.local.waiting import wait_for
from app.wiring import open_cluster
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.kafka.ports.cluster import TopicSpec

SOON = 180.0
"""Seconds until what was written must be visible."""

EXCLUDED = "follower.replication.throttled.replicas"
"""In MM2's default `config.properties.exclude`."""

WRITES = frozenset({"CreateTopics", "CreatePartitions", "DeleteTopics", "IncrementalAlterConfigs", "AlterConfigs"})
"""Admin requests that change a cluster, by their names in `lockstep_admin_requests_total`."""


def write_properties(
    folder: Path, a: LocalCluster, b: LocalCluster, topics: str, *, source: str = "a", **own: str
) -> Path:
    """A file for the flow a->b of the topics that this pattern matches; returns where it is.

    `source`: another alias for a. Kafka takes names that differ in `.` and `_` alone for a collision, so that flows
    with different separators need names of their own on a shared target.
    """
    keys = {
        "topics": topics,
        "lockstep.sync.topic.configs.enabled": "true",
        "lockstep.http.port": "0",
        "lockstep.checkpoint.dir": str(folder / "checkpoints"),
    }
    properties = mirror_properties({source: a.bootstrap, "b": b.bootstrap}, [f"{source}->b"], **keys | own)
    path = folder / "mirror.properties"
    path.write_text("".join(f"{name} = {value}\n" for name, value in properties.items()))
    return path


@contextmanager
def client_of(cluster: LocalCluster) -> Iterator[KafkaCluster]:
    """A client of a cluster, closed at the end."""
    client = open_cluster(cluster.alias, {"bootstrap.servers": cluster.bootstrap})
    yield client
    client.close()


def create(cluster: KafkaCluster, topic: str, partitions: int, configs: Mapping[str, str]) -> None:
    """A topic that is there and visible with all its configs."""
    spec = TopicSpec(partitions, 1, tuple(sorted(configs.items())))
    assert cluster.create_topics({topic: spec}) == {topic: None}
    wait_for(lambda: shown(cluster, topic) == (partitions, dict(configs)), SOON, f"{topic} to be visible")


def alter(cluster: KafkaCluster, topic: str, changes: Mapping[str, str | None]) -> None:
    """Sets and deletes configs, and returns when the broker shows it."""
    assert cluster.alter_topic_configs({topic: changes}) == {topic: None}
    wanted = {(name, value) for name, value in changes.items()}
    wait_for(lambda: wanted <= {(n, overrides(cluster, topic).get(n)) for n in changes}, SOON, f"{topic}: {changes}")


def grow(cluster: KafkaCluster, topic: str, partitions: int) -> None:
    """Adds partitions, and returns when the broker shows them."""
    assert cluster.create_partitions({topic: partitions}) == {topic: None}
    wait_for(lambda: cluster.list_topics().get(topic) == partitions, SOON, f"{topic} to have {partitions} partitions")


def overrides(cluster: KafkaCluster, topic: str) -> dict[str, str | None]:
    """What is set on the topic itself; nothing if it is not there."""
    entries = cluster.describe_topic_configs([topic]).items.get(topic, {})
    return {name: entry.value for name, entry in entries.items() if entry.is_override}


def shown(cluster: KafkaCluster, topic: str) -> tuple[int, dict[str, str | None]]:
    """Partition count (0: no such topic) and overrides."""
    return cluster.list_topics().get(topic, 0), overrides(cluster, topic)


def wait_until_shown(cluster: KafkaCluster, topic: str, partitions: int, configs: Mapping[str, str | None]) -> None:
    """Until the topic has exactly these. A broker shows what the controller wrote a moment later."""
    wanted = (partitions, dict(configs))
    what = f"{topic} on {cluster.alias} to have {wanted}"
    wait_for(lambda: shown(cluster, topic) == wanted, 2 * SOON, what)


def flow_of(job: LocalJob) -> dict[str, Any]:
    """The first flow in a job's status, once the job answers."""
    return dict(wait_for(lambda: job.status().get("flows"), SOON, "the job to answer")[0])


def writes(registry: CollectorRegistry) -> dict[tuple[str, str], float]:
    """How many admin requests that change something were sent, by alias and API name."""
    samples = [sample for family in registry.collect() for sample in family.samples]
    return {
        (sample.labels["cluster"], sample.labels["api"]): sample.value
        for sample in samples
        if sample.name == "lockstep_admin_requests_total" and sample.labels["api"] in WRITES
    }


def family_of(pid: int) -> list[psutil.Process]:
    """A process and all its descendants, as of now."""
    first = psutil.Process(pid)
    return [first, *first.children(recursive=True)]


def command_line(process: psutil.Process) -> list[str]:
    """Empty once it has ended."""
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


def running(processes: list[psutil.Process]) -> list[str]:
    """Those that still run, by process id and name; a zombie does not."""
    found = []
    for one in processes:
        try:
            if one.is_running() and one.status() != psutil.STATUS_ZOMBIE:
                found.append(f"{one.pid} {one.name()}")
        except psutil.NoSuchProcess:
            continue
    return found


def wait_until_gone(processes: list[psutil.Process]) -> None:
    """Until none of them runs any more."""
    wait_for(lambda: not running(processes), SOON, f"{running(processes)} to end")
