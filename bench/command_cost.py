"""What commands cost before they do anything: CPU seconds, the least of several runs, since the machine is busy.

`status` asks a job that answers at once with nothing to show, so that what is left is the command's own start.

With `--topics 50` two local clusters run, and whole commands are timed: seconds on the clock, the median of several
runs, first without a job, then beside one. Nothing else should run on the machine then.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Annotated, Final

import typer

from bench.pair import lockstep, make_topics, pair_of
from bench.timed_changes import bench_topics

FLOW: Final = {"source": "a", "target": "b", "state": "LIVE", "heartbeat_age_seconds": 1.0, "reason": None}
ANSWER: Final = {"flows": [{**FLOW, "kinds": {}, "effective": {"drift": 0, "configs": []}}]}
KINDS: Final = ("topic.configs", "topic.acls", "group.offsets")
WHOLE: Final[Mapping[str, Sequence[str]]] = {
    **{name: [name] for name in ("plan", "status", "offsets", "preflight")},
    "configs": ["configs", "--cluster", "a", "--describe", "--entity-type", "topics"],
}
"""Commands that are timed as a whole."""


class _Job(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(ANSWER).encode())

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@contextmanager
def _job(folder: Path) -> Iterator[Path]:
    """A properties file whose job answers; its clusters are nowhere."""
    config = folder / "mirror.properties"
    clusters = "clusters = a, b\na.bootstrap.servers = a.invalid:1\nb.bootstrap.servers = b.invalid:1\n"
    with ThreadingHTTPServer(("127.0.0.1", 0), _Job) as server:
        config.write_text(f"{clusters}a->b.enabled = true\nlockstep.http.port = {server.server_port}\n")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield config
        server.shutdown()


def cpu_seconds(arguments: Sequence[str]) -> float:
    """Of one run of `lockstep`, in user and system mode."""
    before = os.times()
    lockstep(*arguments)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def wall_seconds(arguments: Sequence[str], runs: int) -> float:
    """Of the median of several runs of `lockstep`."""
    seconds = []
    for _ in range(runs):
        began = time.monotonic()
        lockstep(*arguments)
        seconds.append(time.monotonic() - began)
    return round(statistics.median(seconds), 2)


def whole_commands(topics: int, runs: int) -> dict[str, dict[str, float]]:
    """Seconds of whole commands, on two clusters that `apply` has brought in step."""
    with pair_of("commands", heap="512m") as pair:
        make_topics(pair.source, bench_topics(topics))
        job = pair.job(**{f"lockstep.sync.{kind}.enabled": "true" for kind in KINDS})
        file = ["--config", str(job.config)]
        lockstep("apply", "--yes", *file)
        alone = {name: wall_seconds([*command, *file], runs) for name, command in WHOLE.items()}
        with job:
            job.wait_until_compared()
            beside = {name: wall_seconds([*WHOLE[name], *file], runs) for name in ("status", "plan")}
    return {"without a job": alone, "beside a job": beside}


def main(
    runs: Annotated[int, typer.Option(help="The least, or the median, of so many runs counts.")] = 9,
    topics: Annotated[int, typer.Option(help="Times whole commands on two clusters with so many topics.")] = 0,
) -> None:
    """Prints one JSON document: seconds by command."""
    if topics:
        sys.stdout.write(json.dumps(whole_commands(topics, runs), indent=2) + "\n")
        return
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
