"""The SparkSession: the one that spark-submit made, or a local one with the same defaults."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import javaproperties
from pyspark.sql import SparkSession

PROJECT = Path(__file__).resolve().parent.parent.parent
DEFAULTS = PROJECT / "conf" / "spark-defaults.conf"


def defaults(path: Path = DEFAULTS) -> Mapping[str, str]:
    """`spark-defaults.conf`: a name, white space, a value; Java's properties format reads it, as Spark itself does."""
    with path.open(encoding="utf-8") as file:
        return {name: value.strip() for name, value in javaproperties.load(file).items()}


def session(name: str = "lockstep") -> SparkSession:
    """The running session, else a new one. What spark-submit or the environment set holds over the defaults."""
    builder = SparkSession.builder.appName(name)
    if SparkSession.getActiveSession() is None:
        if _is_local(os.environ):
            # The UI's address is this variable alone (Spark's `WebUI.bind`), no property: else every interface.
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        for key, value in defaults().items():
            builder = builder.config(key, value)
    return builder.getOrCreate()


def _is_local(environ: Mapping[str, str]) -> bool:
    """Whether the JVM that PySpark is about to start is the whole of Spark; under spark-submit it is there already."""
    master_given = "--master" in environ.get("PYSPARK_SUBMIT_ARGS", "")
    return not master_given and environ.get("MASTER", "local").startswith("local")
