"""The job as users run it, through `./spark-submit.sh`: what it serves, how it ends, what it does without a broker."""

from __future__ import annotations

import json
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
from app.local.java import QUICK_START
from app.local.local_cluster import LocalCluster
from app.local.local_job import LocalJob
from app.local.ports import free_ports
from app.local.waiting import wait_for
from sinks.engine.ledger import Entry, Ledger
from sinks.kafka.librdkafka.kafka_cluster import KafkaCluster
from tests.kafka.staging import (
    alter,
    client_of,
    create,
    family_of,
    running,
    wait_until_gone,
    wait_until_shown,
    write_properties,
)
from tests.sinks.notify.gateways import gateway_on_a_free_port

SMALL = "256m"
ERROR_WITHIN = 120.0
DEAD_WITHIN = 10.0
"""Seconds until the status says that a cluster is down which refuses connections."""

"""Seconds; a request to a broker that is gone is given up after 15, and so is Spark's read of it."""

BACK_WITHIN = 120.0
"""Seconds; tries are up to 30 s apart, and the first ones still meet a broker that starts."""

ENDS_WITHIN = 90.0
"""Seconds from SIGTERM: one batch of a trigger, and Spark's own end on a machine that is busy."""


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
        return httpx.get(f"{self.job.address}/metrics", timeout=10).raise_for_status().text

    def configs(self, *flags: str) -> str:
        """What `lockstep configs` says of Lockstep's own."""
        command = [sys.executable, "-m", "app.main", "configs", "--entity-type", "lockstep", *flags]
        run = subprocess.run(
            [*command, "--config", str(self.config)],
            cwd=PROJECT,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert run.returncode == 0, run.stderr
        return run.stdout

    def flow(self) -> dict[str, Any]:
        """The flow in the job's own status."""
        return dict(self.job.status()["flows"][0])


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder, port = tmp_path_factory.mktemp("job"), free_ports(1)[0]
    with (
        LocalCluster("a", folder / "a", heap=SMALL, java_options=QUICK_START) as a,
        LocalCluster("b", folder / "b", heap=SMALL, java_options=QUICK_START) as b,
        client_of(a) as source,
        client_of(b) as target,
    ):
        config = write_properties(folder, a, b, "orders.*", **{"lockstep.http.port": str(port)})
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


def test_a_new_topic_and_a_later_change_arrive(stage: Stage) -> None:
    create(stage.source, "orders-new", 2, {"retention.ms": "3600000"})
    wait_until_shown(stage.target, "a.orders-new", 2, {"retention.ms": "3600000"})
    alter(stage.source, "orders-new", {"retention.ms": "7200000"})
    wait_until_shown(stage.target, "a.orders-new", 2, {"retention.ms": "7200000"})


def test_the_job_serves_its_status_and_its_metrics(stage: Stage) -> None:
    """Without MM2 there is no heartbeat, which is told with the topics that are missing; the kinds are in step."""
    flow = stage.flow()
    assert (flow["source"], flow["target"], flow["state"]) == ("a", "b", "NO_HEARTBEAT")
    assert "a.heartbeats on b" in str(flow["reason"])
    metrics = stage.metrics()
    assert 'lockstep_task_state{kind="topic-config",source="a",state="ACTIVE",target="b"} 1.0' in metrics
    assert 'lockstep_drift{kind="topic",source="a",target="b"} 0.0' in metrics
    assert re.search(r'^lockstep_admin_requests_total\{api="Metadata",cluster="a",result="ok"\} [1-9]', metrics, re.M)


def test_the_job_serves_a_page_for_people_and_what_it_shows(stage: Stage) -> None:
    """MM2 does not run here, so the target could not take over; what the job changed is there with both sides."""
    answer = httpx.get(stage.job.address, timeout=10).raise_for_status()
    assert answer.headers["content-type"].startswith("text/html")
    api = f"{stage.job.address}/api/v1/flows"
    document = httpx.get(api, timeout=10).raise_for_status().json()
    assert document["spark_ui"].startswith("http://")
    readiness = document["flows"][0]["readiness"]
    assert (readiness["answer"], readiness["headline"][:28]) == ("no", "MirrorMaker 2 was never hear")
    assert "MM2 has not made these topics yet" in str(readiness["findings"])
    created = httpx.get(f"{api}/a->b/changes", params={"search": "a.orders-new"}, timeout=10).json()["rows"]
    assert ("topic", "create", None, "applied") in {
        (row["kind"], row["op"], row["before"], row["result"]) for row in created
    }
    assert httpx.get(f"{stage.job.address}/ready", timeout=10).status_code == 200


def test_spark_tells_of_its_batches(stage: Stage) -> None:
    wait_for(lambda: 'lockstep_query_active{target="b"} 1.0' in stage.metrics(), 60, "a query that Spark runs")
    wait_for(lambda: re.search(r'^lockstep_query_batch\{target="b"\} [1-9]', stage.metrics(), re.M), 60, "a batch")


def test_a_look_that_was_waited_for_has_brought_the_change(stage: Stage) -> None:
    create(stage.source, "orders-looked-at", 1, {})
    wait_until_shown(stage.target, "a.orders-looked-at", 1, {})
    alter(stage.source, "orders-looked-at", {"retention.ms": "7200000"})
    body = {"topics": ["orders-looked-at"], "flows": ["a->b"], "wait_seconds": 30}
    answer = httpx.post(f"{stage.job.address}/look", json=body, timeout=40)
    assert (answer.status_code, answer.json()["looked"]) == (200, {"a->b": True})
    wait_until_shown(stage.target, "a.orders-looked-at", 1, {"retention.ms": "7200000"})


def test_a_look_that_is_not_understood_says_what_is_wrong(stage: Stage) -> None:
    wrong = httpx.post(
        f"{stage.job.address}/look", content=b"[]", headers={"Content-Type": "application/json"}, timeout=10
    )
    unknown = httpx.post(f"{stage.job.address}/look", json={"flows": ["x->y"]}, timeout=10)
    assert (wrong.status_code, unknown.status_code) == (400, 404)
    assert "x->y" in unknown.json()["error"]


def test_lockstep_status_shows_what_the_job_says(stage: Stage) -> None:
    """The command asks the running job; only the job knows when it last succeeded."""
    command = [sys.executable, "-m", "app.main", "status", "-o", "json", "--config", str(stage.config)]
    run = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False, timeout=120)
    assert run.returncode == 0, run.stderr
    shown, told = json.loads(run.stdout)["flows"][0], stage.flow()
    assert {name: kind["task"] for name, kind in shown["kinds"].items()} == {
        name: kind["task"] for name, kind in told["kinds"].items()
    }
    assert (shown["state"], shown["reason"]) == (told["state"], told["reason"])
    assert shown["kinds"]["topic-config"]["last_success"]


