"""What `lockstep verify` costs beside plain reading; writes bench/figures/benchmarks-verify.md.

Two clusters of one broker hold the same records. In one run, in turn: kafka-console-consumer on both sides at once, a
batch of Spark's own source with `count()` on each side, and `verify` at level digests.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import psutil
import typer

from app.local.jars import PROJECT, kafka_jars
from app.local.java import JavaProcess
from app.local.local_cluster import LocalCluster
from app.local.waiting import wait_for
from bench.saved_figures import read, save
from bench.standalone import HOST, standalone
from bench.verify_load import WrittenLoad, write_both
from bench.verify_page import PAGE, RESULTS, page

CONSOLE: Final = "org.apache.kafka.tools.consumer.ConsoleConsumer"
WITHIN: Final = 1800.0
PARTS: Final = ("plain", "workers", "memory")


def main(
    records: Annotated[int, typer.Option(help="Records of the comparison with plain reading.")] = 4_000_000,
    sizes: Annotated[str, typer.Option(help="Millions of records for the driver's memory.")] = "1,4,16",
    partitions: Annotated[int, typer.Option(help="Of the topic.")] = 8,
    rounds: Annotated[int, typer.Option(help="Rounds behind the warm-up.")] = 3,
    parts: Annotated[str, typer.Option(help="What to measure; the page keeps the rest as it was.")] = ",".join(PARTS),
    render: Annotated[bool, typer.Option("--render", help="Write the page from what was measured.")] = False,
) -> None:
    """Measures, saves after each part, and writes the page."""
    if not render:
        with tempfile.TemporaryDirectory(prefix="lockstep-verify-") as folder, ExitStack() as stack:
            root, clusters = Path(folder), {}
            for alias in ("a", "b"):
                cluster = stack.enter_context(LocalCluster(alias, root / alias, heap="1g"))
                clusters[alias] = cluster.bootstrap
            found = _kept(parts.split(","), partitions, rounds)
            load = RunSizes(records, [int(one) for one in sizes.split(",") if one], partitions, rounds)
            _measure(clusters, root, load, found, parts.split(","))
    PAGE.write_text(page(read(RESULTS)))


class RunSizes(NamedTuple):
    """How much is compared: `sizes` in millions of records, for the memory."""

    records: int
    sizes: list[int]
    partitions: int
    rounds: int


def _kept(parts: Sequence[str], partitions: int, rounds: int) -> dict[str, Any]:
    """What an earlier run found, where this one measures a part of it alone."""
    if unknown := set(parts) - {*PARTS}:
        raise typer.BadParameter(f"{', '.join(sorted(unknown))}: one of {', '.join(PARTS)}", param_hint="--parts")
    found: dict[str, Any] = read(RESULTS) if {*parts} != {*PARTS} else {}
    return found | {"cores": psutil.cpu_count(), "partitions": partitions, "rounds": rounds}


def _measure(clusters: dict[str, str], root: Path, load: RunSizes, found: dict[str, Any], parts: Sequence[str]) -> None:
    if {"plain", "workers"} & {*parts}:
        written = write_both(clusters, load.records, load.partitions, root)
    if "plain" in parts:
        found["plain"] = _beside_plain_reading(written, load.rounds)
        save(RESULTS, found)
    if "workers" in parts:
        found["workers"] = {str(count): _on_workers(written, root, count, load.rounds) for count in (1, 2)}
        save(RESULTS, found)
    if "memory" in parts:
        found["memory"] = {}
    for millions in load.sizes if "memory" in parts else ():
        larger = write_both(clusters, millions * 1_000_000, load.partitions, root)
        with standalone(root / f"memory-{millions}", 1) as master:
            one = _child(larger, 1, master=master, count=False)
        found["memory"][str(millions)] = {"heap_mib": one["heap_mib"], "resident_mib": one["resident_mib"]}
        save(RESULTS, found)


def _beside_plain_reading(written: WrittenLoad, rounds: int) -> dict[str, Any]:
    consoles = [_console(written) for _ in range(rounds + 1)][1:]
    child = _child(written, rounds)
    seconds = {"console": consoles, **{way: found[1:] for way, found in child["seconds"].items()}}
    cpu = {way: found[1:] for way, found in child["cpu"].items()}
    return {"records": written.records, "seconds": seconds, "cpu": cpu}


def _console(written: WrittenLoad) -> float:
    """Seconds in which two consumers read both sides, at the same time."""
    sides = ((written.sources["a"], written.topic), (written.sources["b"], written.remote))
    began = time.perf_counter()
    with ExitStack() as stack:
        running = []
        for servers, topic in sides:
            asked = ["--bootstrap-server", servers, "--topic", topic, "--from-beginning"]
            asked += ["--max-messages", str(written.records)]
            running.append(
                stack.enter_context(JavaProcess(CONSOLE, asked, kafka_jars(), Path(os.devnull), ["-Xmx512m"]))
            )
        wait_for(lambda: all(one.succeeded() for one in running), WITHIN, "both consumers to have read all")
        return time.perf_counter() - began


def _on_workers(written: WrittenLoad, root: Path, workers: int, rounds: int) -> list[float]:
    with standalone(root / f"workers-{workers}", workers) as master:
        found: list[float] = _child(written, rounds, master=master, count=False)["seconds"]["digests"][1:]
        return found


def _child(written: WrittenLoad, rounds: int, *, master: str = "local[2]", count: bool = True) -> dict[str, Any]:
    """What a driver says; and the most memory that it had, with its JVM."""
    command = [sys.executable, "-m", "bench.verify_child", str(written.config), written.topic, "--rounds", str(rounds)]
    own = f"--master {master} --conf spark.ui.enabled=false --conf spark.executor.memory=1g"
    environment = os.environ | {"PYSPARK_SUBMIT_ARGS": f"{own} --conf spark.driver.host={HOST} pyspark-shell"}
    most = 0
    with subprocess.Popen(
        [*command, "--count" if count else "--no-count"],
        cwd=PROJECT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as child:
        while child.poll() is None:
            most = max(most, _resident(child.pid))
            time.sleep(0.5)
        said = child.stdout.read() if child.stdout else ""
    if child.returncode:
        raise SystemExit(f"the driver ended with {child.returncode}: {said}")
    return {**json.loads(said.splitlines()[-1]), "resident_mib": most / 2**20}


def _resident(pid: int) -> int:
    """Bytes of a process and its children."""
    try:
        one = psutil.Process(pid)
        return sum(each.memory_info().rss for each in (one, *one.children(recursive=True)))
    except psutil.NoSuchProcess:
        return 0


if __name__ == "__main__":
    typer.run(main)
