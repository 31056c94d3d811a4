"""The commands and the job beside a copier that preserves offsets, between real clusters."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from app.local.jars import PROJECT
from app.local.local_job import LocalJob
from app.local.local_mirror import mirror_properties
from app.local.ports import free_ports
from app.local.waiting import wait_for
from app.wiring import open_cluster
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.kafka.ports.cluster import TopicSpec
from sinks.ledger.kept_end_offsets import kept_end_offsets
from sinks.ledger.ledger import Ledger
from streaming.mm2.records import TopicPartition
from tests.conftest import Clusters
from tests.kafka.failover.failovers import SOON, produce, values
from tests.kafka.preserving_copier import PreservingCopier, preserving_copier

IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"

pytestmark = pytest.mark.endurance


@dataclass(frozen=True)
class Preserved:
    """A flow whose copier preserves offsets, and its topic, with ten records in each of two partitions."""

    clusters: Clusters
    copier: PreservingCopier
    a: KafkaCluster
    b: KafkaCluster
    folder: Path
    lines: Mapping[str, str]
    topic: str

    @property
    def source(self) -> str:
        """The alias, which no other test has."""
        return self.lines["clusters"].partition(",")[0]

    def config(self, name: str = "flow.properties", **own: str) -> Path:
        path = self.folder / name
        path.write_text("".join(f"{key} = {value}\n" for key, value in (dict(self.lines) | own).items()))
        return path

    def run(self, *arguments: str, config: Path | None = None) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "app.main", *arguments, "--config", str(config or self.config())]
        return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False, timeout=240)

    def asked(self, *arguments: str, code: int = 0, config: Path | None = None) -> dict[str, Any]:
        done = self.run(*arguments, "-o", "json", config=config)
        assert done.returncode == code, done.stderr + done.stdout
        (flow,) = json.loads(done.stdout)["flows"]
        return dict(flow)

    def partition(self, number: int) -> TopicPartition:
        return TopicPartition(self.topic, number)

    def ends(self, cluster: KafkaCluster) -> list[int]:
        wanted = [self.partition(number) for number in range(2)]
        seen = cluster.groups.ends(wanted).items
        return [seen[where].end if where in seen else 0 for where in wanted]

    def wait_until_copied(self) -> None:
        def copied() -> bool:
            assert self.copier.failure is None
            self.b.list_topics()
            return self.ends(self.a) == self.ends(self.b) != [0, 0]

        wait_for(copied, SOON, f"{self.topic} to be copied")


@pytest.fixture
def preserved(clusters: Clusters, unique: str, tmp_path: Path) -> Iterator[Preserved]:
    source, target, prefix = f"kept{unique}", f"keeping{unique}", f"kept-{unique}"
    keys = {
        "lockstep.copier": "offset-preserving",
        "replication.policy.class": IDENTITY,
        "topics": f"{prefix}.*",
        "groups": f"{prefix}.*",
        "sync.topic.acls.enabled": "false",
        "lockstep.sync.group.offsets.enabled": "true",
        "lockstep.failover.fence.proof": "1 second",
        "lockstep.failover.ends.interval": "1 second",
        "lockstep.checkpoint.dir": str(tmp_path / "checkpoints"),
        "lockstep.http.port": "0",
    }
    pair = {source: clusters.a.bootstrap, target: clusters.b.bootstrap}
    lines = mirror_properties(pair, [f"{source}->{target}"], **keys)
    with (
        closing(open_cluster(source, {"bootstrap.servers": clusters.a.bootstrap})) as a,
        closing(open_cluster(target, {"bootstrap.servers": clusters.b.bootstrap})) as b,
    ):
        topic = f"{prefix}-x"
        assert a.create_topics({topic: TopicSpec(2, 1)}) == {topic: None}
        wait_for(lambda: topic in a.list_topics(), SOON, f"{topic} to be listed")
        produce(clusters.a, topic, 2, 10)
        with preserving_copier(clusters.a, clusters.b, prefix) as copier:
            made = Preserved(clusters, copier, a, b, tmp_path, lines, topic)
            made.wait_until_copied()
            yield made


def test_commands_plan_compare_drill_and_cut_over(preserved: Preserved) -> None:
    group, prefix = f"{preserved.topic}-group", preserved.topic.removesuffix("-x")
    preserved.a.groups.commit({group: {preserved.partition(0): 4, preserved.partition(1): 10}})
    assert preserved.asked("validate")["internal_topics"] == {}
    assert preserved.asked("plan", code=3)["summary"]["group-offset"]["create"] == 2
    preserved.asked("apply", "--yes")
    assert preserved.b.groups.committed([group]).items[group] == {
        preserved.partition(0): 4,
        preserved.partition(1): 10,
    }
    rows = preserved.asked("offsets")["offsets"]
    assert {(row["method"], row["error_bound"], row["verdict"]) for row in rows} == {("same", 0, "SYNCED")}
    preserved.asked("verify")
    checks = {check["name"]: check["result"] for check in preserved.asked("preflight")["checks"]}
    assert checks["heartbeat"] == "OK"
    found = preserved.asked("drill", "--topic", f"{prefix}-drill", "--records", "200", "--within", "60")
    assert found["agrees"], found
    produce(preserved.clusters.a, preserved.topic, 2, 5)
    preserved.a.groups.commit({group: {preserved.partition(0): 15}})
    assert preserved.asked("cutover", "--yes")["state"] == "PROMOTED"
    assert preserved.b.groups.committed([group]).items[group][preserved.partition(0)] == 15
    assert values(preserved.clusters.b, preserved.partition(0)) == values(preserved.clusters.a, preserved.partition(0))
    assert preserved.run("failback", "--dry-run").returncode == 2


def test_job_is_live_by_the_copies_and_a_failover_without_the_source_predicts_what_they_lack(
    preserved: Preserved,
) -> None:
    port = free_ports(1)[0]
    config = preserved.config("job.properties", **{"lockstep.http.port": str(port)})
    with LocalJob(config, port, preserved.folder / "job.log") as job:
        job.wait_until_compared()
        wait_for(lambda: job.status()["flows"][0]["state"] == "LIVE", SOON, "the copies to count as a heartbeat")
        preserved.copier.pause()
        produce(preserved.clusters.a, preserved.topic, 1, 3)

        def kept() -> bool:
            ledger = Ledger(f"lockstep-ledger.{preserved.source}.internal", preserved.b, None, 1)
            known = kept_end_offsets(ledger).get(preserved.topic)
            return known is not None and list(known.ends) == [13, 10]

        wait_for(kept, SOON, "the job to keep the source's ends")
    assert preserved.ends(preserved.b) == [10, 10]
    gone = preserved.config("gone.properties", **{f"{preserved.source}.bootstrap.servers": "127.0.0.1:1"})
    done = preserved.asked("failover", "--yes", "3", config=gone)
    assert done["prediction"]["records"] == 3
    assert done["state"] == "FAILED_OVER"
