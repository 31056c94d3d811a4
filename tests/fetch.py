"""Fetches what the tests with brokers and Spark need, before several processes ask for it at once.

Ivy locks no cache: two that fill the same one disturb each other.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import pyspark

from app.job.spark_session import DEFAULTS, defaults
from app.local.jars import kafka_jars
from tests.conftest import IVY, MIRROR_CLIENT
from tests.parity.conftest import old_classes

CONNECTOR = defaults()["spark.jars.packages"]
SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"


def resolve(*options: str) -> None:
    """Lets spark-submit resolve packages, for a program that does nothing."""
    with tempfile.NamedTemporaryFile(suffix=".py") as program:
        command = [str(SUBMIT), "--properties-file", str(DEFAULTS), *options, program.name]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    kafka_jars()
    old_classes()
    resolve()
    resolve("--packages", f"{CONNECTOR},{MIRROR_CLIENT}", "--conf", f"spark.jars.ivy={IVY}")
