"""`lockstep run`, as a process of its own, ends with a signal to its whole process group: a line, no stack trace.

Both clusters refuse connections, which is no reason to end.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from app.local.ports import free_ports
from app.local.waiting import wait_for
from tests.jvm_kills import COMPARED, STARTS_WITHIN, submitted
from tests.silent_clusters import LOCKSTEP

ENDS_WITHIN = 300.0
"""Seconds, on a busy machine: a JVM that has begun to start does so first."""


def properties(folder: Path) -> Path:
    """Of a flow between two clusters that are not there."""
    a, b, http = free_ports(3)
    file = folder / "mm2.properties"
    file.write_text(
        f"clusters=a,b\na.bootstrap.servers=127.0.0.1:{a}\nb.bootstrap.servers=127.0.0.1:{b}\na->b.enabled=true\n"
        f"lockstep.checkpoint.dir={folder}/checkpoints\nlockstep.http.port={http}\n"
    )
    return file


def started_by(run: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Its JVM, or the script that is going to be it, and Spark's launcher."""
    return psutil.Process(run.pid).children(recursive=True)


@pytest.mark.parametrize(
    ("number", "serves", "line"),
    [
        (signal.SIGTERM, True, "SIGTERM: ending after the running batch"),
        (signal.SIGINT, False, "ended before the first comparison"),
    ],
)
def test_a_signal_to_the_process_group_ends_the_job_with_one_line(
    tmp_path: Path, number: signal.Signals, serves: bool, line: str
) -> None:
    log = tmp_path / "log"

    def has_begun() -> bool:
        assert run.poll() is None, log.read_text()
        return COMPARED in log.read_text() if serves else submitted(psutil.Process(run.pid)) is not None

    command = [*LOCKSTEP, "run", "--config", str(properties(tmp_path))]
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True) as run:
        try:
            wait_for(has_begun, STARTS_WITHIN, f"the job (see {log})")
            started, begun = started_by(run), time.monotonic()
            os.killpg(run.pid, number)
            assert run.wait(ENDS_WITHIN) == 0, log.read_text()
        finally:
            run.kill()
    wait_for(_gone(started), begun + ENDS_WITHIN - time.monotonic(), "the end of its JVM")
    said = log.read_text()
    assert "Traceback" not in said
    # Spark's own threads may warn behind it.
    assert said.count(line) == 1, said


def _gone(started: list[psutil.Process]) -> Callable[[], bool]:
    assert started
    return lambda: not any(one.is_running() for one in started)
