"""What is left of a batch that breaks between its writes and Spark's commit: foreachBatch is at-least-once."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from app.job.flow_passes import FlowPasses
from app.job.flow_wiring import flow_in_job
from app.job.query_supervisor import QuerySupervisor
from app.job.running_job import Batch
from app.settings import Settings, load
from sinks.engine.flow_task import FlowTask
from sinks.engine.metrics import Metrics
from sinks.kafka.kafka_cluster import KafkaCluster
from streaming.query import start_query
from tests.conftest import Clusters
from tests.kafka.staging import alter, client_of, create, shown, wait_until_shown, write_properties, writes

CONFIGS = {"retention.ms": "3600000"}


@dataclass
class Attempts:
    """A job that is started again and again with the same properties, each time with an empty memory."""

    settings: Settings
    spark: SparkSession
    batches: list[int] = field(default_factory=list)

    def run(self, *, broken: bool = False) -> dict[tuple[str, str], float]:
        """Reads what there is; `broken`: the sink raises when everything is written. Returns the requests that wrote.

        `batches` gets the number of every batch that reached the sink.
        """
        metrics, flow = Metrics("test"), self.settings.flows[0]
        task = FlowTask(flow_in_job(self.settings, flow, metrics), metrics)
        passes = FlowPasses(metrics, shortest=0.0)
        passes.take_on(task)
        batch = Batch(passes, metrics, 0.0, serves=False)

        def sink(frame: DataFrame, number: int) -> None:
            batch(frame, number)
            passes.compare_everything()
            self.batches.append(number)
            if broken:
                raise RuntimeError("the process dies here")

        keeper = QuerySupervisor(
            self.settings,
            partial(start_query, self.spark),
            flow.flow.target,
            sink,
            True,
            lambda seconds: None,
            hold=lambda holds: None,
            observe=lambda target, status: None,
        )
        try:
            keeper.drain(threading.Event())
        finally:
            keeper.end()
            passes.close()
            task.close()
        return writes(metrics.registry)

    @property
    def committed(self) -> list[str]:
        """The batches that Spark holds for done."""
        commits = self.settings.job.checkpoint_dir.glob("*/*/commits/*")
        return sorted(path.name for path in commits if path.name.isdigit())


@dataclass(frozen=True)
class Crashed:
    """A flow whose first batch wrote a topic and was not committed."""

    attempts: Attempts
    source: KafkaCluster
    target: KafkaCluster
    topic: str


@pytest.fixture
def crashed(clusters: Clusters, spark: SparkSession, tmp_path: Path, unique: str) -> Iterator[Crashed]:
    topic = f"{unique}-crash"
    settings = load(write_properties(tmp_path, clusters.a, clusters.b, f"{unique}-crash"))
    with client_of(clusters.a) as source, client_of(clusters.b) as target:
        create(source, topic, 2, CONFIGS)
        attempts = Attempts(settings, spark)
        assert attempts.run(broken=True)[("b", "CreateTopics")] >= 1
        assert (attempts.batches, attempts.committed) == ([0], [])
        wait_until_shown(target, f"a.{topic}", 2, CONFIGS)
        yield Crashed(attempts, source, target, topic)


def test_a_batch_that_runs_twice_writes_once(crashed: Crashed) -> None:
    """The same batch is run again with the same checkpoint, finds the target as it should be, and is committed."""
    assert crashed.attempts.run() == {}
    assert crashed.attempts.batches[:2] == [0, 0]
    assert "0" in crashed.attempts.committed
    assert shown(crashed.target, f"a.{crashed.topic}") == (2, CONFIGS)


def test_a_change_made_while_the_job_was_down_arrives(crashed: Crashed) -> None:
    """Nothing is lost between the crash and the restart, and only the change is written."""
    alter(crashed.source, crashed.topic, {"retention.ms": "7200000"})
    assert crashed.attempts.run() == {("b", "IncrementalAlterConfigs"): 1.0}
    wait_until_shown(crashed.target, f"a.{crashed.topic}", 2, {"retention.ms": "7200000"})


def test_losing_the_checkpoint_loses_nothing(crashed: Crashed) -> None:
    """Spark starts from the first batch; what is in step stays untouched, what changed meanwhile arrives."""
    shutil.rmtree(crashed.attempts.settings.job.checkpoint_dir)
    alter(crashed.source, crashed.topic, {"retention.ms": "7200000"})
    assert crashed.attempts.run() == {("b", "IncrementalAlterConfigs"): 1.0}
    wait_until_shown(crashed.target, f"a.{crashed.topic}", 2, {"retention.ms": "7200000"})
