"""The SparkSession: of the context that spark-submit prepared, or a local one with the same defaults."""

from __future__ import annotations

import os
from collections.abc import Mapping

from pyspark.sql import SparkSession

from app.job.submit_options import split_environment
from app.local.jars import connector_jars

UNDER_SPARK_SUBMIT = "PYSPARK_GATEWAY_PORT"
"""Environment variable that spark-submit sets for the Python that it starts."""

SUBMIT_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
"""Environment variable: options of spark-submit for the JVM that pyspark starts itself."""


def session(name: str = "lockstep") -> SparkSession:
    """The running session, else a new one. What was given to spark-submit, or in PYSPARK_SUBMIT_ARGS, wins.

    Raises LockstepError where the Kafka connector cannot be fetched, or the deploy mode is not supported.
    """
    builder = SparkSession.builder.appName(name)
    if SparkSession.getActiveSession() is None and UNDER_SPARK_SUBMIT not in os.environ:
        if _is_local(os.environ):
            # The UI's address is this variable alone (Spark's `WebUI.bind`), no property: else every interface.
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        properties, left = split_environment(os.environ.get(SUBMIT_ARGUMENTS, ""), connector_jars)
        for key, value in properties.items():
            builder = builder.config(key, value)
        os.environ[SUBMIT_ARGUMENTS] = left
    return builder.getOrCreate()


def _is_local(environ: Mapping[str, str]) -> bool:
    """Whether the JVM that PySpark is about to start is the whole of Spark; under spark-submit it is there already."""
    master_given = "--master" in environ.get("PYSPARK_SUBMIT_ARGS", "")
    return not master_given and environ.get("MASTER", "local").startswith("local")
