"""A client of records may be closed while another thread is in it: that thread is told, and the process goes on."""

from __future__ import annotations

import subprocess
import sys

CLOSED_WHILE_IN_USE = """
import sys, threading
from sinks.faults import ClusterUnreachable
from sinks.kafka.records.rd_clients import RdClients
from sinks.kafka.records.rd_logs import Log

for number in range(20):
    log = Log("b", RdClients("b", {"bootstrap.servers": "127.0.0.1:1"}, lambda: None), 0.1)
    client, use = USE
    began, told = threading.Event(), threading.Event()

    def run():
        while True:
            began.set()
            try:
                use()
            except ClusterUnreachable as error:
                if "any more" in str(error):
                    return told.set()

    threading.Thread(target=run, daemon=True).start()
    began.wait(60)
    client.close()
    if not told.wait(60):
        sys.exit(3)
"""


def ended(use: str) -> subprocess.CompletedProcess[str]:
    """A process of its own, since it is the process that would end. `use`: the client, and what uses it."""
    script = CLOSED_WHILE_IN_USE.replace("USE", use)
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False)


def test_log_that_is_followed_may_be_closed_by_another_thread() -> None:
    run = ended("(tail := log.follow('x', 5)), lambda: tail.next(0.0)")
    assert (run.returncode, run.stderr) == (0, "")


def test_log_that_is_written_may_be_closed_by_another_thread() -> None:
    run = ended("log, lambda: log.append('x', [(b'k', b'v')])")
    assert (run.returncode, run.stderr) == (0, "")
