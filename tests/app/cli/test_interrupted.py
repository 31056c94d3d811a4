"""Ctrl-C and SIGTERM end a command at once, with one line, though it waits for clusters that are silent."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.silent_clusters import LOCKSTEP, SilentClusters

ENDS_WITHIN = 180.0
"""Seconds, on a busy machine; what it waits for takes 60, and ends with another code."""


@pytest.mark.parametrize(
    ("command", "targets", "number"),
    [("topics", "b", signal.SIGTERM), ("plan", "b", signal.SIGINT), ("plan", "bc", signal.SIGINT)],
)
def test_a_signal_ends_a_command(tmp_path: Path, command: str, targets: str, number: signal.Signals) -> None:
    with SilentClusters("a", *targets) as silent:
        file = silent.properties(tmp_path, [f"a->{target}" for target in targets])
        words = [command, "--timeout", "60", "--config", str(file)]
        with subprocess.Popen([*LOCKSTEP, *words], stderr=subprocess.PIPE, text=True) as run:
            silent.accept("b")
            run.send_signal(number)
            _, said = run.communicate(timeout=ENDS_WITHIN)
    assert (run.returncode, said) == (130, "interrupted\n")


@pytest.mark.parametrize(("options", "code"), [([], 0), (["--once"], 130)])
def test_a_signal_before_the_job_has_begun_is_a_failure_of_one_that_was_to_run_once(
    tmp_path: Path, options: list[str], code: int
) -> None:
    with SilentClusters("a", "b") as silent:
        command = [*LOCKSTEP, "run", "--config", str(silent.properties(tmp_path, ["a->b"])), *options]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as run:
            silent.accept("b")
            run.send_signal(signal.SIGTERM)
            _, said = run.communicate(timeout=ENDS_WITHIN)
    assert run.returncode == code
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("module", "said"),
    [("typer", ""), ("rich.console", ""), ("app.local.java_gateway", ""), ("app.cli.plan_text", "interrupted\n")],
)
def test_ctrl_c_while_a_command_is_imported_ends_it_with_one_line_at_most(module: str, said: str) -> None:
    code = (
        "import builtins, os, signal, sys\n"
        "load = builtins.__import__\n"
        "def interrupted(name, *rest):\n"
        f"    if name == {module!r}:\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    return load(name, *rest)\n"
        "builtins.__import__ = interrupted\n"
        "sys.argv[1:] = ['plan', '--config', 'nowhere']\n"
        "from app.main import main\n"
        "main()\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (130, "", said)
