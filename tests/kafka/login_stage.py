"""Two clusters with one login, and everything that logs in there: MM2, commands and the job."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import httpx
import javaproperties

from app.local.jars import PROJECT
from app.local.local_cluster import LocalCluster
from app.local.local_job import LocalJob
from app.local.local_mirror import LocalMirror, mirror_properties
from app.local.ports import free_ports
from app.local.waiting import wait_for
from tests.kafka.secured import produce
from tests.kafka.staging import alter, client_of, create, wait_until_shown
from tests.quick_java import QUICK_KAFKA

SOON = 180.0
RECORDS = 20
HOUR, DAY = "3600000", "86400000"


@dataclass(frozen=True)
class LoginStage:
    """A flow a->b whose clusters are asked with these client settings alone, by alias."""

    a: LocalCluster
    b: LocalCluster
    clients: Mapping[str, Mapping[str, str]]
    topic: str
    folder: Path
    port: int = field(default_factory=lambda: free_ports(1)[0])

    def properties(self, clients: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
        """Of MM2 and of Lockstep, which log in as these clients."""
        logins = {f"{alias}.{name}": value for alias, client in clients.items() for name, value in client.items()}
        keys = {
            "topics": self.topic,
            "sync.topic.configs.enabled": "false",
            "sync.topic.acls.enabled": "false",
            "lockstep.sync.topic.configs.enabled": "true",
            "lockstep.http.port": str(self.port),
            "lockstep.checkpoint.dir": str(self.folder / "checkpoints"),
        }
        return mirror_properties(dict.fromkeys("ab", ""), ["a->b"], **logins, **keys)

    def write(self) -> None:
        """Lockstep's file."""
        text = javaproperties.dumps(self.properties(self.clients), timestamp=False)
        (self.folder / "mirror.properties").write_text(text, encoding="latin-1")

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command of Lockstep's on that file."""
        command = [sys.executable, "-m", "app.main", *arguments, "--config", str(self.folder / "mirror.properties")]
        return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False, timeout=900)

    def all_log_in(
        self, mirror_options: Sequence[str] = (), mirror: Mapping[str, Mapping[str, str]] | None = None
    ) -> None:
        """MM2 copies records; commands ask, change and write records; the job brings a change and hears MM2.

        `mirror`: MM2's clients, where they are others.
        """
        self.write()
        with client_of(self.a) as source, client_of(self.b) as target:
            create(source, self.topic, 1, {})
            produce(self.a, self.topic, RECORDS)
            options = [*QUICK_KAFKA, *mirror_options]
            with LocalMirror(
                self.properties(mirror or self.clients), self.folder / "mm2", heap="256m", java_options=options
            ):
                copy = f"a.{self.topic}"
                wait_for(lambda: len(target.read_log(copy)) == RECORDS, SOON, f"MM2 to copy {self.topic}")
                alter(source, self.topic, {"retention.ms": DAY})
                self.commands_work()
                wait_until_shown(target, copy, 1, {"retention.ms": DAY})
                with self.job() as job:
                    alter(source, self.topic, {"retention.ms": HOUR})
                    wait_until_shown(target, copy, 1, {"retention.ms": HOUR})
                    wait_for(partial(hears_mm2, job), SOON, f"the stream of both clusters (see {self.folder})")

    def commands_work(self) -> None:
        """`validate` asks both clusters; `apply` changes the target, and writes ledger and audit; `audit` reads it."""
        for arguments in (("validate",), ("apply", "--yes"), ("audit", "-o", "json")):
            run = self.command(*arguments)
            assert run.returncode == 0, run.stderr
        assert f"a.{self.topic}" in run.stdout

    @contextmanager
    def job(self) -> Iterator[LocalJob]:
        """The running job, which has compared once."""
        job = LocalJob(self.folder / "mirror.properties", self.port, self.folder / "job.log")
        try:
            job.start()
            job.wait_until_compared()
            yield job
        finally:
            job.stop()


def hears_mm2(job: LocalJob) -> bool:
    """Whether Spark reads the heartbeats of the target, and no source of its query is left out."""
    said = httpx.get(f"{job.address}/metrics", timeout=900).text
    running = any(
        "lockstep_query_state" in line and "RUNNING" in line and line.endswith(" 1.0") for line in said.splitlines()
    )
    return running and job.status()["flows"][0]["state"] == "LIVE"
