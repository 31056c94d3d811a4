"""Spark's standalone master with workers, on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pyspark

from app.local.java import JavaProcess
from app.local.ports import free_ports
from app.local.waiting import wait_for

HOST: Final = "127.0.0.1"
SPARK: Final = Path(pyspark.__file__).parent


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
