"""What `lockstep verify` costs beside plain reading; writes bench/figures/benchmarks-verify.md.

Two clusters of one broker hold the same records. In one run, in turn: kafka-console-consumer on both sides at once, a
batch of Spark's own source with `count()` on each side, and `verify` at level digests.
"""

from __future__ import annotations

import gc
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import psutil
import pyspark
import typer
from pyspark.sql import SparkSession

from app.local.jars import PROJECT, kafka_jars
from app.local.java import JavaProcess
from app.local.ports import HOST, free_ports
from app.local.waiting import wait_for
from app.settings import load
from app.spark.spark_session import session
from app.verify.flow_check import verify_flow
from bench.costs import cost
from bench.pair import SYNCS, BenchPair, PlainRecord, make_topics, offset_sync, pair_of, produce_all
from bench.saved_figures import FIGURES, lines, page_text, read, save
from sinks.kafka.ports.cluster import TopicSpec
from sinks.verify.partition_verdicts import PartitionVerdict, VerifyLevel
from sinks.verify.what_to_compare import ComparisonScope
from streaming.mm2.records import TopicPartition

CONSOLE: Final = "org.apache.kafka.tools.consumer.ConsoleConsumer"
SPARK: Final = Path(pyspark.__file__).parent
WITHIN: Final = 1800.0
LOCAL: Final = "local[2]"
PARTITIONS: Final = 8
ROUNDS: Final = 3
"""Behind the warm-up."""


def main(
    records: Annotated[int, typer.Option(help="Records of the comparison with plain reading.")] = 4_000_000,
    sizes: Annotated[str, typer.Option(help="Millions of records for the driver's memory.")] = "1,4,16",
    render: Annotated[bool, typer.Option("--render", help="Write the page from what was measured.")] = False,
) -> None:
    """Measures, saves after each part, and writes the page."""
    if not render:
        found: dict[str, Any] = {"cores": psutil.cpu_count(), "partitions": PARTITIONS, "rounds": ROUNDS, "memory": {}}
        with pair_of("verify", heap="1g") as pair:
            written = write_both(pair, records)
            consoles = [_console(written) for _ in range(ROUNDS + 1)][1:]
            child = _child(written)
            seconds = {"console": consoles, **{way: each[1:] for way, each in child["seconds"].items()}}
            cpu = {way: each[1:] for way, each in child["cpu"].items()}
            found["plain"] = {"records": records, "seconds": seconds, "cpu": cpu}
            save(RESULTS, found)
            found["workers"] = {}
            for count in (1, 2):
                with standalone(pair.root / f"workers-{count}", count) as master:
                    one = _child(written, master)
                found["workers"][str(count)] = one["seconds"]["digests"][1:]
            save(RESULTS, found)
            for millions in (int(one) for one in sizes.split(",") if one):
                larger = write_both(pair, millions * 1_000_000)
                with standalone(pair.root / f"memory-{millions}", 1) as master:
                    one = _child(larger, master, rounds=1)
                found["memory"][str(millions)] = {name: one[name] for name in ("heap_mib", "resident_mib")}
                save(RESULTS, found)
    PAGE.write_text(page(read(RESULTS)))


def _console(written: WrittenLoad) -> float:
    """Seconds in which two consumers read both sides, at the same time."""
    began = time.perf_counter()
    with ExitStack() as stack:
        running = []
        for servers, topic in written.sides:
            asked = ["--bootstrap-server", servers, "--topic", topic, "--from-beginning"]
            asked += ["--max-messages", str(written.records)]
            running.append(
                stack.enter_context(JavaProcess(CONSOLE, asked, kafka_jars(), Path(os.devnull), ["-Xmx512m"]))
            )
        wait_for(lambda: all(one.succeeded() for one in running), WITHIN, "both consumers to have read all")
        return time.perf_counter() - began


