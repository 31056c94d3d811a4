"""Two jobs over one flow: one leads, the other stands by, whatever happens to the first, and a command beside both."""

from __future__ import annotations

import logging
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from app.local.jars import PROJECT
from app.local.local_job import LocalJob
from app.local.ports import free_ports
from app.local.waiting import wait_for
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.kafka.request_timeout import WRITE_GRACE_S
from sinks.ledger.lease import EVIDENCE
from tests.conftest import Clusters
from tests.kafka.staging import alter, client_of, create, family_of, flow_of, wait_until_shown, write_properties

log = logging.getLogger(__name__)

SOURCE = "led"
TIMEOUT = 5.0
"""Seconds that a request may take here: soon over, and longer than a broker takes to answer on a busy machine."""

FAILS_OVER_WITHIN = TIMEOUT + WRITE_GRACE_S + EVIDENCE + 120.0
"""Seconds: the lease, and on a busy machine a trigger and a claim."""

STARTS_WITHIN = 300.0
WRITES = r'^lockstep_admin_requests_total\{api="(?:Create|Delete|Alter|Incremental)\w*",.*\} (\S+)$'


@dataclass
class Led:
    """A job, and what it says of itself."""

    job: LocalJob
    config: Path
    log: Path
    family: list[psutil.Process]

    def flow(self) -> dict[str, Any]:
        """Of its status; nothing while it does not answer."""
        return next(iter(self.job.status().get("flows", [])), {})

    @property
    def leads(self) -> bool:
        """Whether it says so itself."""
        return bool((self.flow().get("leader") or {}).get("here"))

    @property
    def stands_by(self) -> bool:
        """With all kinds."""
        tasks = {kind["task"] for kind in self.flow().get("kinds", {}).values()}
        return "STANDBY" in tasks and tasks <= {"STANDBY", "DISABLED"}

    def writes(self) -> float:
        """Requests that changed a cluster, as it counts them itself."""
        metrics = httpx.get(f"{self.job.address}/metrics", timeout=900).raise_for_status().text
        return sum(float(count) for count in re.findall(WRITES, metrics, re.MULTILINE))

    def start(self) -> None:
        """Returns at once."""
        self.job.start()

    def signal(self, number: int) -> None:
        """To all of its processes, the JVM too."""
        if number != signal.SIGCONT:
            self.family = family_of(self.job.pids[0])
        for process in self.family:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)


@dataclass(frozen=True)
class Stage:
    """Two jobs with files of their own."""

    source: KafkaCluster
    target: KafkaCluster
    jobs: tuple[Led, Led]

    def leader_and_other(self) -> tuple[Led, Led]:
        """By what they say."""
        one, other = self.jobs
        wait_for(lambda: one.leads or other.leads, FAILS_OVER_WITHIN, "a job to lead")
        return (one, other) if one.leads else (other, one)

    def change(self, value: str) -> None:
        """A config on the source, which is on the target when this returns."""
        alter(self.source, "led-x", {"retention.ms": value})
        wait_until_shown(self.target, f"{SOURCE}.led-x", 2, {"retention.ms": value})


