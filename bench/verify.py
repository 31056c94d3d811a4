"""What `lockstep verify` costs beside plain reading; writes bench/figures/benchmarks-verify.md.

Two clusters of one broker hold the same records. In one run, in turn: kafka-console-consumer on both sides at once, a
batch of Spark's own source with `count()` on each side, and `verify` at level digests.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import psutil
import typer
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from app.local.jars import PROJECT, kafka_jars
from app.local.java import JavaProcess
from app.local.local_cluster import LocalCluster
from app.local.local_mirror import mirror_properties
from app.local.waiting import wait_for
from bench.saved_figures import FIGURES, read, save, table
from bench.standalone import HOST, standalone
from bench.topic_changes import SYNCS, PlainRecord, produce_all
from streaming.mm2.codec import encode_offset_sync
from streaming.mm2.records import OffsetSync, TopicPartition

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


# bench/figures/benchmarks-verify.md, from what was measured.


PAGE: Final = FIGURES / "benchmarks-verify.md"
RESULTS: Final = FIGURES / "benchmarks-verify.json"

WAYS: Final = {
    "console": "`kafka-console-consumer` on both sides at once, to nowhere",
    "count": "Spark's own source, a batch with `count()` of each side",
    "digests": "`lockstep verify --level digests`",
}

HEAD: Final = (
    "way",
    "seconds",
    "records a second",
    "time beside `count()`",
    "CPU-seconds of Spark",
    "CPU beside `count()`",
)

INTRO: Final = """# What verify costs

```
python -m bench.verify
```
writes this page and `benchmarks-verify.json`. Two clusters of one broker hold the same records of about 200 bytes in {partitions} partitions, with MM2's offset-syncs. Brokers and Spark (`local[2]`) share {cores} cores: compare ways, not machines. Each figure is the median of {rounds} rounds after a warm-up. A record counts once, though it is read on both sides.
"""


def page(found: Mapping[str, Any]) -> str:
    """The whole page."""
    parts = [INTRO.format(**found), "## Beside plain reading\n", _plain(found["plain"])]
    if workers := found.get("workers"):
        parts += ["## Two workers\n", _workers(workers, found["plain"]["records"])]
    if memory := found.get("memory"):
        parts += ["## The driver's memory\n", _memory(memory)]
    return "\n".join(parts)


def _plain(plain: Mapping[str, Any]) -> str:
    records, seconds = plain["records"], plain["seconds"]
    count, rows = statistics.median(seconds["count"]), []
    worked = {way: statistics.median(found) for way, found in plain["cpu"].items()}
    for way, text in WAYS.items():
        median = statistics.median(seconds[way])
        cpu = (f"{worked[way]:.1f}", f"{worked[way] / worked['count']:.2f}") if way in worked else ("not measured", "-")
        rows.append((text, f"{median:.1f}", f"{records / median:,.0f}", f"{median / count:.2f}", *cpu))
    return f"{records:,} records on each side.\n\n" + table(HEAD, rows) + "\n"


def _workers(workers: Mapping[str, list[float]], records: int) -> str:
    """Each worker has one core."""
    one, rows = statistics.median(workers["1"]), []
    for count, seconds in sorted(workers.items()):
        median = statistics.median(seconds)
        rows.append((count, f"{median:.1f}", f"{records / median:,.0f}", f"{one / median:.2f} times as fast"))
    text = "On a standalone master, with workers of one core each. On two cores a second worker takes from the brokers."
    return f"{text}\n\n" + table(("workers", "seconds", "records a second", "beside one"), rows) + "\n"


def _memory(memory: Mapping[str, Mapping[str, float]]) -> str:
    text = "On a standalone master, so that the driver reads no record itself. Heap: after a garbage collection. Resident: the most that Python and the JVM had together."
    rows = [
        (f"{int(millions)} million", f"{one['heap_mib']:.0f}", f"{one['resident_mib']:.0f}")
        for millions, one in sorted(memory.items(), key=lambda item: int(item[0]))
    ]
    return f"{text}\n\n" + table(("records on each side", "heap, MiB", "resident, MiB"), rows) + "\n"


# Records on two clusters as MM2 would have copied them, for the benchmark of `lockstep verify`.


SYNCS_A_PARTITION: Final = 16
VALUE: Final = b"x" * 180
"""With a key and a number in front: records of about 200 bytes, which brokers store as they are."""

WRITTEN_WITHIN: Final = 120.0


@dataclass(frozen=True)
class WrittenLoad:
    """`records` in all, on both clusters. `config`: a properties file of the flow a->b over this topic alone."""

    topic: str
    records: int
    partitions: int
    sources: Mapping[str, str]
    config: Path

    @property
    def remote(self) -> str:
        """Its name on the target."""
        return f"a.{self.topic}"


def write_both(clusters: Mapping[str, str], records: int, partitions: int, folder: Path) -> WrittenLoad:
    """The same records on `a` and `b`, by alias their bootstrap servers, and offset-syncs as MM2 leaves them."""
    written = WrittenLoad(f"verify-{records}", records, partitions, clusters, folder / f"verify-{records}.properties")
    lines = mirror_properties(dict(clusters), ["a->b"], topics=written.topic)
    lines["lockstep.checkpoint.dir"] = str(folder / "checkpoints")
    written.config.write_text("".join(f"{name} = {value}\n" for name, value in lines.items()))
    _create(clusters["a"], {written.topic: partitions, SYNCS: 1})
    _create(clusters["b"], {written.remote: partitions})
    began = int(time.time() * 1000)
    with ThreadPoolExecutor() as pool:
        sides = ((clusters["a"], written.topic), (clusters["b"], written.remote))
        list(pool.map(lambda side: produce_all(side[0], side[1], _records(written, began)), sides))
    _write_syncs(clusters["a"], written)
    return written


def _create(bootstrap: str, topics: Mapping[str, int]) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    there = admin.list_topics(timeout=WRITTEN_WITHIN).topics
    new = [NewTopic(name, count, 1) for name, count in topics.items() if name not in there]
    for made in admin.create_topics(new).values() if new else ():
        made.result()


def _records(written: WrittenLoad, began: int) -> Iterator[PlainRecord]:
    for number in range(written.records):
        key, at = b"%09d" % number, number % written.partitions
        yield PlainRecord(key, key + VALUE, at, began + number // 1000)


def _write_syncs(bootstrap: str, written: WrittenLoad) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    length = written.records // written.partitions
    for partition in range(written.partitions):
        where = TopicPartition(written.topic, partition)
        for number in range(SYNCS_A_PARTITION):
            offset = length * number // SYNCS_A_PARTITION
            key, value = encode_offset_sync(OffsetSync(where, offset, offset))
            producer.produce(SYNCS, value, key, 0)
    producer.flush(WRITTEN_WITHIN)


if __name__ == "__main__":
    typer.run(main)
