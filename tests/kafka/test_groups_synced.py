"""Groups' offsets on real clusters: the job writes them, Java clients read its checkpoints, and the way back."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from app.job.running_job import Job
from app.local.jars import PROJECT
from app.local.ports import free_ports
from app.local.waiting import wait_for
from app.settings import load
from lockstep import translate_offsets
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.ledger.audit import read_audit
from streaming.mm2.codec import encode_record
from streaming.mm2.records import OffsetSync, TopicPartition
from tests.conftest import Clusters
from tests.kafka.staging import client_of, create, write_properties

SOURCE, TOPIC = "east", "groups-synced-orders"
HERE, THERE = TopicPartition(TOPIC, 0), TopicPartition(f"{SOURCE}.{TOPIC}", 0)
SYNCS, CHECKPOINTS = "mm2-offset-syncs.b.internal", f"{SOURCE}.checkpoints.internal"
BEHIND, AT_END = "groups-synced-behind", "groups-synced-at-end"
SOON = 180.0


@dataclass(frozen=True)
class Stage:
    """A topic of 100 records. The target has them from 10 on, as if MM2 had copied them."""

    config: Path
    source: KafkaCluster
    target: KafkaCluster
    spark: SparkSession

    def run(self) -> None:
        """`run --once`."""
        assert Job(load(self.config), self.spark, True, (self.config, lambda before: before)).run()

    def commit(self, cluster: KafkaCluster, group: str, where: TopicPartition, offset: int) -> None:
        """Once the coordinator is there to take it."""
        wait_for(
            lambda: cluster.groups.commit({group: {where: offset}}) == {group: {where: None}},
            SOON,
            f"the offset of {group} to be committed",
        )

    def offsets(self, *options: str) -> list[dict[str, Any]]:
        """What `lockstep offsets` says."""
        command = [sys.executable, "-m", "app.main", "offsets", "--config", str(self.config), "-o", "json", *options]
        run = subprocess.run(command, cwd=PROJECT, check=False, capture_output=True, text=True, timeout=SOON)
        assert run.returncode == 0, run.stderr
        (flow,) = json.loads(run.stdout)["flows"]
        return list(flow["offsets"])


@pytest.fixture(scope="module")
def stage(clusters: Clusters, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    own = {
        "groups": "groups-synced-.*",
        "lockstep.sync.group.offsets.enabled": "true",
        "lockstep.emit.checkpoints.enabled": "true",
        "emit.checkpoints.enabled": "false",
        "topic.listener.class": "lockstep.listeners:LogListener",
        "group.listener.class": "lockstep.listeners:LogListener",
    }
    folder = tmp_path_factory.mktemp("groups")
    config = write_properties(folder, clusters.a, clusters.b, TOPIC, source=SOURCE, **own)
    with client_of(clusters.a) as source, client_of(clusters.b) as target:
        create(source, TOPIC, 1, {})
        create(target, THERE.topic, 1, {})
        source.append_log(TOPIC, [(b"k%d" % number, b"v") for number in range(100)])
        target.append_log(THERE.topic, [(b"k%d" % number, b"v") for number in range(10, 100)])
        source.create_log(SYNCS, 1, {"cleanup.policy": "compact"})
        source.append_log(SYNCS, [encode_record(OffsetSync(HERE, at, at - 10)) for at in (10, 50)])
        staged = Stage(config, source, target, spark)
        staged.commit(source, BEHIND, HERE, 60)
        staged.commit(source, AT_END, HERE, 100)
        # A coordinator that is only just being made refuses a first commit, and one pass has no second try.
        staged.commit(target, "groups-synced-first", THERE, 0)
        staged.run()
        yield staged


def test_the_job_writes_offsets_that_skip_nothing(stage: Stage) -> None:
    there = stage.target.groups.committed([BEHIND, AT_END]).items
    assert there[AT_END] == {THERE: 90}
    assert 41 <= there[BEHIND][THERE] <= 50


def test_javas_mirror_client_reads_the_checkpoints_that_were_emitted(stage: Stage, clusters: Clusters) -> None:
    jvm: Any = stage.spark.sparkContext._jvm
    properties = jvm.java.util.HashMap()
    properties.put("bootstrap.servers", clusters.b.bootstrap)
    client = jvm.org.apache.kafka.connect.mirror.MirrorClient(properties)
    try:
        answer = client.remoteConsumerOffsets(AT_END, SOURCE, jvm.java.time.Duration.ofSeconds(30))
        assert {(where.topic(), where.partition()): at.offset() for where, at in answer.items()} == {
            (THERE.topic, THERE.partition): 90
        }
    finally:
        client.close()


def test_the_command_and_the_library_say_what_the_job_wrote(stage: Stage) -> None:
    written = stage.target.groups.committed([BEHIND, AT_END]).items
    rows = {row["group"]: row for row in stage.offsets()}
    for group in (BEHIND, AT_END):
        assert rows[group]["verdict"] == "SYNCED"
        assert {THERE: rows[group]["downstream_offset"]} == written[group]
        assert translate_offsets(f"{SOURCE}->b", group, stage.config) == written[group]


def test_without_its_source_a_group_goes_on_at_its_checkpoints(stage: Stage, tmp_path: Path) -> None:
    address = f"{SOURCE}.bootstrap.servers"
    lines = [line for line in stage.config.read_text().splitlines() if not line.startswith(address)]
    config = tmp_path / "dead.properties"
    config.write_text("\n".join([*lines, f"{address} = 127.0.0.1:{free_ports(1)[0]}", ""]))
    assert translate_offsets(f"{SOURCE}->b", AT_END, config) == {THERE: 90}


def test_on_the_way_back_offsets_are_written_only_when_asked_and_audited(stage: Stage) -> None:
    group = "groups-synced-back"
    stage.commit(stage.target, group, THERE, 75)
    (row,) = stage.offsets("--reverse", "--group", group)
    assert (row["topic"], row["verdict"]) == (TOPIC, "PENDING")
    assert 51 <= row["upstream_offset"] <= 85
    assert stage.source.groups.committed([group]).items[group] == {}
    (after,) = stage.offsets("--reverse", "--group", group, "--execute", "--yes")
    assert after["verdict"] == "SYNCED"
    assert stage.source.groups.committed([group]).items[group] == {HERE: row["upstream_offset"]}
    events = read_audit(f"lockstep-audit.{SOURCE}.internal", stage.target)
    assert (group, TOPIC, "0") in {event.key for event in events if event.kind == "group-offset"}


def test_shipped_listener_says_on_the_target_what_is_replicated(stage: Stage) -> None:
    topics = dict(stage.target.read_log(f"lockstep-topics.{SOURCE}.internal"))
    assert json.loads(topics[TOPIC.encode()] or b"") == {"upstream": TOPIC, "remote": THERE.topic}
    groups = dict(stage.target.read_log(f"lockstep-groups.{SOURCE}.internal"))
    assert {BEHIND.encode(), AT_END.encode()} <= groups.keys()


def test_a_second_run_writes_no_offset(stage: Stage) -> None:
    stage.run()
    before = len(stage.target.read_log(CHECKPOINTS))
    stage.run()
    assert len(stage.target.read_log(CHECKPOINTS)) == before
