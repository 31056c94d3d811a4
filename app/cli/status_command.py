"""`lockstep status` and `lockstep topics`: show the state of each flow, and the topics that it replicates."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.failures import FailureDocument, with_failure
from app.cli.output import DONE, FAILED, PENDING, STALE, Output, complain, print_json, print_line, until_interrupted
from app.cli.running import JobRefused, NoJobAnswers, address, ask
from app.cli.shared_options import (
    DEFAULT_CONFIG,
    ConfigOption,
    FlowOption,
    OutputOption,
    loaded,
    print_of_each_flow,
    with_overrides,
)
from app.cli.status_text import file_lines, print_status
from app.properties.mistakes import ConfigurationError, UnreadableFile, WrongFlow
from app.settings import JobSettings, load_job
from sinks.flow_settings import FlowSettings
from streaming.errors import LockstepError

if TYPE_CHECKING:
    from app.wiring import FlowClusters

JOB_ANSWERS_WITHIN = 3.0
"""Seconds after which a job that does not answer counts as absent."""

UNCOMPARED = "UNCOMPARED"
"""A state for the exit code only: no heartbeat and no comparison of the flow is known yet."""

NOT_KEPT = frozenset({"STALE", "NO_JOB", UNCOMPARED})
"""States in which the target falls behind the source, or may."""

WATCH_SECONDS = 2.0
HOME_AND_CLEAR = "\x1b[H\x1b[2J"

WatchFlag = Annotated[bool, typer.Option("--watch", help=f"Repeat every {WATCH_SECONDS:g} s, until Ctrl-C.")]


def status(
    config: ConfigOption = DEFAULT_CONFIG,
    flow: FlowOption = None,
    output: OutputOption = Output.TEXT,
    watch: WatchFlag = False,
) -> None:
    """Shows the state of each flow: asks the running job, or observes the clusters if no job answers.

    Exit 1: a flow is in ERROR. Exit 4: a flow is not kept in step: MM2's heartbeats have stopped (STALE), no job
    answers (NO_JOB), or nothing is known of it yet. A flow whose target has taken over (ENDED) is in order. Exit 3: the
    running job rejected its properties file and keeps its earlier settings.
    """
    if watch and output is Output.JSON:
        raise typer.BadParameter(
            "repeats text for people: leave out `-o json`, or call `status -o json` each time",
            param_hint="--watch",
        )
    if watch:
        until_interrupted()
    while watch:
        _print(_seen(config, flow), clear=sys.stdout.isatty())
        sys.stdout.flush()
        time.sleep(WATCH_SECONDS)
    seen = _seen(config, flow)
    if output is Output.JSON:
        print_json(with_failure({"flows": seen.flows, "file": seen.file}, list(_failed(seen.flows))))
    else:
        _print(seen)
    raise typer.Exit(exit_code({counted_state(row) for row in seen.flows}, bool(seen.file and seen.file["mistakes"])))


@dataclass(frozen=True)
class StatusSeen:
    """The document's parts. `flows`: a row each. `file`: whether the job uses its current file; None without a job."""

    flows: Sequence[dict[str, Any]]
    file: dict[str, Any] | None = None


def counted_state(row: Mapping[str, Any]) -> str:
    """Returns the state of a flow for the exit code. UNCOMPARED: the job has just begun."""
    tasks = {kind["task"] for kind in row["kinds"].values()} - {"DISABLED"}
    return UNCOMPARED if row["state"] == "NO_HEARTBEAT" and tasks == {"UNKNOWN"} else str(row["state"])


def exit_code(states: Set[str], rejected: bool) -> int:
    """Returns the exit code for flows in these states: the worst one decides. `rejected`: the job rejected its file."""
    return FAILED if "ERROR" in states else STALE if states & NOT_KEPT else PENDING if rejected else DONE


def _failed(rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, FailureDocument]]:
    """Yields the failures of flows in ERROR. A job of an older version sends only the reason."""
    for row in rows:
        if row["state"] == "ERROR":
            said = row.get("error") or {"code": LockstepError.code, "message": row["reason"], "remedy": None}
            yield (
                f"{row['source']}->{row['target']}",
                FailureDocument(said["code"], said["message"] or "", said["remedy"]),
            )


def _print(seen: StatusSeen, *, clear: bool = False) -> None:
    if clear:
        # As it is: of all that is printed, only this is to steer the terminal.
        sys.stdout.write(HOME_AND_CLEAR)
    for line in file_lines(seen.file):
        print_line(line)
    for row in seen.flows:
        print_status(row)


def _seen(config: Path, flow: list[str] | None) -> StatusSeen:
    try:
        settings = loaded(config, flow)
    except (WrongFlow, UnreadableFile):
        raise
    except ConfigurationError as error:
        return _job_with_rejected_file(config, flow or (), error)
    try:
        return of_job(settings.job, [one.flow.name for one in settings.flows])
    except JobRefused as error:
        complain(f"{error}; observing the clusters instead")
        silent = str(error)
    except NoJobAnswers as error:
        silent = str(error)
    from app.local.java_gateway import begin_jvm

    begin_jvm()
    # What asks a job does without Kafka's clients, which take as long to import as all else together.
    from app.single_pass import status_now

    settings = with_overrides(config, flow)
    return StatusSeen([status_now(settings, one, silent).as_json() for one in settings.flows])


def _job_with_rejected_file(config: Path, flows: Collection[str], error: ConfigurationError) -> StatusSeen:
    """Returns the status of a running job whose file has mistakes. Raises the mistakes if no job answers."""
    try:
        seen = of_job(load_job(config), flows)
    except LockstepError:
        raise error from None
    file = seen.file or {"rejected_since": None, "needs_restart": []}
    # The job may not have read the file since it changed.
    return StatusSeen(seen.flows, {**file, "mistakes": file.get("mistakes") or list(error.said)})


def of_job(job: JobSettings, flows: Collection[str]) -> StatusSeen:
    """Returns what the job reports of these flows; of all if none are named.

    Raises NoJobAnswers, also if the job lacks one of the flows, and JobRefused.
    """
    answer = ask(job, "GET", "/status", JOB_ANSWERS_WITHIN)
    try:
        rows = {f"{row['source']}->{row['target']}": row for row in answer["flows"]}
    except (KeyError, TypeError) as error:
        raise NoJobAnswers(f"the program at {address(job)} is not a job of this version") from error
    if missing := [name for name in flows if name not in rows]:
        raise NoJobAnswers(f"the job at {address(job)} has no flow {', '.join(missing)}")
    return StatusSeen([rows[name] for name in flows or rows], answer.get("file"))


def topics(config: ConfigOption = DEFAULT_CONFIG, flow: FlowOption = None, output: OutputOption = Output.TEXT) -> None:
    """Lists the replicated topics with their names on both sides."""
    from sinks.every_kind.listing import replicated_topics
    from sinks.kinds.shared_listings import list_both

    def found(one: FlowSettings, clusters: FlowClusters) -> list[dict[str, str]]:
        found = replicated_topics(list_both(one, clusters.source, clusters.target))
        return [{"upstream": upstream, "remote": remote} for upstream, remote in found.items()]

    failed = print_of_each_flow(with_overrides(config, flow), output, found, "topics", ("upstream", "remote"))
    raise typer.Exit(FAILED if failed else DONE)
