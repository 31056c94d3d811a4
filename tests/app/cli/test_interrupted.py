"""Ctrl-C and SIGTERM end a command at once, without a word, though it waits for clusters that are silent."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from tests.silent_clusters import LOCKSTEP, SilentClusters

ENDS_WITHIN = 20.0
"""Seconds, on a busy machine; what it waits for takes 60."""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("targets", ["b", "bc"])
@pytest.mark.parametrize("command", ["topics", "plan"])
def test_a_signal_ends_a_command(tmp_path: Path, command: str, targets: str, number: signal.Signals) -> None:
    with SilentClusters("a", *targets) as silent:
        file = silent.properties(tmp_path, [f"a->{target}" for target in targets])
        words = [command, "--timeout", "60", "--config", str(file)]
        with subprocess.Popen([*LOCKSTEP, *words], stderr=subprocess.PIPE, text=True) as run:
            silent.accept("b")
            run.send_signal(number)
            _, said = run.communicate(timeout=ENDS_WITHIN)
    assert (run.returncode, said) == (130, "")
