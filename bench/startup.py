"""How long the job takes from its start to the first comparison, and where the time goes: `python -m bench.startup`.

Two clusters of one broker, 50 topics or as many as said, a real MM2 beside them. The job is started again and again,
through `./spark-submit.sh`, with a fresh checkpoint each time; the first run creates the remote topics.
"""

from __future__ import annotations

import re
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Annotated, Final

import psutil
import typer

from app.cli.output import print_table
from app.local.local_cluster import LocalCluster
from app.local.local_mirror import LocalMirror, mirror_properties
from bench.job_file import job_of
from bench.topic_changes import create_topics

SERVES: Final = "the page, metrics and status are at"
STARTS: Final = "is read, starting Spark"
PHASES: Final = (
    ("spark-submit.sh and Spark's launcher, until the driver's Python runs", "python"),
    ("imports, the properties file, the overrides in the ledgers", STARTS),
    ("the Spark session, flows, clients, HTTP", SERVES),
    ("the first batch, until every kind has been compared", "compared"),
)
"""What ends each part of a start, in order."""


def main(
    runs: Annotated[int, typer.Option(help="Starts to measure.")] = 5,
    topics: Annotated[int, typer.Option(help="Topics on the source.")] = 50,
) -> None:
    """Prints a table: seconds of each part, of each run and their median."""
    with tempfile.TemporaryDirectory() as folder:
        measured = list(_measured(Path(folder), runs, topics))
    rows = [_row(name, [run.get(end) for run in measured]) for name, end in PHASES]
    rows.append(_row("from the start to the first comparison", [sum(run.values()) for run in measured]))
    print_table("", ("seconds", "median", *(f"run {number}" for number in range(1, runs + 1))), rows)


def _row(name: str, seconds: list[float | None]) -> tuple[str, ...]:
    known = [one for one in seconds if one is not None]
    median = f"{statistics.median(known):.1f}" if known else "-"
    return (name, median, *("-" if one is None else f"{one:.1f}" for one in seconds))


def _measured(folder: Path, runs: int, topics: int) -> Iterator[Mapping[str, float]]:
    with ExitStack() as stack:
        a, b = (stack.enter_context(LocalCluster(alias, folder / alias)) for alias in ("a", "b"))
        create_topics(a.bootstrap, topics)
        clusters = {"a": a.bootstrap, "b": b.bootstrap}
        stack.enter_context(LocalMirror(mirror_properties(clusters, ["a->b"]), folder / "mirror"))
        for number in range(runs):
            yield _one(clusters, folder / str(number))


def _one(clusters: Mapping[str, str], folder: Path) -> dict[str, float]:
    enabled = ("topic.configs", "topic.acls", "group.offsets")
    own = {f"lockstep.sync.{kind}.enabled": "true" for kind in enabled}
    began = time.time()
    with job_of(mirror_properties(clusters, ["a->b"], **own), folder) as job:
        job.wait_until_compared()
        compared = time.time()
        ends = {"python": _python_since(job.pids[0]), "compared": compared, **_logged(folder / "job.log")}
    seconds, last = {}, began
    for _, end in PHASES:
        if end in ends:
            seconds[end], last = ends[end] - last, ends[end]
    return seconds


def _python_since(submit: int) -> float:
    """When the driver's Python process was made."""
    made = []
    for one in psutil.Process(submit).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if "app/submit.py" in " ".join(one.cmdline()[1:2]):
                made.append(one.create_time())
    return min(made)


def _logged(log: Path) -> dict[str, float]:
    """When the job logged what ends a part."""
    found = {}
    for line in log.read_text(errors="replace").splitlines():
        for text in (STARTS, SERVES):
            if text in line and (stamp := re.match(r"(\d+-\d+-\d+ \d+:\d+:\d+),(\d+)", line)):
                whole = time.mktime(time.strptime(stamp[1], "%Y-%m-%d %H:%M:%S"))
                found[text] = whole + int(stamp[2]) / 1000
    return found


if __name__ == "__main__":
    typer.run(main)
