"""The job as users run it, through `./spark-submit.sh`, between two clusters that no other test has."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.local.jars import PROJECT
from app.local.local_cluster import LocalCluster, started
from app.local.local_job import LocalJob
from app.local.ports import free_ports
from sinks.kafka.kafka_cluster import KafkaCluster
from tests.kafka.staging import client_of, flow_of, write_properties
from tests.quick_java import QUICK_KAFKA

SMALL = "256m"
LOGGED_WITHIN = 300.0
"""Seconds until the job's log, or its status, says what happened to it."""


@dataclass(frozen=True)
class Stage:
    """Two clusters that no other test has, and the job between them."""

    a: LocalCluster
    b: LocalCluster
    source: KafkaCluster
    target: KafkaCluster
    config: Path
    log: Path
    job: LocalJob

    def said(self, pattern: str) -> int:
        """How many lines of the job's log match."""
        return len(re.findall(pattern, self.log.read_text(errors="replace"), re.MULTILINE))

    def batches(self) -> float:
        """Those that the job has done so far."""
        found = re.search(r"^lockstep_batch_seconds_count (\S+)", self.metrics(), re.MULTILINE)
        return float(found.group(1)) if found else 0.0

    def metrics(self) -> str:
        """What Prometheus gets."""
        return httpx.get(f"{self.job.address}/metrics", timeout=900).raise_for_status().text

    def configs(self, *flags: str) -> str:
        """What `lockstep configs` says of Lockstep's own."""
        command = [sys.executable, "-m", "app.main", "configs", "--entity-type", "lockstep", *flags]
        run = subprocess.run(
            [*command, "--config", str(self.config)],
            cwd=PROJECT,
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )
        assert run.returncode == 0, run.stderr
        return run.stdout

    def flow(self) -> dict[str, Any]:
        """The flow in the job's own status, once the job answers."""
        return flow_of(self.job)


@pytest.fixture(scope="package")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder, port = tmp_path_factory.mktemp("job"), free_ports(1)[0]
    a, b = (LocalCluster(alias, folder / alias, heap=SMALL, java_options=QUICK_KAFKA) for alias in "ab")
    with started(a, b), client_of(a) as source, client_of(b) as target:
        config = write_properties(
            folder, a, b, "orders.*", **{"lockstep.http.port": str(port), "lockstep.overrides.allowed": "kinds"}
        )
        log = folder / "job.log"
        job = LocalJob(config, port, log)
        yield Stage(a, b, source, target, config, log, job)
        job.stop()


@pytest.fixture
def stage(staged: Stage) -> Stage:
    """With the job running, whichever test ended it."""
    if not staged.job.pids:
        staged.job.start()
        staged.job.wait_until_compared()
    return staged
