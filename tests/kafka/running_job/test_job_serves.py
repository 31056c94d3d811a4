"""What the running job serves: status, metrics, a page, looks that are asked for."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import httpx

from app.local.jars import PROJECT
from app.local.waiting import wait_for
from tests.kafka.running_job.conftest import LOGGED_WITHIN, Stage
from tests.kafka.staging import alter, create, wait_until_shown


def test_a_new_topic_and_a_later_change_arrive(stage: Stage) -> None:
    create(stage.source, "orders-new", 2, {"retention.ms": "3600000"})
    wait_until_shown(stage.target, "a.orders-new", 2, {"retention.ms": "3600000"})
    alter(stage.source, "orders-new", {"retention.ms": "7200000"})
    wait_until_shown(stage.target, "a.orders-new", 2, {"retention.ms": "7200000"})


def test_the_job_serves_its_status_and_its_metrics(stage: Stage) -> None:
    """Without MM2 there is no heartbeat, which is told with the topics that are missing; the kinds are in step."""

    def says_so() -> bool:
        flow = stage.flow()
        assert (flow["source"], flow["target"]) == ("a", "b")
        return flow["state"] == "NO_HEARTBEAT" and "a.heartbeats on b" in str(flow["reason"])

    # On a busy machine a pass may fail for once, and that is the reason until the next one.
    wait_for(says_so, LOGGED_WITHIN, "the status to name the topics that are missing")
    for line in (
        'lockstep_task_state{kind="topic-config",source="a",state="ACTIVE",target="b"} 1.0',
        'lockstep_drift{kind="topic",source="a",target="b"} 0.0',
    ):
        wait_for(lambda line=line: line in stage.metrics(), LOGGED_WITHIN, line)
    metrics = stage.metrics()
    assert re.search(r'^lockstep_admin_requests_total\{api="Metadata",cluster="a",result="ok"\} [1-9]', metrics, re.M)


def test_the_job_serves_a_page_for_people_and_what_it_shows(stage: Stage) -> None:
    """MM2 does not run here, so the target could not take over; what the job changed is there with both sides."""
    answer = httpx.get(stage.job.address, timeout=900).raise_for_status()
    assert answer.headers["content-type"].startswith("text/html")
    api = f"{stage.job.address}/api/v1/flows"
    assert httpx.get(api, timeout=900).raise_for_status().json()["spark_ui"].startswith("http://")

    def lacks_heartbeat() -> bool:
        readiness = httpx.get(api, timeout=900).raise_for_status().json()["flows"][0]["readiness"]
        assert readiness["answer"] == "no"
        # The job says it in other words once it has made a preflight.
        return "heartbeat" in readiness["headline"] and "heartbeat" in str(readiness["findings"])

    wait_for(lacks_heartbeat, LOGGED_WITHIN, "the page to say what is missing")
    created = httpx.get(f"{api}/a->b/changes", params={"search": "a.orders-new"}, timeout=900).json()["rows"]
    assert ("topic", "create", None, "applied") in {
        (row["kind"], row["op"], row["before"], row["result"]) for row in created
    }
    ready = f"{stage.job.address}/ready"
    wait_for(lambda: httpx.get(ready, timeout=900).status_code == 200, LOGGED_WITHIN, "the job to be ready")


def test_the_job_makes_a_preflight_of_its_own_accord(stage: Stage) -> None:
    """MM2 does not run, so that the flow is not ready; but its clusters could be looked at."""

    def made() -> bool:
        found = stage.flow()["failover"]["preflight"]
        return bool(found) and (found["ready"], found["trouble"]) == (False, None)

    wait_for(made, LOGGED_WITHIN, "a preflight")
    line = 'lockstep_failover_ready{source="a",target="b"} 0.0'
    wait_for(lambda: line in stage.metrics(), LOGGED_WITHIN, line)


def test_spark_tells_of_its_batches(stage: Stage) -> None:
    wait_for(
        lambda: 'lockstep_query_active{target="b"} 1.0' in stage.metrics(), LOGGED_WITHIN, "a query that Spark runs"
    )
    wait_for(
        lambda: re.search(r'^lockstep_query_batch\{target="b"\} [1-9]', stage.metrics(), re.M), LOGGED_WITHIN, "a batch"
    )


def test_a_look_that_was_waited_for_has_brought_the_change(stage: Stage) -> None:
    create(stage.source, "orders-looked-at", 1, {})
    wait_until_shown(stage.target, "a.orders-looked-at", 1, {})
    alter(stage.source, "orders-looked-at", {"retention.ms": "7200000"})
    body = {"topics": ["orders-looked-at"], "flows": ["a->b"], "wait_seconds": 120}

    def looked() -> bool:
        answer = httpx.post(f"{stage.job.address}/look", json=body, timeout=900)
        assert answer.status_code == 200
        return bool(answer.json()["looked"] == {"a->b": True})

    # False: the pass failed, as it may on a busy machine.
    wait_for(looked, LOGGED_WITHIN, "a look")
    wait_until_shown(stage.target, "a.orders-looked-at", 1, {"retention.ms": "7200000"})


def test_a_look_that_is_not_understood_says_what_is_wrong(stage: Stage) -> None:
    wrong = httpx.post(
        f"{stage.job.address}/look", content=b"[]", headers={"Content-Type": "application/json"}, timeout=900
    )
    unknown = httpx.post(f"{stage.job.address}/look", json={"flows": ["x->y"]}, timeout=900)
    assert (wrong.status_code, unknown.status_code) == (400, 404)
    assert "x->y" in unknown.json()["error"]


def test_lockstep_status_shows_what_the_job_says(stage: Stage) -> None:
    """The command asks the running job; only the job knows when it last succeeded."""
    command = [sys.executable, "-m", "app.main", "status", "-o", "json", "--config", str(stage.config)]

    def agrees() -> bool:
        run = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False, timeout=900)
        shown, told = json.loads(run.stdout)["flows"][0], stage.flow()
        assert shown["kinds"]["topic-config"]["last_success"]
        if run.returncode:
            return False
        tasks, states = (
            [{name: kind["task"] for name, kind in one["kinds"].items()} for one in (shown, told)],
            [(one["state"], one["reason"]) for one in (shown, told)],
        )
        return tasks[0] == tasks[1] and states[0] == states[1]

    # Between the two answers the job may begin or end a pass.
    wait_for(agrees, LOGGED_WITHIN, "the command to say what the job says")
