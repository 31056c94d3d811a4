"""One Spark driver of the benchmark of `lockstep verify`: counts and compares in turn, and prints what it took.

A process of its own, since a driver's memory is measured as well. Started by `bench.verify`.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer
from pyspark.sql import SparkSession

from app.settings import load
from app.spark.spark_session import session
from app.verify.flow_check import verify_flow
from bench.costs import cost
from sinks.verify.partition_verdicts import PartitionVerdict, VerifyLevel
from sinks.verify.what_to_compare import ComparisonScope


@dataclass
class Took:
    """By way, of each round: seconds, and CPU-seconds of this process and its JVM."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    cpu: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    @contextmanager
    def measured(self, way: str) -> Iterator[None]:
        """One round of a way."""
        began, worked = time.perf_counter(), cost([os.getpid()]).cpu_seconds
        yield
        self.seconds[way].append(time.perf_counter() - began)
        self.cpu[way].append(cost([os.getpid()]).cpu_seconds - worked)


def main(config: Path, topic: str, rounds: int = 3, count: bool = True) -> None:
    """Prints a JSON document: seconds of each way and round, the first being the warm-up; records; heap in MiB."""
    spark = session("bench verify")
    with closing(load(config, environ={})) as settings:
        flow = settings.flows[0]
        scope = ComparisonScope((topic,), level=VerifyLevel.DIGESTS)
        took = Took()
        for _ in range(rounds + 1):
            if count:
                with took.measured("count"):
                    for alias, name in ((flow.flow.source, topic), (flow.flow.target, f"a.{topic}")):
                        _read(spark, settings.cluster(alias).consumer["bootstrap.servers"], name).count()
            with took.measured("digests"):
                report = verify_flow(settings, flow, scope, lambda offsets: spark)
            if any(one.verdict is not PartitionVerdict.VERIFIED for one in report.partitions):
                raise SystemExit(f"not equal: {report.as_json()}")
        found = {"seconds": took.seconds, "cpu": took.cpu, "records": report.records, "heap_mib": _heap(spark)}
    spark.stop()
    sys.stdout.write(json.dumps(found) + "\n")


def _read(spark: SparkSession, servers: str, topic: str) -> Any:
    """Spark's own source at its defaults."""
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "endingOffsets": "latest"}
    return spark.read.format("kafka").options(**options, startingOffsets="earliest").load()


def _heap(spark: SparkSession) -> float:
    """What the driver's JVM holds on to, after it collected garbage."""
    gc.collect()
    jvm: Any = spark.sparkContext._jvm
    runtime = jvm.java.lang.Runtime.getRuntime()
    for _ in range(3):
        runtime.gc()
    return float(runtime.totalMemory() - runtime.freeMemory()) / 2**20


if __name__ == "__main__":
    typer.run(main)
