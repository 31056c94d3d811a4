"""Stores the classes that Spark loads in one file (Java's class data sharing): `python -m app.spark.class_archive`.

With the file a job starts with a third less CPU time. Java ignores a file of another Java version or of other jars, so
create it again after an update. It takes 170 MB and half a minute.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from app.local.java import QUICK_START
from app.spark.submit_options import JAVA_OPTIONS, class_archive, with_lockstep

WRITTEN_WITHIN: Final = 300.0
"""Seconds in which Java must write the file after Spark has ended."""


def _make(archive: Path, folder: Path) -> None:
    """Runs in Spark what every job runs at its start. `folder`: for temporary files."""
    options = (*QUICK_START, f"-XX:ArchiveClassesAtExit={archive}", "-Xlog:disable")
    given = {JAVA_OPTIONS: " ".join(options), "spark.sql.warehouse.dir": str(folder / "warehouse")}
    builder = SparkSession.builder.master("local[2]")
    for name, value in with_lockstep(given, lambda: ()).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    gateway = session.sparkContext._gateway
    assert gateway is not None
    stream = session.readStream.format("rate").load().writeStream.option("checkpointLocation", str(folder / "stream"))
    stream.foreachBatch(_read).trigger(availableNow=True).start().awaitTermination()
    session.createDataFrame([(1, "a")], ["number", "word"]).createOrReplaceTempView("one")
    session.sql("SELECT word, sum(number) FROM one GROUP BY word").collect()
    session.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(WRITTEN_WITHIN)


def _read(batch: DataFrame, _: int) -> None:
    batch.collect()


def main() -> None:
    """Creates the file beside its place, and moves it there once it is complete."""
    # Spark's UI goes by this variable alone.
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    place = class_archive()
    place.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as work:
        folder = Path(work)
        _make(folder / place.name, folder)
        (folder / place.name).replace(place)


if __name__ == "__main__":
    main()