@pytest.fixture(scope="module")
def stage(clusters: Clusters, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with ExitStack() as stack:
        source, target = (stack.enter_context(client_of(one)) for one in (clusters.a, clusters.b))
        jobs = []
        for port in free_ports(2):
            folder = tmp_path_factory.mktemp("led")
            own = {"lockstep.http.port": str(port), "admin.timeout.ms": str(round(1000 * TIMEOUT))}
            config = write_properties(folder, clusters.a, clusters.b, "led-.*", source=SOURCE, **own)
            jobs.append(Led(LocalJob(config, port, folder / "job.log"), config, folder / "job.log", []))
            stack.callback(jobs[-1].job.stop)
            stack.callback(jobs[-1].signal, signal.SIGCONT)
        create(source, "led-x", 2, {"retention.ms": "1000"})
        for one in jobs:
            one.start()
        yield Stage(source, target, (jobs[0], jobs[1]))


def within(seconds: float, condition: Callable[[], bool], what: str) -> float:
    """How many seconds it took."""
    begun = time.monotonic()
    wait_for(condition, seconds, what)
    return time.monotonic() - begun


def lockstep(led: Led, *command: str) -> subprocess.CompletedProcess[str]:
    """A command with a job's file."""
    return subprocess.run(
        [sys.executable, "-m", "app.main", *command, "--config", str(led.config)],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )


def test_one_of_two_jobs_leads_and_the_other_says_who(stage: Stage) -> None:
    wait_for(lambda: any(one.leads for one in stage.jobs), STARTS_WITHIN, "a job to lead")
    wait_for(lambda: any(one.stands_by for one in stage.jobs), STARTS_WITHIN, "the other job to stand by")
    leads, other = stage.leader_and_other()
    # Both may have asked for the ledger's topic at first contact; one of them created it.
    before = other.writes()
    stage.change("2000")
    leader, beside = flow_of(leads.job)["leader"], flow_of(other.job)
    assert beside["leader"] == leader | {"here": False}
    assert str(beside["reason"]).startswith(f"{leader['client']} on {leader['host']} (since {leader['since']})")
    assert (leads.writes() > 0, other.writes()) == (True, before)
    refused = {
        ("run",): f"{leader['client']} on {leader['host']} leads {SOURCE}->b since",
        ("run", "--once"): f"{leader['client']} on {leader['host']} (since {leader['since']}) leads {SOURCE}->b",
    }
    for words, reason in refused.items():

        def is_refused(words: tuple[str, ...] = words, reason: str = reason) -> bool:
            ran = lockstep(leads, *words)
            assert ran.returncode == 1
            return reason in ran.stderr

        # On a busy machine a cluster may not answer the command within its short limit.
        wait_for(is_refused, STARTS_WITHIN, f"lockstep {' '.join(words)} to say who leads")


def test_job_that_ends_is_followed_at_once(stage: Stage) -> None:
    leads, other = stage.leader_and_other()
    leads.family = family_of(leads.job.pids[0])
    leads.family[0].terminate()
    took = within(FAILS_OVER_WITHIN, lambda: other.leads, "the other job to take over")
    log.info("took over from a job that ended after %.1f s", took)
    leads.job.stop()
    leads.start()
    stage.change("4000")


def test_command_leads_while_it_writes_and_the_job_goes_on_after_it(stage: Stage) -> None:
    leads, _ = stage.leader_and_other()
    since = flow_of(leads.job)["leader"]["since"]
    run = lockstep(leads, "apply", "--yes")
    assert run.returncode == 0, run.stderr

    def leads_anew() -> bool:
        # What a job said of itself before the command may still be its status.
        return any(one.leads and one.flow()["leader"]["since"] > since for one in stage.jobs)

    took = within(FAILS_OVER_WITHIN, leads_anew, "a job to lead again")
    log.info("a job leads again %.1f s after the command", took)
    stage.change("5000")


def test_job_that_is_stopped_for_longer_than_its_lease_writes_nothing_when_it_wakes(stage: Stage) -> None:
    wait_for(lambda: any(one.stands_by for one in stage.jobs), STARTS_WITHIN, "the second job to be back")
    leads, other = stage.leader_and_other()
    before = leads.writes()
    leads.signal(signal.SIGSTOP)
    took = within(FAILS_OVER_WITHIN, lambda: other.leads, "the other job to take over")
    log.info("took over from a job that was stopped after %.1f s", took)
    stage.change("3000")
    # A difference that the job that sleeps would mend on waking, if it might.
    alter(stage.target, f"{SOURCE}.led-x", {"retention.ms": "2000"})
    leads.signal(signal.SIGCONT)
    wait_for(lambda: leads.stands_by, FAILS_OVER_WITHIN, "the job that slept to stand by")
    assert leads.writes() == before


def test_job_that_is_killed_is_followed_once_its_lease_is_over(stage: Stage) -> None:
    leads, other = stage.leader_and_other()
    leads.signal(signal.SIGKILL)
    took = within(STARTS_WITHIN, lambda: other.leads, "the other job to take over")
    log.info("took over from a job that was killed after %.1f s", took)
    stage.change("6000")
