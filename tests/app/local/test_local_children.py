"""Child processes end when they are told to, and when the program that started them does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from app.local import children
from app.local.waiting import wait_for

SOON = 60.0


def runs(pid: int) -> bool:
    """Whether there is such a process, a zombie apart."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_what_a_child_writes_to_stdout_and_stderr_is_appended_to_its_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    for word in ("one", "two"):
        children.spawn(["sh", "-c", f"echo {word}; echo {word}! >&2"], log).wait()
    assert log.read_text().split() == ["one", "one!", "two", "two!"]


def test_a_command_that_is_not_there_is_an_error_of_the_caller(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no-such-command"):
        children.spawn(["no-such-command"], tmp_path / "log")


def test_a_child_is_in_a_session_of_its_own_out_of_ctrl_cs_reach(tmp_path: Path) -> None:
    child = children.spawn(["sleep", "60"], tmp_path / "log")
    assert os.getsid(child.pid) == child.pid
    children.stop(child)


def test_a_child_gets_sigterm_and_can_end_in_order(tmp_path: Path) -> None:
    log = tmp_path / "log"
    child = children.spawn(["sh", "-c", "trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.05; done"], log)
    wait_for(lambda: "up" in log.read_text(), SOON, "the child to be up")
    children.stop(child)
    assert child.returncode == 3
    assert log.read_text().split() == ["up", "bye"]


def test_a_child_that_ignores_sigterm_is_killed_after_the_limit(tmp_path: Path) -> None:
    log = tmp_path / "log"
    child = children.spawn(["sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.05; done"], log)
    wait_for(lambda: "up" in log.read_text(), SOON, "the child to be up")
    children.stop(child, within=0.1)
    assert child.returncode == -signal.SIGKILL


def test_stopping_what_has_ended_is_no_error(tmp_path: Path) -> None:
    child = children.spawn(["true"], tmp_path / "log")
    child.wait()
    children.stop(child)
    children.kill(child)
    assert child.returncode == 0


def test_a_child_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    started: list[children.Child] = []
    thread = threading.Thread(target=lambda: started.append(children.spawn(["sleep", "60"], tmp_path / "log")))
    thread.start()
    thread.join()
    (child,) = started
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(0.3)
    children.kill(child)
    assert child.returncode == -signal.SIGKILL


PROGRAM = """
import sys
from pathlib import Path
from app.local import children
print(children.spawn(["sleep", "600"], Path(sys.argv[1])).pid, flush=True)
if sys.argv[2] == "stay":
    sys.stdin.read()
"""


def start_program(log: Path, then: str) -> tuple[subprocess.Popen[str], int]:
    """A program that starts a child and stays or ends; the child's process id."""
    command = [sys.executable, "-c", PROGRAM, str(log), then]
    program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    return program, int(program.stdout.readline())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children of their parent's death")
def test_a_child_dies_with_a_program_that_is_killed(tmp_path: Path) -> None:
    program, child = start_program(tmp_path / "log", "stay")
    assert runs(child)
    program.kill()
    program.communicate()
    wait_for(lambda: not runs(child), SOON, "the child to die with its parent")


def test_a_child_is_stopped_when_the_program_ends_without_having_stopped_it(tmp_path: Path) -> None:
    program, child = start_program(tmp_path / "log", "end")
    program.communicate()
    assert program.returncode == 0
    wait_for(lambda: not runs(child), SOON, "the child to be stopped")
