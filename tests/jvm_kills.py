"""Kills the JVM of a running job at a random moment, and sees how the job ends."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path

import psutil

from app.local.waiting import wait_for

STARTS_WITHIN = 300.0
GONE_WITHIN = 180.0
"""Seconds on a busy machine. A job that misses the end of its JVM stays for good."""

COMPARED = "(tried again in "
"""The log of a job without clusters, whose first pass is over."""

SUBMITTED = "org.apache.spark.deploy.SparkSubmit"
"""In the command line of what is going to be the JVM, from its first moment on."""

REASONS = ("Spark's JVM has ended", "Spark does not start")
JOB = (sys.executable, "-X", "faulthandler", "-m", "app.main", "run", "--config")
"""With what writes the stacks of all threads at SIGABRT."""


class Moment(Enum):
    """What the job does when its JVM is killed."""

    START = "start"
    PASSES = "passes"
    PREFLIGHT = "preflight"
    RELOAD = "reload"
    END = "end"


LONGEST: Mapping[Moment, float] = {
    Moment.START: 9.0,
    Moment.PASSES: 15.0,
    Moment.PREFLIGHT: 3.0,
    Moment.RELOAD: 3.0,
    Moment.END: 3.0,
}
"""Seconds after its begin within which the kill comes."""


def submitted(run: psutil.Process) -> psutil.Process | None:
    """The JVM that a process started, or the script that is going to be it."""
    for process in run.children(recursive=True):
        try:
            if SUBMITTED in process.cmdline():
                return process
        except psutil.NoSuchProcess:
            continue
    return None


def kill_at(
    moment: Moment,
    seed: int,
    config: Path,
    log: Path,
    works: Callable[[str], bool],
    command: Sequence[str] = JOB,
) -> None:
    """Starts the job, kills its JVM, and asserts that it ends in time and says so last.

    `works`: whether the job is up, by its log.
    """
    with log.open("wb") as out, subprocess.Popen([*command, str(config)], stdout=out, stderr=out) as run:
        try:
            killed = _kill(run, moment, random.Random(f"{moment.value}{seed}"), config, log, works)
            left = psutil.Process(run.pid).children(recursive=True) if run.poll() is None else []
            try:
                code = run.wait(max(0.0, killed + GONE_WITHIN - time.monotonic()))
            except subprocess.TimeoutExpired:
                run.send_signal(signal.SIGABRT)
                run.wait()
                raise AssertionError(f"{moment.value}, {seed}: it is still there:\n{log.read_text()}") from None
        finally:
            run.kill()
    wait_for(
        lambda: not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in left),
        GONE_WITHIN,
        f"the end of {left}",
    )
    said = log.read_text()
    # An end that was over before the JVM was killed is none that failed.
    if code == 0 and moment is Moment.END:
        return
    assert code == 1, said
    # A thread of another flow may have a last word.
    assert any(line.startswith(REASONS) for line in said.splitlines()[-5:]), said


def _kill(
    run: subprocess.Popen[bytes],
    moment: Moment,
    chance: random.Random,
    config: Path,
    log: Path,
    works: Callable[[str], bool],
) -> float:
    """When it was."""

    def has_begun() -> bool:
        assert run.poll() is None, log.read_text()
        if moment is Moment.START:
            return submitted(psutil.Process(run.pid)) is not None
        return works(log.read_text())

    wait_for(has_begun, STARTS_WITHIN, f"the job (see {log})")
    java = submitted(psutil.Process(run.pid))
    assert java is not None
    if moment is Moment.RELOAD:
        config.write_text(f"{config.read_text()}a->b.topics.exclude=seed-{chance.random()}\n")
    elif moment is Moment.END:
        run.send_signal(signal.SIGTERM)
    threading.Event().wait(chance.uniform(0.0, LONGEST[moment]))
    try:
        java.kill()
    except psutil.NoSuchProcess:
        assert moment is Moment.END, log.read_text()
    return time.monotonic()