@contextmanager
def standalone(folder: Path, workers: int) -> Iterator[str]:
    """A master, and so many workers of one core."""
    port, page_port, *others = free_ports(2 + workers)
    url = f"spark://{HOST}:{port}"
    environment = {"SPARK_HOME": str(SPARK), "SPARK_LOCAL_IP": HOST, "SPARK_SCALA_VERSION": "2.13"}

    def start(name: str, arguments: list[str], log: str) -> JavaProcess:
        main = f"org.apache.spark.deploy.{name.lower()}.{name}"
        return JavaProcess(main, arguments, [SPARK / "jars" / "*"], folder / f"{log}.log", ["-Xmx256m"], environment)

    with ExitStack() as stack:
        asked = ["--host", HOST, "--port", str(port), "--webui-port", str(page_port)]
        master = stack.enter_context(start("Master", asked, "master"))
        for number, worker_page in enumerate(others):
            own = ["--host", HOST, "--webui-port", str(worker_page), "--cores", "1", "--memory", "1g"]
            stack.enter_context(start("Worker", [*own, "--work-dir", str(folder / "work"), url], f"worker-{number}"))
        what = f"{workers} workers (see {folder})"
        wait_for(lambda: master.output().count("Registering worker") >= workers, 120.0, what)
        yield url