def test_filter_that_is_changed_in_the_file_holds_without_a_restart(stage: Stage) -> None:
    """A file with a mistake changes nothing; `lockstep reload` says the mistake, and the audit topic what changed."""
    create(stage.source, "bills-reloaded", 1, {})
    before, sound = stage.job.pids, stage.config.read_text()
    stage.config.write_text(sound + "topics.exclude = orders.*\nlockstep.shard.topics = many\n")
    wait_for(lambda: stage.said("is left aside, nothing changed") >= 1, ERROR_WITHIN, "the mistake to be logged")
    create(stage.source, "orders-under-the-old-filter", 1, {})
    wait_until_shown(stage.target, "a.orders-under-the-old-filter", 1, {})
    stage.config.write_text(sound.replace("orders.*", "orders.*, bills.*"))
    wait_until_shown(stage.target, "a.bills-reloaded", 1, {})
    assert stage.job.pids == before
    answer = httpx.post(f"{stage.job.address}/reload", timeout=100)
    assert (answer.status_code, answer.json()) == (200, {"changed": [], "error": None})
    command = [sys.executable, "-m", "app.main", "audit", "-o", "json", "--config", str(stage.config)]
    run = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False, timeout=120)
    settings = [event for event in json.loads(run.stdout)["events"] if event["kind"] == "setting"]
    assert [(event["key"], event["after"]) for event in settings] == [({"name": "topics"}, "orders.*, bills.*")]


def test_override_wins_over_the_file_at_once_and_the_file_holds_again_without_it(stage: Stage) -> None:
    """Kept in the flow's ledger, and audited; the file and the processes stay as they are."""
    before, file = stage.job.pids, stage.config.read_text()
    create(stage.source, "shop-overridden", 1, {})
    said = stage.configs("--alter", "--entity-name", "a->b", "--add-config", "topics=[orders.*,shop.*]")
    assert "topics: not set -> orders.*,shop.*" in said
    wait_until_shown(stage.target, "a.shop-overridden", 1, {})
    shown = stage.configs("--describe", "--entity-name", "a->b")
    assert "* override of the flow: orders.*,shop.*" in shown
    assert f"deleted here, it falls back to orders.*, bills.* ({stage.config}:" in shown
    stage.configs("--alter", "--entity-name", "a->b", "--delete-config", "topics")
    for name in ("shop-left-alone", "orders-told-last"):
        create(stage.source, name, 1, {})
    wait_until_shown(stage.target, "a.orders-told-last", 1, {})
    assert "a.shop-left-alone" not in stage.target.list_topics()
    assert (stage.job.pids, stage.config.read_text()) == (before, file)


