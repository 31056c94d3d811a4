"""Ctrl-C ends a wait for Java's client at once, without a stack trace of py4j's."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

from tests.silent_clusters import LOCKSTEP, SilentClusters

ENDS_WITHIN = 180.0
"""Seconds, on a busy machine. The command itself would wait longer."""


def test_ctrl_c_while_java_waits_for_a_cluster_ends_the_command_with_one_line(tmp_path: Path) -> None:
    with SilentClusters("a", "b") as silent:
        file = silent.properties(tmp_path, ["a->b"])
        words = ["configs", "--describe", "--cluster", "a", "--entity-type", "topics", "--entity-name", "t"]
        command = [*LOCKSTEP, *words, "--timeout", "60", "--config", str(file)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as run:
            for _ in ("whether it can be reached", "Java's client"):
                silent.accept("a")
            run.send_signal(signal.SIGINT)
            _, said = run.communicate(timeout=ENDS_WITHIN)
    assert (run.returncode, said) == (130, "interrupted\n")
