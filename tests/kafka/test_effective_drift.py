"""A topic at its default on both sides that differs in effect because the brokers do: told, and mended."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from app.cli.lazy_commands import app
from app.cli.output import DONE, PENDING, STALE
from app.job.running_job import Job
from app.local.waiting import wait_for
from app.settings import load
from sinks.engine.metrics import EFFECTIVE
from sinks.kafka.ports.config_levels import DEFAULT_OF_ALL
from tests.conftest import Clusters
from tests.contract.level_looks import ONE, clear, levels_of, shows
from tests.kafka.staging import SOON, client_of, create, wait_until_shown, write_properties

pytestmark = pytest.mark.spark

RETENTION, WEEK, DAY = "log.retention.ms", "604800000", "86400000"
OF_TOPIC = {"kind": "topic-config", "name": "retention.ms", "topics": 1, "source": WEEK, "target": DAY}
OF_BROKERS = {"kind": "broker-config", "name": RETENTION, "topics": 0, "source": WEEK, "target": DAY}


@pytest.fixture
def topic(clusters: Clusters, unique: str) -> Iterator[str]:
    """On the source alone, without configs; the target's brokers keep records for a day, the source's for a week."""
    levels = levels_of(clusters.b)
    levels.alter({DEFAULT_OF_ALL: {RETENTION: DAY}})
    shows(levels, ONE, RETENTION, DAY)
    with client_of(clusters.a) as source:
        create(source, f"{unique}-effective", 1, {})
    yield f"{unique}-effective"
    clear(levels, [RETENTION])
    shows(levels, DEFAULT_OF_ALL, RETENTION, None)


def metric_once_in_step(topic: str, clusters: Clusters, path: Path, spark: SparkSession) -> float | None:
    """`lockstep_drift` of a `run --once` after all is written, the topic too."""
    said(path, "apply", "--yes")
    with client_of(clusters.b) as target:
        wait_for(lambda: f"a.{topic}" in target.list_topics(), SOON, "the target to list the topic")
    job = Job(load(path), spark, True, (path, lambda before: before))
    assert job.run()
    labels = {"source": "a", "target": "b", "kind": EFFECTIVE}
    return job.metrics.registry.get_sample_value("lockstep_drift", labels)


def said(path: Path, command: str, *flags: str, code: int = DONE) -> str:
    result = CliRunner().invoke(app, [command, "--config", str(path), *flags])
    assert result.exit_code == code, result.output
    return result.stdout


def flow_of(text: str) -> dict[str, Any]:
    (flow,) = json.loads(text)["flows"]
    return dict(flow)


def test_brokers_with_two_defaults_make_a_drift_that_defaults_from_the_source_mend(
    topic: str, clusters: Clusters, spark: SparkSession, tmp_path: Path
) -> None:
    path = write_properties(tmp_path, clusters.a, clusters.b, topic)
    assert metric_once_in_step(topic, clusters, path, spark) == 1
    assert flow_of(said(path, "status", "-o", "json", code=STALE))["effective"] == {"drift": 1, "configs": [OF_TOPIC]}
    assert f"differs in effect: retention.ms of 1 topic: {WEEK} on a, {DAY} on b; set use.defaults.from=source" in said(
        path, "status", code=STALE
    )
    brokers_too = {"lockstep.sync.broker.configs.enabled": "true"}
    path = write_properties(tmp_path, clusters.a, clusters.b, topic, **brokers_too)
    plan = flow_of(said(path, "plan", "-o", "json"))
    assert (plan["changes"], plan["effective"]) == ([], [OF_TOPIC, OF_BROKERS])
    assert f"{RETENTION} of the brokers: {WEEK} on a, {DAY} on b" in said(path, "status", code=STALE)

    path = write_properties(tmp_path, clusters.a, clusters.b, topic, **{"use.defaults.from": "source"})
    plan = flow_of(said(path, "plan", "-o", "json", code=PENDING))
    assert plan["effective"] == []
    written = {change["key"]["name"]: change["after"] for change in plan["changes"]}
    assert written["retention.ms"] == WEEK
    assert metric_once_in_step(topic, clusters, path, spark) == 0
    assert flow_of(said(path, "status", "-o", "json", code=STALE))["effective"] == {"drift": 0, "configs": []}
    with client_of(clusters.b) as target:
        wait_until_shown(target, f"a.{topic}", 1, written)
