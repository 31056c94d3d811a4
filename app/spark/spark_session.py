"""Returns the SparkSession: of the context that spark-submit prepared, or a local one with the same defaults."""

from __future__ import annotations

import os
import shlex
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkstemp
from typing import Any

import javaproperties
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import ensure_callback_server_started, launch_gateway
from pyspark.sql import SparkSession

from app.held_interrupts import held_interrupts
from app.local.gateway_client import start_callbacks
from app.local.jars import connector_jars
from app.local.java import QUICK_START, java
from app.local.java_gateway import adopted_jvm
from app.spark.driver_end import DriverWatch, Lives, lives_as_child, lives_as_parent
from app.spark.submit_options import JAVA_OPTIONS, is_local, split_environment
from streaming.errors import LockstepError
from streaming.query_restarts import root_cause

UNDER_SPARK_SUBMIT = "PYSPARK_GATEWAY_PORT"
"""Environment variable that spark-submit sets for the Python that it starts."""

SUBMIT_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
"""Environment variable: options of spark-submit for the JVM that pyspark starts itself."""


NOTICED_WITHIN = 2.0
"""Seconds in which the watch notices that a JVM has ended, after a connection to it broke."""

JVM_ENDED = (
    "Spark's JVM has ended: something killed it (is the machine out of memory?), or its output above tells the reason. "
    "Start the job again: it compares everything first"
)

NOT_STARTED = f"Spark does not start: its output above tells the reason; its options come from {SUBMIT_ARGUMENTS}"

NO_MASTER = (
    "Spark does not start: no master answers at {}, or it ended the application at once. Check that the master runs, "
    "and that this machine reaches it"
)

STANDALONE = "spark://"

CONNECTS_WITHIN_S = 5.0

FEW_OFFSETS = 1_000_000
"""Offsets below which a command ends before the JVM's better compiler has paid off."""


Started = Callable[[Lives], None]
"""Gets the function that tells whether the JVM runs, as soon as it is known."""


def _untold(lives: Lives) -> None:
    """Does nothing: for callers that notice the end of the JVM by themselves."""


def session(name: str = "lockstep", *, offsets: int | None = None, started: Started = _untold) -> SparkSession:
    """Returns the running session, or a new one. Options of spark-submit, or in PYSPARK_SUBMIT_ARGS, win. `offsets`:
    how many will be read in all; None: unknown.

    Raises LockstepError if the Kafka connector cannot be fetched, if the deploy mode is not supported, if there is no
    suitable Java, or if Spark does not start. Spark does not start either if its master gives the context up.
    """
    if SparkContext._active_spark_context is None and UNDER_SPARK_SUBMIT not in os.environ:
        if is_local(shlex.split(os.environ.get(SUBMIT_ARGUMENTS, ""))):
            # The UI's address is this variable alone (Spark's `WebUI.bind`), no property: else every interface.
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        properties, left = split_environment(os.environ.get(SUBMIT_ARGUMENTS, ""), connector_jars)
        _start(name, quick(properties) if is_short(offsets) else properties, left, started)
    elif UNDER_SPARK_SUBMIT in os.environ:
        started(lives_as_parent())
    try:
        spark = SparkSession.builder.appName(name).getOrCreate()
    except Exception as error:
        raise _why(error) from error
    start_callbacks(SparkContext._gateway, ensure_callback_server_started)
    return spark


def _why(error: Exception) -> LockstepError:
    """Returns why Spark does not start. Java's exceptions are classes of py4j, which is not imported here."""
    try:
        # A context that its master gives up fails wherever it then is: in Java, in Python, or when it is done.
        master, context = SparkConf().get("spark.master") or "", SparkContext._active_spark_context
        given_up = not is_reached(master) or (context is not None and context._jsc.sc().isStopped())
    except Exception:  # noqa: BLE001 - a JVM that has ended: its watch says so
        given_up = False
    return LockstepError(NO_MASTER.format(master) if given_up else f"Spark does not start: {root_cause(str(error))}")


def is_reached(master: str) -> bool:
    """Returns whether a Spark standalone master accepts a connection. True for any other kind of master.

    `master`: `spark.master`, as `spark://HOST:PORT` or, for several, `spark://HOST:PORT,HOST:PORT`.
    """
    if not master.startswith(STANDALONE):
        return True
    for address in master.removeprefix(STANDALONE).split(","):
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), CONNECTS_WITHIN_S).close()
        except (OSError, ValueError):
            continue
        return True
    return False


@contextmanager
def running_session(watch: DriverWatch) -> Iterator[SparkSession]:
    """Yields a session as `session` does, and stops it at the end. Raises LockstepError also if its JVM ends before
    that. `watch`: gets the JVM to follow."""
    try:
        spark = session(started=watch.follow)
        try:
            with adopted_jvm(spark.sparkContext._gateway):
                yield spark
        finally:
            if not watch.has_ended():
                spark.stop()
    except Exception as error:
        if watch.has_ended(NOTICED_WITHIN):
            raise LockstepError(JVM_ENDED) from error
        raise
    if watch.has_ended():
        raise LockstepError(JVM_ENDED)


def _start(name: str, properties: Mapping[str, str], options: Sequence[str], started: Started) -> None:
    """Starts a context in a JVM that ends with this process, but not by a signal to the process group.

    A Ctrl-C, or a SIGTERM to the group, would end the JVM before the running batch is done, and Python with a stack
    trace. `options`: of spark-submit, besides the properties.
    """
    conf = SparkConf().setAppName(name).setAll(list(properties.items()))
    java()
    try:
        gateway = SparkContext._gateway or _launch(conf, options, started)
        SparkContext(conf=conf, gateway=gateway)
    except PySparkRuntimeError as error:
        # Without a JVM there is nothing else to tell.
        raise LockstepError(NOT_STARTED) from error
    except Exception as error:
        raise _why(error) from error


def _launch(conf: SparkConf, options: Sequence[str], started: Started) -> Any:
    """Returns the gateway to a new JVM. It reads its properties from a file, because every user of the machine can see
    arguments."""
    file, before = _written(dict(conf.getAll())), os.environ.get(SUBMIT_ARGUMENTS)
    os.environ[SUBMIT_ARGUMENTS] = shlex.join(["--properties-file", str(file), *options])
    try:
        # A JVM whose starter no longer waits does not find where to write its port, and stays.
        with held_interrupts():
            gateway = launch_gateway(None, {"start_new_session": True})  # type: ignore[no-untyped-call]
            started(lives_as_child(gateway.proc))
    finally:
        file.unlink()
        if before is None:
            del os.environ[SUBMIT_ARGUMENTS]
        else:
            os.environ[SUBMIT_ARGUMENTS] = before
    return gateway


def _written(properties: Mapping[str, str]) -> Path:
    """Writes these properties to a new file that only its owner can read. Returns its path."""
    opened, name = mkstemp(prefix="lockstep-spark-", suffix=".properties")
    with os.fdopen(opened, "w", encoding="utf-8") as file:
        javaproperties.dump(properties, file, timestamp=False)
    return Path(name)


def is_short(offsets: int | None) -> bool:
    """Returns whether so few offsets are read that Spark's start takes most of the time."""
    return offsets is not None and offsets < FEW_OFFSETS


def quick(properties: Mapping[str, str]) -> dict[str, str]:
    """Returns Spark properties for a run of some seconds: without the JVM's better compiler, which would take most of
    its CPU. JVM options of the user win."""
    options = (*QUICK_START, properties.get(JAVA_OPTIONS, ""))
    return {**properties, JAVA_OPTIONS: " ".join(options).strip()}
