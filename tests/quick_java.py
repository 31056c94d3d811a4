"""JVM options of the many brokers, MM2s and Sparks that tests start: each lives for a minute, and mostly starts.

`python -m tests.quick_java` archives the classes that a broker and a Spark load (Java's class data sharing):
with them both are up after half of the CPU time. A JVM goes without an archive that is not there or not made for it.
"""

from __future__ import annotations

import os
import signal
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from app.local.jar_sets import PROJECT
from app.local.java import QUICK_START
from app.local.local_cluster import LocalCluster
from app.local.waiting import wait_for
from app.spark import class_archive

ARCHIVES: Final = PROJECT / ".lockstep" / "class-archives"
"""In no folder that others share: an archive does not tell whose classes are in it."""
KAFKA: Final = "kafka.jsa"
SPARK: Final = "spark.jsa"
WRITTEN_WITHIN: Final = 120.0
"""Seconds from the end of a JVM's work until it has written its archive."""


SILENT: Final = "-Xlog:disable"
"""What Java says of archives goes to stdout, where a test may read something else."""


def _with(archive: str) -> tuple[str, ...]:
    return (*QUICK_START, f"-XX:SharedArchiveFile={ARCHIVES / archive}", "-Xshare:auto", SILENT)


def _making(archive: Path) -> list[str]:
    return [*QUICK_START, f"-XX:ArchiveClassesAtExit={archive}", SILENT]


QUICK_KAFKA: Final = _with(KAFKA)
"""For what has Kafka's jars as its class path, and them alone."""

QUICK_SPARK: Final = _with(SPARK)


def _archive_kafka(folder: Path, target: Path) -> None:
    with LocalCluster("a", folder, java_options=_making(target)) as cluster:
        for pid in cluster.pids:
            os.kill(pid, signal.SIGTERM)
        wait_for(lambda: not cluster.pids, WRITTEN_WITHIN, "a broker to end, and to archive its classes")


def main() -> None:
    """Makes both side by side, and moves each to its name once it is whole."""
    ARCHIVES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ARCHIVES) as work, ThreadPoolExecutor() as threads:
        folder = Path(work)
        kafka = threads.submit(_archive_kafka, folder / "kafka", folder / KAFKA)
        class_archive.main()
        kafka.result()
        # The last one is what make waits for.
        (folder / KAFKA).replace(ARCHIVES / KAFKA)


if __name__ == "__main__":
    main()
