"""The SparkSession: of the context that spark-submit prepared, or a local one with the same defaults."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from app.held_interrupts import held_interrupts
from app.job.submit_options import JAVA_OPTIONS, split_environment
from app.local.jars import connector_jars
from app.local.java import QUICK_START, java
from streaming.errors import LockstepError
from streaming.restarts import root_cause

UNDER_SPARK_SUBMIT = "PYSPARK_GATEWAY_PORT"
"""Environment variable that spark-submit sets for the Python that it starts."""

SUBMIT_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
"""Environment variable: options of spark-submit for the JVM that pyspark starts itself."""


NOTICED_WITHIN = 1.0
"""Seconds between the end of a connection to a JVM and the end of that."""

JVM_ENDED = (
    "Spark's JVM has ended: something killed it (is the machine out of memory?), or what it says above did. Start the "
    "job again: it compares everything first"
)

NOT_STARTED = f"Spark does not start: what it says above tells why; its options are those of {SUBMIT_ARGUMENTS}"

FEW_OFFSETS = 1_000_000
"""What a command reads of fewer is over before the JVM's better compiler has paid off."""


def session(name: str = "lockstep", *, offsets: int | None = None) -> SparkSession:
    """The running session, else a new one. What was given to spark-submit, or in PYSPARK_SUBMIT_ARGS, wins.

    `offsets`: how many will be read in all, where that is known.
    Raises LockstepError where the Kafka connector cannot be fetched, the deploy mode is not supported, there is no Java
    that fits, or Spark does not start with it.
    """
    if SparkContext._active_spark_context is None and UNDER_SPARK_SUBMIT not in os.environ:
        if _is_local(os.environ):
            # The UI's address is this variable alone (Spark's `WebUI.bind`), no property: else every interface.
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        properties, left = split_environment(os.environ.get(SUBMIT_ARGUMENTS, ""), connector_jars)
        os.environ[SUBMIT_ARGUMENTS] = left
        _start(name, quick(properties) if is_short(offsets) else properties)
    return SparkSession.builder.appName(name).getOrCreate()


@contextmanager
def running_session() -> Iterator[SparkSession]:
    """As `session`, stopped at the end. Raises LockstepError as well where its JVM ends before that."""
    spark = session()
    try:
        yield spark
    except Exception as error:
        if _jvm_ended(NOTICED_WITHIN):
            raise LockstepError(JVM_ENDED) from error
        raise
    finally:
        if not _jvm_ended(0):
            spark.stop()


def _jvm_ended(within: float) -> bool:
    """Whether the JVM that this process started has ended, or does so within these seconds."""
    process = getattr(SparkContext._gateway, "proc", None)
    try:
        return process is not None and process.wait(within) is not None
    except subprocess.TimeoutExpired:
        return False


def _start(name: str, properties: Mapping[str, str]) -> None:
    """A context, in a JVM that ends with this process, but not with a signal to the process group.

    A Ctrl-C, or a SIGTERM to the group, would end it before the running batch is done, and Python with a stack trace.
    """
    conf = SparkConf().setAppName(name).setAll(list(properties.items()))
    java()
    try:
        # A JVM whose start nobody waits for any more does not find where to write its port, and stays.
        with held_interrupts():
            gateway = SparkContext._gateway or launch_gateway(conf, {"start_new_session": True})  # type: ignore[no-untyped-call]
        SparkContext(conf=conf, gateway=gateway)
    except PySparkRuntimeError as error:
        # Without a JVM there is nothing else to tell.
        raise LockstepError(NOT_STARTED) from error
    except Exception as error:
        # What Java raises is an exception of py4j's, which is not imported here.
        raise LockstepError(f"Spark does not start: {root_cause(str(error))}") from error


def is_short(offsets: int | None) -> bool:
    """Whether so little is read that starting Spark is most of it."""
    return offsets is not None and offsets < FEW_OFFSETS


def quick(properties: Mapping[str, str]) -> dict[str, str]:
    """Properties of Spark for a run of some seconds, most of whose CPU would be the JVM's better compiler's.

    What they say to the JVM themselves wins.
    """
    options = (*QUICK_START, properties.get(JAVA_OPTIONS, ""))
    return {**properties, JAVA_OPTIONS: " ".join(options).strip()}


def _is_local(environ: Mapping[str, str]) -> bool:
    """Whether the JVM that PySpark is about to start is the whole of Spark; under spark-submit it is there already."""
    master_given = "--master" in environ.get("PYSPARK_SUBMIT_ARGS", "")
    return not master_given and environ.get("MASTER", "local").startswith("local")
