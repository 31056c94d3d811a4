"""The SparkSession: of the context that spark-submit prepared, or a local one with the same defaults."""

from __future__ import annotations

import os
import shlex

from pyspark.sql import SparkSession

from app.job.submit_options import given_by, with_lockstep
from app.local.jars import connector_jars

UNDER_SPARK_SUBMIT = "PYSPARK_GATEWAY_PORT"
"""Environment variable that spark-submit sets for the Python that it starts."""

SUBMIT_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
"""Environment variable: options of spark-submit for the JVM that pyspark starts itself."""

SHELL = "pyspark-shell"
"""Its last word, which Spark insists on."""


def session(name: str = "lockstep") -> SparkSession:
    """The running session, else a new one. What was given to spark-submit, or in PYSPARK_SUBMIT_ARGS, wins.

    Raises LockstepError where the Kafka connector cannot be fetched, or the deploy mode is not supported.
    """
    builder = SparkSession.builder.appName(name)
    if SparkSession.getActiveSession() is None and UNDER_SPARK_SUBMIT not in os.environ:
        given = given_by(shlex.split(os.environ.get(SUBMIT_ARGUMENTS, SHELL)))
        for key, value in with_lockstep(given.all(), connector_jars).items():
            builder = builder.config(key, value)
        # A flag there, such as --jars, would win over what was merged.
        file = ["--properties-file", str(given.file)] if given.file else []
        os.environ[SUBMIT_ARGUMENTS] = shlex.join([*file, *given.rest])
    return builder.getOrCreate()