def test_default_of_all_flows_that_somebody_else_wrote_is_taken_over_at_the_next_comparison(stage: Stage) -> None:
    """As another machine would: straight into the ledger, without a word to the job."""
    writes = Ledger("lockstep-ledger.a.internal", stage.target, stage.target, 1)
    writes.put({(Entry.OVERRIDE, ("", "config.properties.exclude")): '{"value": "retention.ms"}'})
    assert httpx.post(f"{stage.job.address}/look", json={"wait_seconds": 60}, timeout=70).is_success
    wait_for(lambda: stage.said("changed: a->b.lockstep.config.properties.exclude") == 1, ERROR_WITHIN, "the change")
    create(stage.source, "orders-overridden", 1, {"retention.ms": "1000", "segment.ms": "60000"})
    wait_until_shown(stage.target, "a.orders-overridden", 1, {"segment.ms": "60000"})
    stage.configs("--alter", "--entity-default", "--delete-config", "config.properties.exclude")
    wait_until_shown(stage.target, "a.orders-overridden", 1, {"retention.ms": "1000", "segment.ms": "60000"})


def test_reporter_begins_and_ends_with_the_line_that_names_it(stage: Stage) -> None:
    """It gets the job's metrics, once more when it ends, and then no more."""
    sound = stage.config.read_text()
    with gateway_on_a_free_port() as gateway:
        lines = (
            "lockstep.metric.reporters = lockstep.reporters:PushGatewayReporter",
            f"lockstep.metric.push.url = {gateway.address}",
            "lockstep.metric.push.interval = 1 second",
        )
        stage.config.write_text("\n".join((sound, *lines, "")))
        wait_for(lambda: len(gateway.requests) >= 2, ERROR_WITHIN, "two pushes")
        assert "lockstep_batch_rows" in gateway.requests[0][3]
        stage.config.write_text(sound)
        answer = httpx.post(f"{stage.job.address}/reload", timeout=100)
        assert (answer.status_code, answer.json()["error"]) == (200, None)
        pushes, batches = len(gateway.requests), stage.batches()
        wait_for(lambda: stage.batches() >= batches + 3, ERROR_WITHIN, "three more batches")
        assert len(gateway.requests) == pushes


def test_flow_whose_target_was_away_at_the_start_works_with_its_overrides_only(stage: Stage) -> None:
    """What the ledger says cannot be known then, and the file alone would say something else."""
    create(stage.source, "late-overridden", 1, {})
    stage.configs("--alter", "--entity-name", "a->b", "--add-config", "topics=[late.*]")
    wait_until_shown(stage.target, "a.late-overridden", 1, {})
    stage.job.stop()
    stage.b.stop()
    for name in ("late-waited-for", "orders-not-now"):
        create(stage.source, name, 1, {})
    waits = stage.said("waits until the 1 overrides in its ledger are in force")
    stage.job.start()
    wait_for(lambda: bool(stage.job.status()), ERROR_WITHIN, "the job to start")
    wait_for(lambda: stage.flow()["state"] == "ERROR", ERROR_WITHIN, "the status to say ERROR")
    stage.b.start()
    wait_for(lambda: "a.late-waited-for" in stage.target.list_topics(), BACK_WITHIN, "the flow to work")
    assert "a.orders-not-now" not in stage.target.list_topics()
    assert stage.said("waits until the 1 overrides in its ledger are in force") > waits
    stage.configs("--alter", "--entity-name", "a->b", "--delete-config", "topics")
    wait_until_shown(stage.target, "a.orders-not-now", 1, {})


def test_without_its_source_the_job_waits_and_goes_on_when_it_is_back(stage: Stage) -> None:
    """The status says ERROR and why; the job neither dies nor spins; what changed after the outage arrives."""
    lines = stage.said("^")
    stage.a.kill()
    wait_for(lambda: stage.flow()["state"] == "ERROR", DEAD_WITHIN, "the status to say ERROR")
    assert "cluster a" in str(stage.flow()["reason"])
    batches = stage.batches()
    wait_for(lambda: stage.batches() >= batches + 3, ERROR_WITHIN, "batches to go on without the source")
    stage.job.check()
    assert stage.said("the query broke off") <= 2
    assert stage.said("^") - lines < 40, stage.log.read_text()[-5000:]
    stage.a.start()
    wait_for(lambda: stage.flow()["state"] != "ERROR", BACK_WITHIN, "the flow to go on")
    create(stage.source, "orders-after-the-outage", 1, {"retention.ms": "1000"})
    wait_until_shown(stage.target, "a.orders-after-the-outage", 1, {"retention.ms": "1000"})


def test_sigterm_ends_the_job_after_its_batch_and_leaves_no_process(stage: Stage) -> None:
    """Exit code 0; spark-submit, the JVM and the driver are gone with it."""
    processes, ended = family_of(stage.job.pids[0]), stage.said("SIGTERM: ending after the running batch")
    assert len(running(processes)) >= 3
    processes[0].terminate()
    wait_for(lambda: not running(processes[:1]), ENDS_WITHIN, "spark-submit.sh to end")
    assert stage.job.stop() == 0
    wait_until_gone(processes)
    assert stage.said("Traceback") == 0
    assert stage.said("SIGTERM: ending after the running batch") == ended + 1
