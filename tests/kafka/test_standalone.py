"""The same job on a Spark standalone cluster: the master is Spark's business, the code is the same."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import pyspark
import pytest

from app.local.java import JavaProcess
from app.local.local_job import LocalJob
from app.local.ports import free_ports
from app.local.waiting import wait_for
from tests.conftest import Clusters
from tests.kafka.staging import (
    alter,
    client_of,
    command_line,
    create,
    family_of,
    wait_until_gone,
    wait_until_shown,
    write_properties,
)

SPARK = Path(pyspark.__file__).parent
HOST = "127.0.0.1"
UP_WITHIN = 300.0
"""Seconds; each of the two is a JVM that loads Spark."""


@dataclass(frozen=True)
class Standalone:
    """A Spark master with one worker of one core."""

    master: str
    page: str
    worker: JavaProcess

    def state(self) -> dict[str, Any]:
        """What the master says of its workers and applications; empty while it does not answer."""
        try:
            return dict(httpx.get(f"{self.page}/json/", timeout=900).json())
        except (httpx.HTTPError, ValueError):
            return {}

    def executors(self) -> list[psutil.Process]:
        """The worker's executors."""
        children = psutil.Process(self.worker.pid).children(recursive=True)
        return [child for child in children if "CoarseGrainedExecutorBackend" in " ".join(command_line(child))]


@pytest.fixture
def standalone(tmp_path: Path) -> Iterator[Standalone]:
    port, master_page, worker_page = free_ports(3)
    # The last one is what Spark's own start scripts set.
    environment = {"SPARK_HOME": str(SPARK), "SPARK_LOCAL_IP": HOST, "SPARK_SCALA_VERSION": "2.13"}
    url = f"spark://{HOST}:{port}"
    ends = ["--host", HOST, "--port", str(port), "--webui-port", str(master_page)]
    own = ["--host", HOST, "--webui-port", str(worker_page), "--cores", "1", "--memory", "1g"]

    def start(name: str, arguments: list[str]) -> JavaProcess:
        main = f"org.apache.spark.deploy.{name.lower()}.{name}"
        return JavaProcess(main, arguments, [SPARK / "jars" / "*"], tmp_path / f"{name}.log", ["-Xmx256m"], environment)

    with ExitStack() as stack:
        stack.enter_context(start("Master", ends))
        worker = stack.enter_context(start("Worker", [*own, "--work-dir", str(tmp_path / "work"), url]))
        standalone = Standalone(url, f"http://{HOST}:{master_page}", worker)
        wait_for(lambda: standalone.state().get("aliveworkers"), UP_WITHIN, f"a worker (see {tmp_path}/*.log)")
        yield standalone


def test_the_job_runs_on_executors_of_its_own(
    standalone: Standalone, clusters: Clusters, tmp_path: Path, unique: str
) -> None:
    """`--master spark://…` is all that differs: executors read MM2's topics, the change arrives, SIGTERM ends all.

    Workers lack whatever Lockstep depends on: executors run no Python, and get the connector's jars from the driver.
    """
    topic, port = f"{unique}-orders", free_ports(1)[0]
    config = write_properties(tmp_path, clusters.a, clusters.b, f"{unique}-orders", **{"lockstep.http.port": str(port)})
    options = ["--master", standalone.master, "--conf", "spark.executor.memory=512m", "--conf"]
    options += [f"spark.driver.host={HOST}", "--conf", f"spark.driver.bindAddress={HOST}"]
    options += [
        "--conf",
        "spark.pyspark.python=/no/such/python",
        "--conf",
        f"spark.pyspark.driver.python={sys.executable}",
    ]
    with client_of(clusters.a) as source, client_of(clusters.b) as target:
        create(source, topic, 2, {"retention.ms": "3600000"})
        job = LocalJob(config, port, tmp_path / "job.log", options)
        with job:
            job.wait_until_compared()
            wait_until_shown(target, f"a.{topic}", 2, {"retention.ms": "3600000"})
            alter(source, topic, {"retention.ms": "7200000"})
            wait_until_shown(target, f"a.{topic}", 2, {"retention.ms": "7200000"})
            # The master may be slow to answer, and says nothing then.
            apps = wait_for(lambda: standalone.state().get("activeapps"), UP_WITHIN, "the master to name the job")
            assert [app["name"] for app in apps] == ["lockstep"]
            executors, driver = standalone.executors(), family_of(job.pids[0])
            assert executors
            assert not {one.pid for one in executors} & {one.pid for one in driver}
            assert job.stop() == 0
        wait_until_gone([*executors, *driver])
