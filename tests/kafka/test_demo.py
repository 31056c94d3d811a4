"""`lockstep demo`: what it shows is true, and nothing of it stays."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from app.cli.demo_command import DEMO_FOLDER
from app.local import ports
from app.local.jars import PROJECT
from app.local.local_mirror import MAIN
from app.local.waiting import wait_for
from tests.kafka.staging import command_line, family_of, running, wait_until_gone
from tests.quick_java import QUICK_KAFKA

DONE_WITHIN = 900.0
"""Seconds for two clusters, MM2, the job and six changes, on a busy machine."""

DEMO = f"from app.local import ports; ports.CANDIDATES = {ports.CANDIDATES}; from app.main import main; main()"
"""On ports that no other process of `pytest -n` chooses."""

QUICK = os.environ | {"JDK_JAVA_OPTIONS": " ".join(QUICK_KAFKA)}
"""The demo's brokers and MM2 live for a minute."""


@contextmanager
def demo(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """The demo as a process group of its own, as a shell starts it, and the file with all that it says."""
    said = folder / "demo.out"
    with said.open("wb") as out:
        command = [sys.executable, "-c", DEMO, "demo"]
        run = subprocess.Popen(command, cwd=PROJECT, env=QUICK, stdout=out, stderr=out, start_new_session=True)
    try:
        yield run, said
    finally:
        if run.poll() is None:
            run.kill()
            run.wait()


def seen_until(run: subprocess.Popen[bytes], over: Callable[[], bool], what: str) -> list[psutil.Process]:
    """Every process that the demo had at some time until `over`. Fails at once where the demo ends before."""
    seen: set[psutil.Process] = set()

    def look() -> bool:
        runs = run.poll() is None
        if runs:
            seen.update(family_of(run.pid))
        found = over()
        assert found or runs, f"the demo ended with exit code {run.returncode} before {what}"
        return found

    wait_for(look, DONE_WITHIN, what)
    return list(seen)


def test_every_change_arrives_and_nothing_stays(tmp_path: Path) -> None:
    """Exit code 0 says that all changes arrived and the excluded key survived; its folder can be deleted."""
    with demo(tmp_path) as (run, said):
        processes = seen_until(run, lambda: run.poll() is not None, "the demo to end")
        assert run.returncode == 0, said.read_text()
        assert len(processes) >= 6
        wait_until_gone(processes)
    assert "its page is at http://127.0.0.1:" in said.read_text()
    assert "survived" in said.read_text()
    assert "0 skipped" in said.read_text()
    assert "mirror.properties" in said.read_text()
    assert not (DEMO_FOLDER / "mirror" / "mirror.properties").exists(), (
        "MM2 had another file than the one that is shown"
    )
    shutil.rmtree(DEMO_FOLDER)
    assert not DEMO_FOLDER.exists()


def test_a_mirror_that_dies_ends_the_demo_with_its_reason(tmp_path: Path) -> None:
    with demo(tmp_path) as (run, said):
        before = seen_until(run, lambda: "starting the job" in said.read_text(), "the job to be started")
        before += seen_until(run, lambda: bool(mirrors(run.pid)), "MM2 to run")
        mirrors(run.pid)[0].kill()
        last = seen_until(run, lambda: run.poll() is not None, "the demo to end")
        assert run.returncode == 1, said.read_text()
        wait_until_gone([*before, *last])
    assert f"{MAIN} ended with exit code" in said.read_text()
    assert "Traceback" not in said.read_text()


def mirrors(pid: int) -> list[psutil.Process]:
    """MM2's processes among a process and its descendants."""
    return [one for one in family_of(pid) if MAIN in command_line(one)]


@pytest.mark.parametrize("moment", ["starting the clusters", "starting the job"])
def test_ctrl_c_ends_all_that_was_started(tmp_path: Path, moment: str) -> None:
    """A terminal sends SIGINT to the whole group, also to a demo that waits for what it has just started."""
    with demo(tmp_path) as (run, said):
        before = seen_until(run, lambda: moment in said.read_text(), f"{moment!r}")
        started = seen_until(run, lambda: len(running(family_of(run.pid))) > len(running(before)), "one more process")
        os.killpg(run.pid, signal.SIGINT)
        last = seen_until(run, lambda: run.poll() is not None, "the demo to end")
        assert run.returncode == 130, said.read_text()
        wait_until_gone([*before, *started, *last])
    assert "Traceback" not in said.read_text()
