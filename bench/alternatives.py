"""What a micro-batch costs, and what a query costs that is started for one batch (`availableNow` on demand).

`python -m bench.alternatives`: CPU-seconds of this process and its JVM for each, without any cluster: the clock alone.
"""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import typer
from pyspark.sql import DataFrame

from app.local.waiting import wait_for
from app.spark.spark_session import session
from bench.cost import cost
from streaming.query import collect_hints, start, stop_gently
from streaming.query_plan import QueryPlan

BATCHES, WARM = 20, 5
WITHIN = 120.0


def main() -> None:
    """Prints both, the micro-batch first."""
    spark, seen = session("alternatives"), list[int]()

    def sink(batch: DataFrame, number: int) -> None:
        collect_hints(batch)
        seen.append(number)

    with tempfile.TemporaryDirectory() as folder:
        plan = QueryPlan("b", (), 0.2, Path(folder) / "triggers")
        query = start(spark, plan, sink)
        wait_for(lambda: len(seen) >= WARM, WITHIN, "the first batches")
        before, count = cost([os.getpid()]), len(seen)
        wait_for(lambda: len(seen) >= count + BATCHES, WITHIN, "batches")
        used = cost([os.getpid()]).since(before).cpu_seconds / (len(seen) - count)
        stop_gently(query, WITHIN)
        sys.stdout.write(f"a micro-batch: {used:.3f} CPU-seconds\n")
        plan = replace(plan, checkpoint_dir=Path(folder) / "demand")
        for number in range(WARM + BATCHES):
            if number == WARM:
                before = cost([os.getpid()])
            start(spark, plan, sink, once=True).awaitTermination()
        used = cost([os.getpid()]).since(before).cpu_seconds / BATCHES
        sys.stdout.write(f"a query for one batch: {used:.3f} CPU-seconds\n")
    spark.stop()


if __name__ == "__main__":
    typer.run(main)
