"""What commands cost before they do anything: CPU seconds, the least of several runs, since the machine is busy.

`status` asks a job that answers at once with nothing to show, so that what is left is the command's own start.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Annotated, Final

import typer

FLOW: Final = {"source": "a", "target": "b", "state": "LIVE", "heartbeat_age_seconds": 1.0, "reason": None}
ANSWER: Final = {"flows": [{**FLOW, "kinds": {}, "effective": {"drift": 0, "configs": []}}]}


class _Job(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps(ANSWER).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@contextmanager
def _job(folder: Path) -> Iterator[Path]:
    """A properties file whose job answers; its clusters are nowhere."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Job)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    config = folder / "mirror.properties"
    clusters = "clusters = a, b\na.bootstrap.servers = a.invalid:1\nb.bootstrap.servers = b.invalid:1\n"
    config.write_text(f"{clusters}a->b.enabled = true\nlockstep.http.port = {server.server_address[1]}\n")
    try:
        yield config
    finally:
        server.shutdown()


def cpu_seconds(arguments: Sequence[str]) -> float:
    """Of one run of `lockstep`, in user and system mode."""
    before = os.times()
    subprocess.run([sys.executable, "-m", "app.main", *arguments], check=False, capture_output=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def main(runs: Annotated[int, typer.Option(help="The least of so many runs counts.")] = 9) -> None:
    """Prints one JSON document: CPU seconds by command."""
    with tempfile.TemporaryDirectory(prefix="lockstep-bench-commands-") as folder, _job(Path(folder)) as config:
        commands = {
            "--help": ["--help"],
            "validate of a file that does not exist": ["validate", "--config", f"{folder}/none"],
            "status of a job that answers": ["status", "--config", str(config)],
        }
        found = {name: round(min(cpu_seconds(command) for _ in range(runs)), 2) for name, command in commands.items()}
    sys.stdout.write(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    typer.run(main)
