"""The SparkSession: of the context that spark-submit prepared, or a local one with the same defaults."""

from __future__ import annotations

import os
from collections.abc import Mapping

from pyspark.sql import SparkSession

from app.job.submit_options import JAVA_OPTIONS, split_environment
from app.local.jars import connector_jars

UNDER_SPARK_SUBMIT = "PYSPARK_GATEWAY_PORT"
"""Environment variable that spark-submit sets for the Python that it starts."""

SUBMIT_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
"""Environment variable: options of spark-submit for the JVM that pyspark starts itself."""


FEW_OFFSETS = 1_000_000
"""What a command reads of fewer is over before the JVM's better compiler has paid off."""

QUICK_COMPILER = "-XX:TieredStopAtLevel=1"
"""The JVM's quick compiler alone: with both of them, most of the CPU of a run of some seconds is theirs."""


def session(name: str = "lockstep", *, offsets: int | None = None) -> SparkSession:
    """The running session, else a new one. What was given to spark-submit, or in PYSPARK_SUBMIT_ARGS, wins.

    `offsets`: how many will be read in all, where that is known.
    Raises LockstepError where the Kafka connector cannot be fetched, or the deploy mode is not supported.
    """
    builder = SparkSession.builder.appName(name)
    if SparkSession.getActiveSession() is None and UNDER_SPARK_SUBMIT not in os.environ:
        if _is_local(os.environ):
            # The UI's address is this variable alone (Spark's `WebUI.bind`), no property: else every interface.
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        properties, left = split_environment(os.environ.get(SUBMIT_ARGUMENTS, ""), connector_jars)
        for key, value in (quick(properties) if is_short(offsets) else properties).items():
            builder = builder.config(key, value)
        os.environ[SUBMIT_ARGUMENTS] = left
    return builder.getOrCreate()


def is_short(offsets: int | None) -> bool:
    """Whether so little is read that starting Spark is most of it."""
    return offsets is not None and offsets < FEW_OFFSETS


def quick(properties: Mapping[str, str]) -> dict[str, str]:
    """Properties of Spark for a short run; what they say to the JVM themselves wins."""
    return {**properties, JAVA_OPTIONS: f"{QUICK_COMPILER} {properties.get(JAVA_OPTIONS, '')}".strip()}


def _is_local(environ: Mapping[str, str]) -> bool:
    """Whether the JVM that PySpark is about to start is the whole of Spark; under spark-submit it is there already."""
    master_given = "--master" in environ.get("PYSPARK_SUBMIT_ARGS", "")
    return not master_given and environ.get("MASTER", "local").startswith("local")
