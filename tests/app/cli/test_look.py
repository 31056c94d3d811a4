"""What `look`, `pause` and `resume` hear from the running job: a pass that was done is not yet all in step."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from app.cli.lazy_commands import app
from app.cli.pause_command import _notify_job
from app.http.api import Server
from app.local.ports import free_ports
from app.local.waiting import wait_for
from app.settings import load
from sinks.engine.flow_task import FlowTask
from sinks.engine.metrics import Metrics
from sinks.engine.status import Task
from sinks.every_kind.controller import PassContext
from sinks.every_kind.kinds_agenda import KindsAgenda
from sinks.faults import RightsMissing
from sinks.ledger.ledger_entries import Entry
from sinks.model.changes import Kind
from tests.app.http.flows_shown import job_api
from tests.sinks.builders import FLOW, World, put_topic, set_config

BASE = "clusters=a,b\na.bootstrap.servers=h:1\nb.bootstrap.servers=h:2\na->b.enabled=true\n"


@dataclass
class RunningJob:
    """A job over two clusters in memory, and commands that find it."""

    world: World
    task: FlowTask
    config: Path

    def command(self, *words: str) -> Result:
        return CliRunner().invoke(app, [*words, "--config", str(self.config)])

    def pause(self, value: str | None) -> None:
        self.world.ledger().put({(Entry.PAUSED, (Kind.TOPIC_CONFIG.value,)): value})

    def task_of(self, kind: Kind) -> Task:
        return self.task.status().kinds[kind].task


@pytest.fixture
def job(tmp_path: Path) -> Iterator[RunningJob]:
    world, ended = World(), threading.Event()
    put_topic(world.source, "orders", 1, retention_ms="1")
    task = FlowTask(world.reconcile, Metrics("1"))

    def passes() -> None:
        while not ended.wait(0.01):
            task.step(None)

    server = Server(job_api({FLOW: task}), "127.0.0.1", 0)
    thread = threading.Thread(target=passes, daemon=True)
    server.start()
    thread.start()
    config = tmp_path / "m.properties"
    config.write_text(f"{BASE}lockstep.http.port={server.address.rpartition(':')[2]}\n")
    wait_for(lambda: task.status().kinds[Kind.TOPIC_CONFIG].drift == 0, 60, "the first pass")
    yield RunningJob(world, task, config)
    ended.set()
    thread.join(60)
    server.stop()


def test_a_pass_that_leaves_nothing_is_exit_0(job: RunningJob) -> None:
    said = job.command("look", "--wait", "20")
    assert (said.stdout, said.exit_code) == ("a->b: compared\n", 0)


def test_a_pass_that_left_a_paused_kind_out_says_so_and_is_exit_3(job: RunningJob) -> None:
    job.pause("")
    set_config(job.world.source, "orders", "retention.ms", "2")
    said = job.command("look", "--wait", "20")
    assert said.exit_code == 3
    assert "paused: topic-config is not compared, so its drift is unknown" in said.stdout
    document = json.loads(job.command("look", "--wait", "20", "-o", "json").stdout)
    assert document["looked"] == {"a->b": True}
    assert document["paused"] == {"a->b": ["topic-config"]}


def test_a_pass_after_which_something_still_differs_is_exit_3(job: RunningJob) -> None:
    job.world.target.policy = lambda topic, name, value: "30 days at most"
    set_config(job.world.source, "orders", "retention.ms", "2")
    said = job.command("look", "--wait", "20")
    assert said.exit_code == 3
    assert "topic-config: 1 still differ; `lockstep status` says why" in said.stdout


def test_a_pass_that_could_not_compare_a_kind_says_why_and_is_exit_3(job: RunningJob) -> None:
    def denied(context: PassContext, mine: KindsAgenda) -> object:
        raise RightsMissing("DESCRIBE_CONFIGS is missing")

    job.world.controller(Kind.TOPIC_CONFIG).poll = denied  # type: ignore[method-assign]  # it is asked as before
    said = job.command("look", "--wait", "20")
    assert said.exit_code == 3
    assert "topic-config: could not be compared: DESCRIBE_CONFIGS is missing" in said.stdout


def test_a_flow_that_is_stopped_says_why_and_is_exit_1(job: RunningJob) -> None:
    job.world.source.reachable = False
    said = job.command("look", "--wait", "20")
    assert said.exit_code == 1
    assert "a->b: not compared within the time" in said.stdout
    assert "  stopped: " in said.stdout


def test_the_running_job_follows_a_pause_and_a_resume_at_once(job: RunningJob) -> None:
    settings = load(job.config)
    for value, task in (("", Task.PAUSED), (None, Task.ACTIVE)):
        job.pause(value)
        _notify_job(settings)
        assert job.task_of(Kind.TOPIC_CONFIG) is task


def test_a_pause_without_a_job_here_says_when_another_one_follows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "m.properties"
    config.write_text(f"{BASE}lockstep.http.port={free_ports(1)[0]}\n")
    _notify_job(load(config))
    assert capsys.readouterr().err == "no job answers here; one that runs elsewhere follows within 60 s\n"


def test_status_is_shown_again_and_again_until_ctrl_c(job: RunningJob) -> None:
    words = [sys.executable, "-m", "app.main", "status", "--watch", "--config", str(job.config)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        heads = (line for line in watching.stdout if line.startswith("a->b  NO HEARTBEAT"))
        assert next(heads)
        assert next(heads)
        watching.send_signal(signal.SIGINT)
        assert watching.wait(60) == 130


def test_a_document_is_asked_for_once_each_time(job: RunningJob) -> None:
    assert job.command("status", "--watch", "-o", "json").exit_code == 2
