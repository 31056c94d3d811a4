"""Everything a change passes through, on real clusters: `run --once` under each naming of remote topics (KIP-690)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from app.job.running_job import Job
from app.settings import Settings, load
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.ledger.audit import read_audit
from sinks.ledger.ledger import Ledger
from sinks.model.changes import Kind
from tests.conftest import Clusters
from tests.kafka.staging import (
    EXCLUDED,
    alter,
    client_of,
    create,
    grow,
    overrides,
    shown,
    wait_until_shown,
    write_properties,
    writes,
)

CONFIGS = {"retention.ms": "3600000", "max.message.bytes": "2000000", "min.insync.replicas": "1"}
"""The last one is in MM2's default `config.properties.exclude`."""


@dataclass(frozen=True)
class Naming:
    """A policy's properties, and what a remote topic and Lockstep's own topics are called under it."""

    name: str
    source: str
    properties: Mapping[str, str]
    remote: str
    ledger: str
    audit: str


NAMINGS = (
    Naming("default", "a", {}, "a.{}", "lockstep-ledger.a.internal", "lockstep-audit.a.internal"),
    Naming(
        "identity",
        "a",
        {"replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"},
        "{}",
        "lockstep-ledger.a.internal",
        "lockstep-audit.a.internal",
    ),
    Naming(
        "underscore",
        "u",
        {"replication.policy.separator": "_"},
        "u_{}",
        "lockstep-ledger_u_internal",
        "lockstep-audit_u_internal",
    ),
)


@dataclass(frozen=True)
class Staged:
    """A flow whose first run is done: one source topic of three partitions with CONFIGS."""

    naming: Naming
    settings: Settings
    spark: SparkSession
    source: KafkaCluster
    target: KafkaCluster
    topic: str

    @property
    def remote(self) -> str:
        return self.naming.remote.format(self.topic)

    def run(self) -> dict[tuple[str, str], float]:
        """`run --once` in a job of its own; the requests that changed something, by alias and API name."""
        job = Job(self.settings, self.spark, True, (Path("unchanged"), lambda before: before))
        assert job.run()
        return writes(job.metrics.registry)


@pytest.fixture(scope="module", params=NAMINGS, ids=lambda naming: naming.name)
def staged(
    request: pytest.FixtureRequest,
    clusters: Clusters,
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Staged]:
    naming: Naming = request.param
    folder: Path = tmp_path_factory.mktemp(naming.name)
    topic = f"pass-{naming.name}-orders"
    topics = f"pass-{naming.name}-.*"
    path = write_properties(folder, clusters.a, clusters.b, topics, source=naming.source, **naming.properties)
    with client_of(clusters.a) as source, client_of(clusters.b) as target:
        create(source, topic, 3, CONFIGS)
        create(source, f"other-{naming.name}", 1, {})
        staged = Staged(naming, load(path), spark, source, target, topic)
        staged.run()
        wait_until_shown(target, staged.remote, 3, {k: v for k, v in CONFIGS.items() if k != "min.insync.replicas"})
        yield staged


def test_topics_that_the_filter_leaves_out_are_not_created(staged: Staged) -> None:
    names = staged.target.list_topics()
    assert staged.remote in names
    assert staged.naming.remote.format(f"other-{staged.naming.name}") not in names


def test_a_second_run_writes_nothing(staged: Staged) -> None:
    assert staged.run() == {}


def test_what_was_created_is_remembered_under_the_policys_separator(staged: Staged) -> None:
    """The ledger owns the topic and pins both clusters; the audit topic says what was done; both are on the target."""
    ledger = Ledger(staged.naming.ledger, staged.target, None, 1)
    assert (staged.remote,) in ledger.owned(Kind.TOPIC)
    events = [event for event in read_audit(staged.naming.audit, staged.target) if event.key[:1] == (staged.remote,)]
    assert ("topic", "create", "applied") in {(event.kind, event.op, event.result) for event in events}
    assert {(event.source, event.target) for event in events} == {(staged.naming.source, "b")}
    assert not {staged.naming.ledger, staged.naming.audit} & staged.source.list_topics().keys()


def test_later_changes_arrive_and_what_is_excluded_survives(staged: Staged) -> None:
    """Set, changed, removed, grown; an excluded key that a client set on the target stays. Nothing is left to do."""
    alter(staged.target, staged.remote, {EXCLUDED: "*"})
    alter(staged.source, staged.topic, {"retention.ms": "7200000", "segment.ms": "60000", "max.message.bytes": None})
    grow(staged.source, staged.topic, 5)
    sent = staged.run()
    expected = {"retention.ms": "7200000", "segment.ms": "60000", EXCLUDED: "*"}
    wait_until_shown(staged.target, staged.remote, 5, expected)
    assert sent == {("b", "CreatePartitions"): 1.0, ("b", "IncrementalAlterConfigs"): 1.0}
    assert staged.run() == {}


def test_what_was_changed_on_the_target_is_set_back(staged: Staged) -> None:
    """What the source has wins over another client's change of the remote topic, and so does what the source lacks."""
    before = shown(staged.target, staged.remote)
    alter(staged.target, staged.remote, {"retention.ms": "1", "delete.retention.ms": "1"})
    staged.run()
    wait_until_shown(staged.target, staged.remote, *before)
    assert overrides(staged.source, staged.topic)["retention.ms"] == before[1]["retention.ms"]
