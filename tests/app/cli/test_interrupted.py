"""Ctrl-C and SIGTERM end a command at once, without a word, though it waits for clusters that are silent."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from tests.silent_clusters import LOCKSTEP, SilentClusters

ENDS_WITHIN = 40.0
"""Seconds, on a busy machine; what it waits for takes 60."""


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
    assert (run.returncode, said) == (130, "")


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