def _child(written: WrittenLoad, master: str = LOCAL, rounds: int = ROUNDS) -> dict[str, Any]:
    """What `drive` returns in a process of its own; and the most memory that it had, with its JVM."""
    asked = {"config": str(written.config), "topic": written.topic, "rounds": rounds, "count": master == LOCAL}
    program = "import json, sys; from bench.verify import drive; print(json.dumps(drive(**json.loads(sys.argv[1]))))"
    own = f"--master {master} --conf spark.ui.enabled=false --conf spark.executor.memory=1g"
    environment = os.environ | {"PYSPARK_SUBMIT_ARGS": f"{own} --conf spark.driver.host={HOST} pyspark-shell"}
    most = 0
    with subprocess.Popen(
        [sys.executable, "-c", program, json.dumps(asked)],
        cwd=PROJECT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as child:
        while child.poll() is None:
            most = max(most, cost([child.pid]).memory.total())
            time.sleep(0.5)
        said = child.stdout.read() if child.stdout else ""
    if child.returncode:
        raise SystemExit(f"the driver ended with {child.returncode}: {said}")
    return {**json.loads(said.splitlines()[-1]), "resident_mib": most / 2**20}


def drive(config: str, topic: str, rounds: int, count: bool) -> dict[str, Any]:
    """One Spark driver, which counts and compares in turn.

    By way, of each round, the first being the warm-up: seconds, and CPU-seconds of this process and its JVM. The heap
    in MiB.
    """
    seconds: dict[str, list[float]] = defaultdict(list)
    cpu: dict[str, list[float]] = defaultdict(list)

    @contextmanager
    def measured(way: str) -> Iterator[None]:
        began, worked = time.perf_counter(), cost([os.getpid()]).cpu_seconds
        yield
        seconds[way].append(time.perf_counter() - began)
        cpu[way].append(cost([os.getpid()]).cpu_seconds - worked)

    spark = session("bench verify")
    with closing(load(Path(config), environ={})) as settings:
        flow = settings.flows[0]
        scope = ComparisonScope((topic,), level=VerifyLevel.DIGESTS)
        for _ in range(rounds + 1):
            if count:
                with measured("count"):
                    for alias, name in ((flow.flow.source, topic), (flow.flow.target, f"a.{topic}")):
                        servers = settings.cluster(alias).consumer["bootstrap.servers"]
                        # Spark's own source at its defaults.
                        options = {"kafka.bootstrap.servers": servers, "subscribe": name, "endingOffsets": "latest"}
                        spark.read.format("kafka").options(**options, startingOffsets="earliest").load().count()
            with measured("digests"):
                report = verify_flow(settings, flow, scope, lambda offsets: spark)
            if any(one.verdict is not PartitionVerdict.VERIFIED for one in report.partitions):
                raise SystemExit(f"not equal: {report.as_json()}")
        found = {"seconds": seconds, "cpu": cpu, "heap_mib": _heap(spark)}
    spark.stop()
    return found


def _heap(spark: SparkSession) -> float:
    """What the driver's JVM holds on to, after it collected garbage."""
    gc.collect()
    jvm: Any = spark.sparkContext._jvm
    runtime = jvm.java.lang.Runtime.getRuntime()
    for _ in range(3):
        runtime.gc()
    return float(runtime.totalMemory() - runtime.freeMemory()) / 2**20


# bench/figures/benchmarks-verify.md, from what was measured.

PAGE: Final = FIGURES / "benchmarks-verify.md"
RESULTS: Final = FIGURES / "benchmarks-verify.json"

WAYS: Final = {
    "console": "`kafka-console-consumer` on both sides at once, to nowhere",
    "count": "Spark's own source, a batch with `count()` of each side",
    "digests": "`lockstep verify --level digests`",
}


def page(found: Mapping[str, Any]) -> str:
    text, plain = page_text("benchmarks-verify"), found["plain"]
    parts = [text[""].format(**found), text["Beside plain reading"].format(rows=lines(_plain(plain)), **plain)]
    if workers := found.get("workers"):
        parts.append(text["Two workers"].format(rows=lines(_workers(workers, plain["records"]))))
    if memory := found.get("memory"):
        by_size = sorted(memory.items(), key=lambda item: int(item[0]))
        sizes = [(f"{count} million", f"{one['heap_mib']:.0f}", f"{one['resident_mib']:.0f}") for count, one in by_size]
        parts.append(text["The driver's memory"].format(rows=lines(sizes)))
    return "\n".join(parts)


def _plain(plain: Mapping[str, Any]) -> Iterator[Sequence[str]]:
    seconds = {way: statistics.median(found) for way, found in plain["seconds"].items()}
    worked = {way: statistics.median(found) for way, found in plain["cpu"].items()}
    for way, text in WAYS.items():
        taken, beside = seconds[way], seconds[way] / seconds["count"]
        cpu = (f"{worked[way]:.1f}", f"{worked[way] / worked['count']:.2f}") if way in worked else ("not measured", "-")
        yield text, f"{taken:.1f}", f"{plain['records'] / taken:,.0f}", f"{beside:.2f}", *cpu


def _workers(workers: Mapping[str, list[float]], records: int) -> Iterator[Sequence[str]]:
    medians = {count: statistics.median(seconds) for count, seconds in sorted(workers.items())}
    for count, median in medians.items():
        beside = f"{medians['1'] / median:.2f} times as fast"
        yield count, f"{median:.1f}", f"{records / median:,.0f}", beside


# Records on two clusters as MM2 would have copied them, for the benchmark of `lockstep verify`.

SYNCS_A_PARTITION: Final = 16
VALUE: Final = b"x" * 180
"""With a key and a number in front: records of about 200 bytes, which brokers store as they are."""


@dataclass(frozen=True)
class WrittenLoad:
    """`records` in all, on both clusters. `sides`: bootstrap servers and the topic's name, of the source and the target.
    `config`: a properties file of the flow a->b over this topic alone."""

    topic: str
    records: int
    sides: Sequence[tuple[str, str]]
    config: Path


def write_both(pair: BenchPair, records: int) -> WrittenLoad:
    """The same records on both clusters, and offset-syncs as MM2 leaves them."""
    began = int(time.time() * 1000)
    # Two loads may have as many records.
    topic = f"verify-{records}-{began}"
    config = pair.job(topics=topic).config
    sides = ((pair.a.bootstrap, topic), (pair.b.bootstrap, f"a.{topic}"))
    written = WrittenLoad(topic, records, sides, config)
    pair.source.create_log(SYNCS, 1, {"cleanup.policy": "compact"})
    for cluster, (_, name) in zip((pair.source, pair.target), written.sides, strict=True):
        make_topics(cluster, {name: TopicSpec(PARTITIONS, 1)})
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda side: produce_all(side[0], _records(written, side[1], began)), written.sides))
    syncs, length = [], records // PARTITIONS
    for partition, number in itertools.product(range(PARTITIONS), range(SYNCS_A_PARTITION)):
        sync = offset_sync(TopicPartition(topic, partition), length * number // SYNCS_A_PARTITION)
        syncs.append(PlainRecord(SYNCS, *sync))
    produce_all(pair.a.bootstrap, syncs)
    return written


def _records(written: WrittenLoad, topic: str, began: int) -> Iterator[PlainRecord]:
    for number in range(written.records):
        key, at = b"%09d" % number, number % PARTITIONS
        yield PlainRecord(topic, key, key + VALUE, at, began + number // 1000)


if __name__ == "__main__":
    typer.run(main)
