"""`lockstep run`: runs the job. `./spark-submit.sh` runs the same command on a Spark cluster."""

from __future__ import annotations

import logging
import os
from datetime import datetime, timezone
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated

import orjson
import typer

from app.cli.output import DONE, FAILED, complain
from app.cli.shared_options import DEFAULT_CONFIG, ConfigOption, FlowOption, with_overrides
from app.http.neighbour import refuse_beside_another_job
from app.overrides.with_overrides import encode_again
from app.settings import Settings
from app.wiring import both_clusters, guard
from sinks.background import awaited, begun
from sinks.engine.flow_task import current_pass
from sinks.faults import ClusterUnreachable
from sinks.flow_settings import FlowSettings
from sinks.printable import PrintableFormatter, printable
from streaming.errors import LockstepError

TEXT, JSON = "text", "json"


class JsonFormatter(logging.Formatter):
    """Formats a log record as a JSON object: time (UTC), level, logger, message; flow, pass and stack trace if any."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns the line, without control characters."""
        at = datetime.fromtimestamp(record.created, timezone.utc)
        line: dict[str, object] = {
            "time": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if (about := current_pass()) is not None:
            line |= {"flow": about.flow, "pass": about.number}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return printable(orjson.dumps(line).decode())


def log_formatter(name: str) -> logging.Formatter:
    """Returns the formatter for a value of `lockstep.log.format`."""
    if name == JSON:
        return JsonFormatter()
    return PrintableFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s")


log = logging.getLogger(__name__)


def run(
    config: ConfigOption = DEFAULT_CONFIG,
    flow: FlowOption = None,
    once: Annotated[
        bool, typer.Option("--once", help="Read MM2's topics to their end, compare everything once, end.")
    ] = False,
) -> None:
    """Runs the job until SIGTERM."""
    handler = logging.StreamHandler()
    handler.setFormatter(log_formatter(TEXT))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    try:
        raise typer.Exit(_run(config, flow, handler, once=once))
    except KeyboardInterrupt:
        if once:
            raise
        # SIGTERM or Ctrl-C while it starts: there is no batch to end.
        log.info("ended before the first comparison")


def _run(config: Path, flow: list[str] | None, handler: logging.Handler, *, once: bool) -> int:
    """Runs the job and returns its exit code. Raises KeyboardInterrupt if a signal came before `--once` was done."""
    # Not needed by any other command, and a second of imports: the ledgers are read meanwhile.
    imported = begun(partial(import_module, "app.job.running_job"), "imports of the job")
    try:
        settings = with_overrides(config, flow, job=True)
    finally:
        # A process that ends in the middle of an import may crash. What failed in it is raised below.
        imported.exception()
    encode_again(settings)
    handler.setFormatter(log_formatter(settings.job.log_format))
    for warning in settings.warnings:
        log.warning("%s", warning)

    def reread(before: Settings) -> Settings:
        after = with_overrides(config, flow, before, job=True)
        encode_again(after)
        return after

    if once:
        _refuse_unreachable(settings)
    else:
        refuse_beside_another_job(settings.job.http_host, settings.job.http_port, settings.job.http_token)
    log.info("%s is read, starting Spark", config)
    from app.job.running_job import Job
    from app.spark.driver_end import DriverWatch
    from app.spark.spark_session import JVM_ENDED, running_session

    watch = DriverWatch(lambda: _leave(JVM_ENDED))
    with running_session(watch) as spark:
        job = Job(settings, spark, once, (config, reread))
        watch.on_end(job.stop)
        healthy = job.run()
    if once and job.stopped:
        raise KeyboardInterrupt
    return DONE if healthy or not once else FAILED


def _leave(reason: str) -> None:
    """Prints the reason and ends the process at once, because other threads may wait for ever."""
    complain(reason)
    os._exit(FAILED)


def _refuse_unreachable(settings: Settings) -> None:
    """Raises ClusterUnreachable if no cluster of any flow answers. Spark need not start then."""
    if any(stored is not None for stored in settings.stored_overrides.values()):
        return
    asked = [begun(partial(_unreachable, settings, flow), flow.flow.name) for flow in settings.flows]
    errors = [error for answer in asked if (error := awaited(answer)) is not None and error.both]
    if len(errors) == len(asked):
        raise ClusterUnreachable(" ".join(dict.fromkeys(map(str, errors))), both=True)


def _unreachable(settings: Settings, flow: FlowSettings) -> ClusterUnreachable | None:
    with both_clusters(settings, flow) as clusters:
        try:
            guard(flow, clusters.source, clusters.target).ids()
        except ClusterUnreachable as error:
            return error
        except LockstepError:
            # The flow's own trouble, which its status says.
            return None
    return None
